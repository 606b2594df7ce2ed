"""The rules of one run: Kueue's own, or with some of the knobs that KEP-83 deferred turned on.

A run is a whole answer. Where knobs are set, the answer is worked out with and without them, so that a decision
can say which of them changed it (``beyond``). Everything here is off unless a configuration or a workload asks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from app.solver.engines.kueue.compile.configuration import CompiledConfiguration
from app.solver.engines.kueue.compile.knob_findings import knob_findings, milestone_findings
from app.solver.engines.kueue.compile.state import CompiledState, instant
from app.solver.engines.kueue.decide import knobs
from app.solver.engines.kueue.decide.flavors.assign import Search
from app.solver.engines.kueue.decide.overlay import Overlay, Preemptor
from app.solver.engines.kueue.decide.victims.targets import get_targets, nobody, not_yet
from app.solver.model.instant import micros
from app.solver.model.kueue import Preemption, Sorting
from app.solver.model.problems import Finding, InvalidInput, Problem
from app.solver.model.state import Ask

Knob = Literal[
    "trigger_after_workload_waiting_seconds", "workload_sorting", "disruption_cost_milestones", "long_runner_penalty",
    "waiting_boost",
]  # fmt: skip
KNOBS: tuple[Knob, ...] = get_args(Knob)
NONE: frozenset[Knob] = frozenset()
Ranks = NDArray[np.int64]
_MANY = 16


def knobs_set(state: CompiledState, asks: Sequence[Ask]) -> frozenset[Knob]:
    """The knobs that could matter to these asks. Those of the preemptor's queue matter only for asks of that queue,
    those that follow the victim matter wherever they are set."""
    configuration = state.configuration
    mine = [configuration.policy[configuration.tree.index[ask.queue]].preemption for ask in asks]
    found: set[Knob] = set()
    for block in mine:
        found.update(
            name
            for name in ("trigger_after_workload_waiting_seconds", "workload_sorting", "waiting_boost")
            if getattr(block, name) is not None
        )
    if configuration.penalises:
        found.add("long_runner_penalty")
    if configuration.has_costs or state.has_costs():
        found.add("disruption_cost_milestones")
    return frozenset(found)


def check_knobs(state: CompiledState) -> None:
    """Raises InvalidInput where a knob has no meaning that could be computed: milestones out of order and the like."""
    found = knob_problems(state.configuration)
    for i, workload in enumerate(state.workloads):
        if workload.disruption_cost_milestones is not None:
            at = ("state", "workloads", i, "disruption_cost_milestones")
            found += _problems(milestone_findings(workload.disruption_cost_milestones, at))
    if found:
        raise InvalidInput(found)


def knob_problems(configuration: CompiledConfiguration) -> list[Problem]:
    """What is wrong with the knobs of every queue."""
    found: list[Problem] = []
    for i, queue in enumerate(configuration.source.queues):
        if queue.kueue is not None and queue.kueue.preemption is not None:
            at = ("configuration", "queues", i, "kueue", "preemption")
            found += _problems(knob_findings(queue.kueue.preemption, at))
    return found


def _problems(findings: Iterator[Finding]) -> list[Problem]:
    return [Problem(pointer=f.pointer, detail=f.detail) for f in findings]


def waiting_since(ask: Ask) -> int:
    """When the ask was first tried, else when it was made; never, when neither is known: it is older than all."""
    first = ask.kueue.first_attempt_at if ask.kueue is not None else None
    return instant(ask.created_at) if first is None else micros(first)


@dataclass(slots=True)
class Run:
    """``state``: the state, with the priorities that count in this run; ``now`` in microseconds; ``asks``: how many
    this run decides."""

    state: CompiledState
    now: int
    asks: int = 1
    enabled: frozenset[Knob] = NONE
    _ranks: dict[tuple[Sorting, ...], Ranks] = field(default_factory=dict[tuple[Sorting, ...], Ranks])

    def __post_init__(self) -> None:
        if "long_runner_penalty" in self.enabled:
            self.state = self.state.with_priority(np.array(self._penalised(), dtype=np.int64))

    def block(self, ask: Ask) -> Preemption:
        """The preemption block of the ask's queue."""
        configuration = self.state.configuration
        return configuration.policy[configuration.tree.index[ask.queue]].preemption

    def preemptor(self, ask: Ask) -> Preemptor:
        """The ask as the algorithms see it, before it has flavors."""
        priority = ask.priority or 0
        if "waiting_boost" in self.enabled:
            priority = knobs.boosted(priority, self.block(ask).waiting_boost, self.now - waiting_since(ask))
        queue = self.state.configuration.tree.index[ask.queue]
        return Preemptor(ask.id, queue, priority, instant(ask.created_at), ())

    def search(self, ask: Ask) -> Search:
        """How victims are searched for on behalf of ``ask``."""
        if ask.preemption_policy == "Never":
            return nobody
        gated = "trigger_after_workload_waiting_seconds" in self.enabled
        if gated and not knobs.may_trigger(self.block(ask), self.now - waiting_since(ask)):
            return not_yet
        return get_targets

    def prepare(self, overlay: Overlay, ask: Ask) -> None:
        """Tell the overlay whom the ask spares, and in which order candidates of one class go for it."""
        overlay.barred = self.state.protected
        overlay.spare_own(ask.workload)
        overlay.rank = overlay.usual_rank()
        sorting = self.block(ask).workload_sorting if "workload_sorting" in self.enabled else None
        costs = "disruption_cost_milestones" in self.enabled
        # Sorting all workloads once pays off when many asks would each sort those within their reach.
        many = self.asks >= _MANY
        if sorting or costs or (many and overlay.rank is None):
            overlay.rank = self._rank(tuple(sorting or knobs.DEFAULT_SORTING))

    def _penalised(self) -> list[int]:
        state = self.state
        penalty = [policy.preemption.long_runner_penalty for policy in state.configuration.policy]
        return [
            knobs.penalised(workload.priority, penalty[int(queue)], self.now - state.started(i, self.now))
            for i, (workload, queue) in enumerate(zip(state.workloads, state.queue, strict=True))
        ]

    def _rank(self, sorting: tuple[Sorting, ...]) -> Ranks:
        """Place of every workload by these criteria, equal for equals. Costs come just before running time; where
        the criteria leave running time out, costs come last."""
        known = self._ranks.get(sorting)
        if known is None:
            columns = list(self._columns(sorting))
            keys = list(zip(*columns, strict=True))
            place = {key: at for at, key in enumerate(sorted(set(keys)))}
            known = self._ranks[sorting] = np.array([place[key] for key in keys], dtype=np.int64)
        return known

    def _columns(self, sorting: tuple[Sorting, ...]) -> Iterator[Sequence[int | Fraction]]:
        state = self.state
        started = [state.started(i, self.now) for i in range(len(state.workloads))]
        costs = self._costs(started) if "disruption_cost_milestones" in self.enabled else None
        for criterion in sorting:
            if criterion == "ByLowestPriority":
                yield state.priority.tolist()
                continue
            if costs is not None:
                yield costs
                costs = None
            yield started if criterion == "ByLongestRuntime" else [-at for at in started]
        if costs is not None:
            yield costs

    def _costs(self, started: list[int]) -> list[Fraction]:
        state = self.state
        default = [knobs.curve(p.preemption.disruption_cost_milestones or ()) for p in state.configuration.policy]
        own = [w.disruption_cost_milestones for w in state.workloads]
        return [
            knobs.cost(default[int(queue)] if milestones is None else knobs.curve(milestones), self.now - at)
            for milestones, queue, at in zip(own, state.queue, started, strict=True)
        ]
