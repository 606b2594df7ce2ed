"""The rules of one run: Kueue's own, or with some of the knobs that KEP-83 proposed and deferred turned on.

Waiting before preempting, priorities that move with time; when time alone lets a waiting ask preempt or a running
workload be preempted; and what has no meaning that could be computed, which is refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from app.solver.engines.kueue.admission_sharing import Order, local_queue, rates_of
from app.solver.engines.kueue.candidates import SILENT, Recorder
from app.solver.engines.kueue.configuration import CompiledConfiguration
from app.solver.engines.kueue.flavors import Search
from app.solver.engines.kueue.overlay import Overlay, Preemptor
from app.solver.engines.kueue.preemption import get_targets, nobody, not_yet
from app.solver.engines.kueue.state import CompiledState, instant
from app.solver.model import kueue as model
from app.solver.model.base import DurationError, micros, parse_duration
from app.solver.model.configuration import Place
from app.solver.model.kueue import LongRunnerPenalty, Milestone, Preemption, Sorting, WaitingBoost
from app.solver.model.problems import Finding, InvalidInput, Problem, pointer, repeated
from app.solver.model.state import Ask


def error(rule: str, where: Place, detail: str) -> Finding:
    """A finding that refuses a write; ``rule`` without the engine's name."""
    return Finding(rule=f"kueue.{rule}", severity="error", pointer=pointer(*where), detail=detail)


def knob_findings(preemption: model.Preemption, where: Place) -> Iterator[Finding]:
    """What is wrong with the knobs that KEP-83 deferred."""
    waiting = preemption.trigger_after_workload_waiting_seconds
    if waiting is not None and not 0 <= waiting < float("inf"):
        yield error(
            "waiting-negative", (*where, "trigger_after_workload_waiting_seconds"), "seconds are finite, 0 or more"
        )
    if preemption.workload_sorting is not None:
        yield from _sorting_findings(preemption.workload_sorting, (*where, "workload_sorting"))
    if preemption.disruption_cost_milestones is not None:
        yield from milestone_findings(preemption.disruption_cost_milestones, (*where, "disruption_cost_milestones"))
    for name in ("long_runner_penalty", "waiting_boost"):
        rate: model.LongRunnerPenalty | model.WaitingBoost | None = getattr(preemption, name)
        if rate is not None:
            yield from _rate_findings(rate, (*where, name))


def _sorting_findings(sorting: Sequence[model.Sorting], where: Place) -> Iterator[Finding]:
    """Each criterion once, and running time in one direction only."""
    for i in repeated(sorting):
        yield error("sorting-repeated", (*where, i), f"{sorting[i]} is listed twice")
    if "ByLowestRuntime" in sorting and "ByLongestRuntime" in sorting:
        yield error("sorting-contradicts", where, "ByLowestRuntime and ByLongestRuntime contradict each other")


def milestone_findings(milestones: Sequence[model.Milestone], where: Place) -> Iterator[Finding]:
    """Times ascend strictly from 0 on; costs are finite, 0 or more."""
    for i, milestone in enumerate(milestones):
        if not 0 <= milestone.seconds <= 1e12:
            yield error("milestone-time", (*where, i, "seconds"), "seconds are from 0 to 1e12")
        elif i and not milestone.seconds > milestones[i - 1].seconds:
            yield error(
                "milestones-order", (*where, i, "seconds"), "milestones are listed by ascending time, each time once"
            )
        if not 0 <= milestone.cost <= 1e15:
            yield error("milestone-cost", (*where, i, "cost"), "a cost is from 0 to 1e15")


def _rate_findings(rate: model.LongRunnerPenalty | model.WaitingBoost, where: Place) -> Iterator[Finding]:
    if not 0 <= rate.rate_per_hour <= 1e9:
        yield error("rate-negative", (*where, "rate_per_hour"), "priority points an hour are from 0 to 1e9")
    try:
        if parse_duration(rate.grace) < 0:
            yield error("grace-negative", (*where, "grace"), "a grace period is not negative")
    except DurationError as refusal:
        yield error("grace-negative", (*where, "grace"), str(refusal))


HOUR = 3_600_000_000
SECOND = 1_000_000
DEFAULT_SORTING: tuple[Sorting, ...] = ("ByLowestPriority", "ByLowestRuntime")

Curve = tuple[tuple[Fraction, Fraction], ...]
"""(running time in microseconds, cost), by time."""


def points(rate_per_hour: float, elapsed: int) -> int:
    """Whole priority points that ``elapsed`` microseconds are worth; none before time 0."""
    return int(Fraction(rate_per_hour) * max(0, elapsed) / HOUR)


def penalised(priority: int, penalty: LongRunnerPenalty | None, running: int) -> int:
    """Priority of a workload that has run for ``running``: falls after the grace period, never below the floor. A
    priority that is at or below the floor already stays."""
    if penalty is None:
        return priority
    fallen = priority - points(penalty.rate_per_hour, running - parse_duration(penalty.grace))
    return max(fallen, min(priority, penalty.floor))


def boosted(priority: int, boost: WaitingBoost | None, waiting: int) -> int:
    """Priority of an ask that has waited for ``waiting``: rises after the grace period, never above the ceiling."""
    if boost is None:
        return priority
    risen = priority + points(boost.rate_per_hour, waiting - parse_duration(boost.grace))
    return min(risen, max(priority, boost.ceiling))


def may_trigger(preemption: Preemption | None, waiting: int) -> bool:
    """Whether an ask that has waited for ``waiting`` may preempt yet."""
    seconds = preemption.trigger_after_workload_waiting_seconds if preemption is not None else None
    return seconds is None or waiting >= Fraction(seconds) * SECOND


def curve(milestones: Sequence[Milestone]) -> Curve:
    """Milestones as exact numbers."""
    return tuple((Fraction(m.seconds) * SECOND, Fraction(m.cost)) for m in milestones)


def cost(of: Curve, running: int) -> Fraction:
    """Linear between milestones, constant before the first and after the last; no milestones cost nothing."""
    if not of:
        return Fraction(0)
    before = of[0]
    if running <= before[0]:
        return before[1]
    for after in of[1:]:
        if running <= after[0]:
            part = (running - before[0]) / (after[0] - before[0])
            return before[1] + (after[1] - before[1]) * part
        before = after
    return before[1]


Knob = Literal[
    "trigger_after_workload_waiting_seconds", "workload_sorting", "disruption_cost_milestones", "long_runner_penalty",
    "waiting_boost",
]  # fmt: skip
KNOBS: tuple[Knob, ...] = get_args(Knob)
NONE: frozenset[Knob] = frozenset()
Ranks = NDArray[np.int64]
MANY = 16


def any_set(configuration: CompiledConfiguration) -> bool:
    """Whether some queue sets one."""
    blocks = [policy.preemption for policy in configuration.policy]
    return (
        configuration.penalises
        or configuration.has_costs
        or any(getattr(block, knob) is not None for block in blocks for knob in KNOBS)
    )


def knobs_set(state: CompiledState, asks: Sequence[Ask]) -> frozenset[Knob]:
    """The knobs that could matter to these asks. Those of the preemptor's queue matter only for asks of that queue,
    those that follow the victim matter wherever they are set."""
    configuration = state.configuration
    mine = [configuration.policy[configuration.tree.index[ask.queue]].preemption for ask in asks]
    knobs: set[Knob] = set()
    for block in mine:
        knobs.update(
            name
            for name in ("trigger_after_workload_waiting_seconds", "workload_sorting", "waiting_boost")
            if getattr(block, name) is not None
        )
    if configuration.penalises:
        knobs.add("long_runner_penalty")
    if configuration.has_costs or state.has_costs():
        knobs.add("disruption_cost_milestones")
    return frozenset(knobs)


def check_knobs(state: CompiledState) -> None:
    """Raises InvalidInput where a knob has no meaning that could be computed: milestones out of order and the like."""
    problems = knob_problems(state.configuration)
    for i, workload in enumerate(state.workloads):
        if workload.disruption_cost_milestones is not None:
            where = ("state", "workloads", i, "disruption_cost_milestones")
            problems += _problems(milestone_findings(workload.disruption_cost_milestones, where))
    if problems:
        raise InvalidInput(problems)


def knob_problems(configuration: CompiledConfiguration) -> list[Problem]:
    """What is wrong with the knobs of every queue."""
    problems: list[Problem] = []
    for i, queue in enumerate(configuration.source.queues):
        if queue.kueue is not None and queue.kueue.preemption is not None:
            where = ("configuration", "queues", i, "kueue", "preemption")
            problems += _problems(knob_findings(queue.kueue.preemption, where))
    return problems


def _problems(findings: Iterator[Finding]) -> list[Problem]:
    return [Problem(pointer=f.pointer, detail=f.detail) for f in findings]


def waiting_since(ask: Ask) -> int:
    """When the ask was first tried, else when it was made; never, when neither is known: it is older than all."""
    first = ask.kueue.first_attempt_at if ask.kueue is not None else None
    return instant(ask.created_at) if first is None else micros(first)


@dataclass(slots=True)
class Run:
    """``state``: the state, with the priorities that count in this run; ``now`` in microseconds; ``asks``: how many
    this run decides; ``consumed``: what LocalQueues have, where some queue goes by it."""

    state: CompiledState
    now: int
    asks: int = 1
    enabled: frozenset[Knob] = NONE
    consumed: Order | None = None
    _ranks: dict[tuple[Sorting, ...], Ranks] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sharing = self.state.configuration.admission_fair_sharing
        self.consumed = None if sharing is None else Order(self.state, rates_of(sharing), self.now)
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
            priority = boosted(priority, self.block(ask).waiting_boost, self.now - waiting_since(ask))
        queue = self.state.configuration.tree.index[ask.queue]
        return Preemptor(ask.id, queue, priority, instant(ask.created_at), ())

    def begin(self, overlay: Overlay, ask: Ask, record: Recorder = SILENT) -> tuple[Preemptor, Search]:
        """The ask as the algorithms see it, before it has flavors, and how victims are searched for on its behalf; the
        overlay is told of it."""
        self.prepare(overlay, ask)
        preemptor = self.preemptor(ask)
        if preemptor.priority != (given := ask.priority or 0):
            record.boosted(given, preemptor.priority)
        self.tell_consumed(ask, record)
        return preemptor, self.search(ask)

    def tell_consumed(self, ask: Ask, record: Recorder) -> None:
        """What the ask's LocalQueue has consumed, where its queue goes by it."""
        if self.consumed is not None and self.consumed.counts(ask.queue):
            name = local_queue(ask)
            record.consumed(name, self.consumed.usage(name), known=self.consumed.known(name))

    def search(self, ask: Ask) -> Search:
        """How victims are searched for on behalf of ``ask``."""
        if ask.preemption_policy == "Never":
            return nobody
        gated = "trigger_after_workload_waiting_seconds" in self.enabled
        if gated and not may_trigger(self.block(ask), self.now - waiting_since(ask)):
            return not_yet
        return get_targets

    def prepare(self, overlay: Overlay, ask: Ask) -> None:
        """Tell the overlay whom the ask spares, and in which order candidates of one class go for it."""
        overlay.favour = None if self.consumed is None else self.consumed.by_workload
        sorting = self.block(ask).workload_sorting if "workload_sorting" in self.enabled else None
        if sorting or "disruption_cost_milestones" in self.enabled:
            overlay.prepare(ask.workload, lambda _: self._rank(tuple(sorting or DEFAULT_SORTING)))
        else:
            overlay.prepare(ask.workload, self._usual_rank if self.asks >= MANY else Overlay.usual_rank)

    def _usual_rank(self, overlay: Overlay) -> Ranks:
        """Sorting all workloads once pays off when many asks would each sort those within their reach."""
        rank = overlay.usual_rank()
        return self._rank(tuple(DEFAULT_SORTING)) if rank is None else rank

    def _penalised(self) -> list[int]:
        state = self.state
        penalty = [policy.preemption.long_runner_penalty for policy in state.configuration.policy]
        return [
            penalised(workload.priority, penalty[int(queue)], self.now - state.started(i, self.now))
            for i, (workload, queue) in enumerate(zip(state.workloads, state.queue, strict=True))
        ]

    def _rank(self, sorting: tuple[Sorting, ...]) -> Ranks:
        """Place of every workload by these criteria, equal for equals. Costs come just before running time; where
        the criteria leave running time out, costs come last."""
        known = self._ranks.get(sorting)
        if known is None:
            columns = list(self._columns(sorting))
            keys = list(zip(*columns, strict=True))
            place = {key: i for i, key in enumerate(sorted(set(keys)))}
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
            yield started if criterion == "ByLongestRuntime" else [-start for start in started]
        if costs is not None:
            yield costs

    def _costs(self, started: list[int]) -> list[Fraction]:
        state = self.state
        default = [curve(p.preemption.disruption_cost_milestones or ()) for p in state.configuration.policy]
        own = [w.disruption_cost_milestones for w in state.workloads]
        return [
            cost(default[int(queue)] if milestones is None else curve(milestones), self.now - start)
            for milestones, queue, start in zip(own, state.queue, started, strict=True)
        ]


def ask_turns(block: Preemption, ask: Ask, now: int) -> int | None:
    """When ``ask``, after ``now``, may first preempt at all, or next counts for another priority; None: never."""
    since = waiting_since(ask)
    moments: list[int] = []
    after = block.trigger_after_workload_waiting_seconds
    if after is not None and not may_trigger(block, now - since):
        moments.append(since + _up(Fraction(after) * SECOND))
    boost = block.waiting_boost
    if boost is not None and boosted(ask.priority or 0, boost, now - since) < boost.ceiling:
        moments += _next_point(boost.rate_per_hour, since + parse_duration(boost.grace), now)
    return min(moments, default=None)


def victim_turns(penalty: LongRunnerPenalty | None, priority: int, since: int, now: int) -> int | None:
    """When a workload of ``priority`` that runs since ``since`` next counts for less, after ``now``; None: never."""
    if penalty is None or penalised(priority, penalty, now - since) <= penalty.floor:
        return None
    return next(iter(_next_point(penalty.rate_per_hour, since + parse_duration(penalty.grace), now)), None)


def _next_point(rate_per_hour: float, start: int, now: int) -> list[int]:
    """When the next whole point is reached, counted from ``start``: after ``now``, as those until then are counted."""
    if rate_per_hour <= 0:
        return []
    return [start + _up((points(rate_per_hour, now - start) + 1) * HOUR / Fraction(rate_per_hour))]


def _up(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
