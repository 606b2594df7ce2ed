"""What another scheduler would evict, judged: an engine says of each victim which rule keeps it, if any does.

A proposal stands as a whole or not at all: who proposed it took as few as make room, and one less would be too few.
"""

from collections import Counter
from typing import Any

import msgspec

from app.solver.apply import Index
from app.solver.engine import Engine
from app.solver.model.base import at
from app.solver.model.decision import Condition, Decision, Plan, ProposalVerdict, Refusal, Result
from app.solver.model.problems import InvalidInput, Problem, Unsupported, pointer
from app.solver.model.request import Eviction, Proposal
from app.solver.model.state import Ask, State
from app.solver.question import Question

_ALLOWED = "ProposalAllowed"
_NO_QUEUE = "what asks is in no queue of the configuration"


def judged(engine: Engine[Any, Any], loaded: Any, situation: tuple[State, Index], question: Question) -> Result:
    """The verdicts on ``question.proposals``; ``loaded`` is ``situation``, compiled. Raises InvalidInput."""
    proposals = question.proposals or []
    judge = engine.judge
    if judge is None:
        detail = f"{engine.name} chooses its victims itself, and judges nobody else's"
        raise Unsupported([Problem(pointer="/proposals", detail=detail)])
    _check(question, proposals)
    ask = question.asks[0] if question.asks else None
    running = _Running(situation)
    strange = [[_unknown(e) for e in p.evict if e not in running] for p in proposals]
    known = [[e for e in p.evict if e in running] for p in proposals]
    if ask is None:
        refused = [[_refusal(e, "no-queue", _NO_QUEUE) for e in of] for of in known]
    else:
        refused = _told(engine, judge(loaded, question.now, ask, known))
    refusals = [[*a, *b] for a, b in zip(strange, refused, strict=True)]
    first = min((p.rank for p in proposals if p.rank is not None), default=None)
    first_left = min(
        (p.rank for p, of in zip(proposals, refusals, strict=True) if p.rank is not None and not of), default=None
    )
    verdicts = [
        ProposalVerdict(
            node=proposal.node, allowed=not of, refusals=of,
            preferred=proposal.rank is not None and proposal.rank == first,
            taken=proposal.rank is not None and not of and proposal.rank == first_left,
        )
        for proposal, of in zip(proposals, refusals, strict=True)
    ]  # fmt: skip
    decisions = [] if ask is None else [_decision(ask, verdicts, question.now)]
    return Result(decisions=decisions, plan=Plan(evictions=[], placements=[]), proposals=verdicts)


def _told(engine: Engine[Any, Any], refused: list[list[Refusal]]) -> list[list[Refusal]]:
    """With the rule's own sentence where the engine has nothing to add."""
    sentences = {rule.rule: rule.sentence for rule in engine.rules}
    return [
        [one if one.detail else msgspec.structs.replace(one, detail=sentences[one.rule]) for one in of]
        for of in refused
    ]


def _check(question: Question, proposals: list[Proposal]) -> None:
    problems: list[Problem] = []
    if len(question.asks) > 1:
        problems.append(Problem(pointer=pointer("asks"), detail="proposals are for one ask"))
    seen: set[str] = set()
    for i, proposal in enumerate(proposals):
        if proposal.node in seen:
            detail = f"a second proposal for node {proposal.node!r}"
            problems.append(Problem(pointer=pointer("proposals", i, "node"), detail=detail))
        seen.add(proposal.node)
    if problems:
        raise InvalidInput(problems)


class _Running:
    """Which evictions are of what runs. The tasks of a workload are looked through once, however many are proposed."""

    def __init__(self, situation: tuple[State, Index]) -> None:
        self._state, self._index = situation
        self._tasks: dict[str, set[str]] = {}

    def __contains__(self, eviction: Eviction) -> bool:
        at = self._index.workloads.get(eviction.workload)
        if at is None or eviction.task is None:
            return at is not None
        names = self._tasks.get(eviction.workload)
        if names is None:
            names = self._tasks[eviction.workload] = {task.name for task in self._state.workloads[at].tasks}
        return eviction.task in names


def _unknown(eviction: Eviction) -> Refusal:
    what = eviction.workload if eviction.task is None else f"{eviction.workload}/{eviction.task}"
    return _refusal(eviction, "unknown-workload", f"the state has no {what!r}")


def _refusal(eviction: Eviction, rule: str, detail: str) -> Refusal:
    return Refusal(workload=eviction.workload, task=eviction.task, rule=rule, detail=detail)


def _decision(ask: Ask, verdicts: list[ProposalVerdict], now: int) -> Decision:
    """The ask may preempt where one proposal is allowed, and waits where none is: for the commonest reason."""
    allowed = sum(verdict.allowed for verdict in verdicts)
    total = len(verdicts)
    reason, message = _ALLOWED, f"{allowed} of {total} proposals are lawful"
    if not allowed:
        refusals = [refusal for verdict in verdicts for refusal in verdict.refusals]
        rules = Counter(refusal.rule for refusal in refusals)
        reason = min(rules, key=lambda rule: (-rules[rule], rule), default="nothing-proposed")
        example = next((refusal for refusal in refusals if refusal.rule == reason), None)
        message = f"none of {total} proposals is lawful" + (
            "" if example is None else f": {example.workload}: {example.detail}"
        )
    condition = Condition(
        type=_ALLOWED, status="True" if allowed else "False", reason=reason, message=message,
        last_transition_time=at(now),
    )  # fmt: skip
    return Decision(ask=ask.id, outcome="preempt" if allowed else "wait", victims=[], conditions=[condition])
