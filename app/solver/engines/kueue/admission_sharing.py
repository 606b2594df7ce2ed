"""Admission fair sharing: work of the LocalQueue that has consumed least goes first, of the most is preempted first.

That holds within a ClusterQueue, before priority. What is consumed decays with a half life, and is sampled at intervals
with what runs. Being admitted costs a sampling interval of what was requested beforehand. Amounts have nine decimals,
rounded down, as in Kueue.

Source: Kueue ``pkg/util/admissionfairsharing``, ``pkg/util/resource`` (MulByFloat),
``pkg/controller/core/localqueue_controller.go`` (reconcileConsumedUsage), ``workload_controller.go``
(updateAfsConsumedUsage), ``pkg/scheduler/preemption/common/ordering.go``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_DOWN, Context, Decimal
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import replace

from app.solver.engines.kueue.state import CompiledState
from app.solver.kubernetes import PODS
from app.solver.model.base import DurationError, exact, micros, parse_duration, parse_quantity, scale_of, to_datetime
from app.solver.model.kueue import AdmissionFairSharing, QueueState
from app.solver.model.problems import Finding, InvalidInput, Problem, pointer
from app.solver.model.state import Ask, Task, Workload

Consumed = dict[str, Decimal]
"""Whole units by resource."""
_EXACT = Context(prec=200)
_FINEST = Decimal("1e-9")
_SECOND = 10**6


class Rates(NamedTuple):
    """How consumption counts: half life in seconds, sampling interval in microseconds, what a unit of each resource
    counts."""

    half_life: float
    interval: int
    weights: Mapping[str, float]

    def part(self, elapsed: int) -> float:
        """The part of what is consumed that the last ``elapsed`` microseconds make up (Kueue: calculateAlphaRate)."""
        return 0.0 if not self.half_life else 1.0 - 0.5 ** (elapsed / _SECOND / self.half_life)


class LocalQueueUsage(NamedTuple):
    """What a LocalQueue has consumed as of ``updated``, in microseconds; None: it has not been sampled yet."""

    consumed: Consumed
    penalty: Consumed
    updated: int | None
    weight: float

    def usage(self, rates: Rates) -> float:
        """What orders LocalQueues: the lower goes first (Kueue: CalculateUsage)."""
        if self.weight <= 0:
            return float("inf")
        together = _sum(self.consumed, self.penalty)
        return sum(rates.weights.get(name, 1.0) * float(together[name]) for name in sorted(together)) / self.weight

    def sampled(self, running: Consumed, now: int, rates: Rates) -> "LocalQueueUsage":
        """With all samples taken until ``now``, at each of which ``running`` ran."""
        if self.updated is None:
            return self._replace(updated=now)
        since = (now - self.updated) // rates.interval * rates.interval
        return self._until(self.updated + since, running, rates) if since > 0 else self

    def admitted(self, running: Consumed, requested: Consumed, now: int, rates: Rates) -> "LocalQueueUsage":
        """After an admission at ``now``, with which ``running`` runs, of what ``requested`` so much."""
        sampled = self._until(now, running, rates)
        return sampled._replace(consumed=_sum(sampled.consumed, _times(requested, rates.part(rates.interval))))

    def _until(self, now: int, running: Consumed, rates: Rates) -> "LocalQueueUsage":
        if not rates.half_life:
            return self._replace(consumed={}, updated=now)
        part = rates.part(max(0, now - (now if self.updated is None else self.updated)))
        return self._replace(consumed=_sum(_times(self.consumed, 1 - part), _times(running, part)), updated=now)

    def to_wire(self) -> QueueState:
        """On the wire, exactly."""
        return QueueState(
            consumed={name: format(amount, "f") for name, amount in sorted(self.consumed.items())},
            updated_at=None if self.updated is None else to_datetime(self.updated),
            penalty={name: format(amount, "f") for name, amount in sorted(self.penalty.items())}, weight=self.weight,
        )  # fmt: skip


NEW = LocalQueueUsage({}, {}, None, 1.0)


def local_queue_usage(of: QueueState | None) -> LocalQueueUsage:
    """Raises QuantityError."""
    if of is None:
        return NEW
    consumed = {name: exact(amount) for name, amount in (of.consumed or {}).items()}
    penalty = {name: exact(amount) for name, amount in of.penalty.items()}
    return LocalQueueUsage(consumed, penalty, None if of.updated_at is None else micros(of.updated_at), of.weight)


def rates_of(given: AdmissionFairSharing) -> Rates:
    """How usage is counted. Raises InvalidInput where it has no meaning."""
    if problems := list(sharing_findings(given)):
        raise InvalidInput(Problem(pointer="/configuration" + of.pointer, detail=of.detail) for of in problems)
    half_life = parse_duration(given.usage_half_life_time) / _SECOND
    return Rates(half_life, parse_duration(given.usage_sampling_interval), given.resource_weights)


def sharing_findings(given: AdmissionFairSharing) -> Iterator[Finding]:
    """What has no meaning (Kueue: validateAdmissionFairSharing)."""
    for name, least in (("usage_half_life_time", 0), ("usage_sampling_interval", 1)):
        try:
            bad = (
                None
                if parse_duration(getattr(given, name)) >= least
                else f"a duration {'above' if least else 'not below'} 0"
            )
        except DurationError as refusal:
            bad = str(refusal)
        if bad is not None:
            yield _error("sharing-duration", name, detail=bad)
    for resource, weight in given.resource_weights.items():
        if not 0 <= weight < float("inf"):
            yield _error("sharing-weight", "resource_weights", resource, detail="a weight is finite, 0 or more")


def _error(rule: str, *keys: str, detail: str) -> Finding:
    where = pointer("settings", "kueue", "admission_fair_sharing", *keys)
    return Finding(rule=f"kueue.{rule}", severity="error", pointer=where, detail=detail)


def requested(tasks: Iterable[Task]) -> Consumed:
    """All that pod sets ask for."""
    total: Consumed = {}
    for task in tasks:
        for resource, amount in task.requests.items():
            steps = Decimal(parse_quantity(amount, scale_of(resource)) * task.count) / scale_of(resource)
            total[resource] = total.get(resource, Decimal(0)) + steps
    return total


def assigned(tasks: Iterable[Task]) -> Consumed:
    """What admitted pod sets use of what has a flavor: of "pods" one each."""
    total: Consumed = {}
    for task in tasks:
        given = {name: amount for name, amount in task.requests.items() if name in (task.flavors or {})}
        if PODS in (task.flavors or {}):
            given[PODS] = 1
        total = _sum(total, requested([replace(task, requests=given)]))
    return total


def local_queue(of: Ask | Workload) -> str:
    """The LocalQueue that it came by."""
    return of.queue if of.kueue is None or of.kueue.local_queue is None else of.kueue.local_queue


def holds(state: CompiledState, workload: int) -> Consumed:
    """What a running workload uses of what its queue has quota for, whatever the flavor."""
    held: Consumed = {}
    for fr, steps in state.amounts(workload):
        resource = state.quotas.frs[fr][1]
        held[resource] = held.get(resource, Decimal(0)) + Decimal(steps) / scale_of(resource)
    return held


def _sum(a: Consumed, b: Consumed) -> Consumed:
    return {name: _EXACT.add(a.get(name, Decimal(0)), b.get(name, Decimal(0))) for name in {**a, **b}}


def _times(of: Consumed, factor: float) -> Consumed:
    by = Decimal(repr(factor))
    return {
        name: _EXACT.multiply(amount, by).quantize(_FINEST, ROUND_DOWN, _EXACT).normalize(_EXACT)
        for name, amount in of.items()
    }


class Order:
    """Who has consumed how much, in a state at an instant. Made where some ClusterQueue goes by it."""

    def __init__(self, state: CompiledState, rates: Rates, now: int) -> None:
        self._state = state
        self._rates = rates
        self._now = now
        self._usage: dict[str, float] = {}

    def counts(self, queue: str) -> bool:
        """Whether ClusterQueue ``queue`` goes by it."""
        configuration = self._state.configuration
        return configuration.usage_based[configuration.tree.index[queue]]

    def known(self, name: str) -> bool:
        """Whether anybody said what the LocalQueue has consumed."""
        of = self._state.local_queues.get(name)
        return of is not None and of.consumed is not None

    def usage(self, name: str) -> float:
        """Of a LocalQueue."""
        if name not in self._usage:
            own = local_queue_usage(self._state.local_queues.get(name))
            self._usage[name] = own.sampled(self._running.get(name, {}), self._now, self._rates).usage(self._rates)
        return self._usage[name]

    @cached_property
    def _running(self) -> dict[str, Consumed]:
        return running(self._state)

    @cached_property
    def by_workload(self) -> "Favour":
        """Of all that runs."""
        state = self._state
        names = [local_queue(of) for of in state.workloads]
        based, queues = state.configuration.usage_based, state.queue.tolist()
        usage = [self.usage(name) if based[queue] else 0.0 for name, queue in zip(names, queues, strict=True)]
        return Favour(usage, [name.rpartition("/")[2] for name in names])


class Favour(NamedTuple):
    """By running workload: what its LocalQueue has consumed, and what that is called within its namespace."""

    usage: Sequence[float]
    called: Sequence[str]

    def of(self, workloads: Sequence[int]) -> dict[int, float] | None:
        """What counts between ``workloads`` of one ClusterQueue; None: nothing. Kueue compares only where the names of
        LocalQueues differ, whatever their namespaces."""
        if len({self.called[i] for i in workloads}) < 2:
            return None
        return {i: -self.usage[i] for i in workloads}


def running(state: CompiledState) -> dict[str, Consumed]:
    """What runs of each LocalQueue of a ClusterQueue that goes by it."""
    by_name: dict[str, Consumed] = {}
    based = state.configuration.usage_based
    for i, of in enumerate(state.workloads):
        if based[int(state.queue[i])]:
            name = local_queue(of)
            by_name[name] = _sum(by_name.get(name, {}), holds(state, i))
    return by_name


class LocalQueueUsages:
    """What LocalQueues have consumed while time passes. ``begun``: whether it has been told what there was before."""

    def __init__(self, rates: Rates) -> None:
        self.rates = rates
        self.begun = False
        self._usages: dict[str, LocalQueueUsage] = {}
        self._running: dict[str, Consumed] = {}
        self._holds: dict[str, tuple[str, Consumed]] = {}

    def begin(self, state: CompiledState, now: int) -> None:
        """It starts with what the state says."""
        self.begun = True
        self._usages = {name: local_queue_usage(of) for name, of in state.local_queues.items()}
        based = state.configuration.usage_based
        for i, of in enumerate(state.workloads):
            if based[int(state.queue[i])]:
                self._runs(of.id, local_queue(of), holds(state, i))
        self.sample(now)

    def sample(self, now: int) -> None:
        """Take all samples that are due."""
        for name in self._usages.keys() | self._running.keys():
            own = self._usages.get(name, NEW)
            self._usages[name] = own.sampled(self._running.get(name, {}), now, self.rates)

    def admitted(self, job: str, name: str, held: Consumed, requested: Consumed, now: int) -> None:
        """``job`` of LocalQueue ``name`` was admitted."""
        self.sample(now)
        self._runs(job, name, held)
        own = self._usages.get(name, NEW)
        self._usages[name] = own.admitted(self._running[name], requested, now, self.rates)

    def released(self, job: str, now: int) -> None:
        """``job`` runs no longer."""
        if job in self._holds:
            self.sample(now)
            name, held = self._holds.pop(job)
            self._running[name] = _sum(self._running[name], {resource: -amount for resource, amount in held.items()})

    def usage(self, name: str) -> float:
        """As of the last sample."""
        return self._usages.get(name, NEW).usage(self.rates)

    def news(self, known: Mapping[str, QueueState]) -> dict[str, QueueState]:
        """What differs from what is ``known``."""
        every = {name: of.to_wire() for name, of in sorted(self._usages.items())}
        return {name: of for name, of in every.items() if known.get(name) != of}

    def turns(self, first: str, others: Sequence[str]) -> int | None:
        """When the next sample could let one of ``others`` go before ``first``; None: never, as things run now. All
        decay at one rate, so that two change places once at most: if they do in the end."""
        if not self.rates.half_life or not any(self._in_the_end(name) < self._in_the_end(first) for name in others):
            return None
        sampled = [of.updated for name in (first, *others) if (of := self._usages.get(name)) is not None]
        return min((since + self.rates.interval for since in sampled if since is not None), default=None)

    def _in_the_end(self, name: str) -> float:
        own = self._usages.get(name, NEW)
        return own._replace(consumed=self._running.get(name, {})).usage(self.rates)

    def _runs(self, job: str, name: str, held: Consumed) -> None:
        self._holds[job] = name, held
        self._running[name] = _sum(self._running.get(name, {}), held)
