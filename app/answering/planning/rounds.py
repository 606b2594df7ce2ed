"""Cycle after cycle until everything that waits has been tried: Kueue tries one ask of a queue in each.

Between two cycles the answer is carried out. A head that can't be admitted steps aside, as in Kueue; in a StrictFIFO
queue it stays, and everything behind it waits.
"""

from dataclasses import dataclass

import msgspec

from app.solver import solve
from app.solver.apply import delta_of
from app.solver.delta import apply_delta
from app.solver.model.decision import Answer, Decision, Placement, Plan, PlannedEviction
from app.solver.model.state import Ask
from app.solver.question import Question
from app.solver.solve import Loaded

_STARTS = ("admit", "preempt")
Families = list[list[Ask]]
"""Asks alike by the family: they go in turn, and where one can't start the others can't."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of it: the last answer with everything to carry out, the decision on each ask, and the state after
    that. ``left``: asks that wait on."""

    answer: Answer
    decisions: dict[str, Decision]
    after: Loaded
    left: list[Ask]


def settle(loaded: Loaded, families: Families, question: Question) -> Settled:
    """Decide ``families`` until nothing changes. ``question`` says all but the asks."""
    asks = [ask for family in families for ask in family]
    rounds = _Rounds(loaded, question)
    if loaded.configured.engine.heads:
        rounds.run(families)
        rounds.rest(asks)
    else:
        rounds.turn(asks)
    plan = Plan(evictions=rounds.evictions, placements=rounds.placements)
    answer = msgspec.structs.replace(rounds.answer, state=loaded.used, plan=plan)
    left = [ask for ask in asks if rounds.decisions[ask.id].outcome not in _STARTS]
    return Settled(answer, rounds.decisions, rounds.after, left)


class _Rounds:
    """Cycles under way. ``after``: the state as the cycles so far leave it."""

    def __init__(self, loaded: Loaded, question: Question) -> None:
        self.after = loaded
        self.decisions: dict[str, Decision] = {}
        self.evictions: list[PlannedEviction] = []
        self.placements: list[Placement] = []
        self._question = question
        self._strict = {
            queue.name
            for queue in loaded.configured.configuration.queues
            if queue.kueue is not None and queue.kueue.queueing_strategy == "StrictFIFO"
        }
        self._blocked: list[Ask] = []

    def run(self, families: Families) -> None:
        """The first of each family, until none is left that could start."""
        waiting: Families = [family for family in families if family]
        while waiting:
            tried, started = self.turn([family[0] for family in waiting])
            if started:
                waiting = [rest for family in waiting if (rest := family[family[0].id in started :])]
                continue
            aside = {ask.id for ask in tried if ask.queue not in self._strict}
            if not aside:
                self._blocked = [family[0] for family in waiting]
                return
            waiting = [family for family in waiting if family[0].id not in aside]

    def turn(self, asks: list[Ask]) -> tuple[list[Ask], set[str]]:
        """One cycle, carried out: the asks that were tried, and the ids of those that start."""
        self.answer = self._decide(asks)
        order = None if self.answer.order is None else set(self.answer.order)
        tried = [ask for ask in asks if order is None or ask.id in order]
        by_ask = {decision.ask: decision for decision in self.answer.decisions}
        self.decisions |= {ask.id: by_ask[ask.id] for ask in tried}
        self.evictions += self.answer.plan.evictions
        self.placements += self.answer.plan.placements
        started = {ask.id for ask in tried if by_ask[ask.id].outcome in _STARTS}
        if started or self.answer.plan.evictions:
            self._carry_out(asks)
        return tried, started

    def rest(self, asks: list[Ask]) -> None:
        """Say of those that were never tried what they wait for."""
        left = [ask for ask in asks if ask.id not in self.decisions]
        if left:
            known = {ask.id for ask in left}
            heads = [ask for ask in self._blocked if ask.id not in known]
            for decision in self._decide([*heads, *left]).decisions:
                self.decisions.setdefault(decision.ask, decision)

    def _decide(self, asks: list[Ask]) -> Answer:
        question = self._question
        return solve.decide(
            self.after, Question(question.now, asks, "cycle", question.options, question.explain)
        )  # fmt: skip

    def _carry_out(self, asks: list[Ask]) -> None:
        """The state once everybody who has to has stopped, and everything that can has started."""
        decisions = [_settled(decision) for decision in self.answer.decisions]
        after = self.after
        delta = delta_of(after.state, after.index, 0, asks, decisions, self.answer.plan, self._question.now)
        state, index, touched = apply_delta(after.state, after.index, delta)
        self.after = solve.update(after, state, index, touched, generation=0)


def _settled(decision: Decision) -> Decision:
    return msgspec.structs.replace(decision, outcome="admit") if decision.outcome == "preempt" else decision
