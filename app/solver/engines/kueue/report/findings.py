"""What Kueue's admission webhooks and CRD rules would refuse, and what its scheduler would silently ignore.

A decision accepts all of this, as a running Kueue does with objects that an older version let in: a finding is for
whoever stores a configuration. Rule ids are stable. Errors are what Kueue refuses or what has no meaning; warnings
are what it accepts and never acts on.
"""

from collections.abc import Iterator, Sequence

from app.solver.engines.kueue.compile.configuration import DEFAULT_FLAVOR
from app.solver.engines.kueue.compile.settings import DEFAULT_STRATEGIES
from app.solver.model import kueue as model
from app.solver.model.configuration import Configuration, Queue, Quota
from app.solver.model.duration import DurationError
from app.solver.model.duration import parse as parse_duration
from app.solver.model.problems import Finding, pointer
from app.solver.model.quantity import UNLIMITED, QuantityError, parse, scale_of

Place = tuple[str | int, ...]

_STRATEGY_LISTS: tuple[tuple[model.Strategy, ...], ...] = (
    ("LessThanOrEqualToFinalShare",),
    ("LessThanInitialShare",),
    DEFAULT_STRATEGIES,
)
_SMALLEST_WEIGHT = 1e-9


def findings(configuration: Configuration) -> list[Finding]:
    """In the order of the document; pointers are relative to it."""
    parents = {q.parent for q in configuration.queues if q.parent is not None}
    out = list(_settings(configuration.settings.kueue or model.Settings()))
    for i, queue in enumerate(configuration.queues):
        at: Place = ("queues", i)
        out += _weight(queue, at)
        out += _role(queue, queue.name in parents, at)
        out += _quotas(queue, queue.name in parents, at)
        out += _flavors(queue, {f.name for f in configuration.flavors}, at)
        if queue.kueue is not None:
            out += _policies(queue.kueue, at=(*at, "kueue"))
    return out


def _error(rule: str, at: Place, detail: str) -> Finding:
    return Finding(rule=f"kueue.{rule}", severity="error", pointer=pointer(*at), detail=detail)


def _warning(rule: str, at: Place, detail: str) -> Finding:
    return Finding(rule=f"kueue.{rule}", severity="warning", pointer=pointer(*at), detail=detail)


def _settings(settings: model.Settings) -> Iterator[Finding]:
    strategies = settings.preemption_strategies
    at: Place = ("settings", "kueue", "preemption_strategies")
    if strategies is None:
        return
    if strategies and tuple(strategies) not in _STRATEGY_LISTS:
        yield _error(
            "strategies-order", at,
            "Kueue takes LessThanOrEqualToFinalShare, LessThanInitialShare, or both in this order",
        )  # fmt: skip
    if strategies and not settings.fair_sharing:
        yield _warning("strategies-unused", at, "preemption strategies are for fair sharing, which is off")


def _weight(queue: Queue, at: Place) -> Iterator[Finding]:
    if not queue.weight >= 0 or queue.weight == float("inf"):
        yield _error(
            "weight-negative", (*at, "weight"), f"a weight of {queue.weight} is not a finite number, 0 or more"
        )
    elif 0 < queue.weight <= _SMALLEST_WEIGHT:
        yield _error("weight-too-small", (*at, "weight"), "a weight other than 0 is above 1e-9")


def _role(queue: Queue, has_children: bool, at: Place) -> Iterator[Finding]:
    block = queue.kueue or model.Queue()
    if block.role == "cluster_queue" and has_children:
        yield _error("cluster-queue-with-children", (*at, "kueue", "role"), "only a cohort has queues below it")
    if block.role == "cohort" or (block.role is None and has_children):
        unread = [name for name in ("preemption", "flavor_fungibility") if getattr(block, name) is not None]
        unread += ["queueing_strategy"] if block.queueing_strategy != "BestEffortFIFO" else []
        for name in unread:
            yield _warning("cohort-policy-unused", (*at, "kueue", name), f"a cohort has no {name}")


def _quotas(queue: Queue, is_cohort: bool, at: Place) -> Iterator[Finding]:
    rootless = queue.parent is None
    is_cohort = is_cohort or (queue.kueue is not None and queue.kueue.role == "cohort")
    for place, resource, quota in _each_quota(queue, at):
        for field in ("borrowing_limit", "lending_limit"):
            if rootless and getattr(quota, field) is not None:
                detail = f"a {field} needs a cohort above: this queue has no parent"
                yield _error("limit-without-parent", (*place, field), detail)
        if not is_cohort and _over(quota.lending_limit, quota.guaranteed, resource):
            detail = "lends more than it owns: the lending limit is above the nominal quota"
            yield _error("lending-over-nominal", (*place, "lending_limit"), detail)
        if _over(quota.guaranteed, quota.limit, resource):
            yield _error("limit-below-nominal", (*place, "limit"), "the limit is below the guaranteed quota")


def _each_quota(queue: Queue, at: Place) -> Iterator[tuple[Place, str, Quota]]:
    for resource, quota in (queue.quota or {}).items():
        yield (*at, "quota", resource), resource, quota
    for g, group in enumerate(queue.resource_groups or ()):
        for f, flavor in enumerate(group.flavors):
            for resource, quota in flavor.quota.items():
                yield (*at, "resource_groups", g, "flavors", f, "quota", resource), resource, quota


def _over(value: object, most: object, resource: str) -> bool:
    """Whether ``value`` is above ``most``; an absent limit is never passed, an absent quota is 0."""
    if value is None or value == UNLIMITED or most == UNLIMITED:
        return False
    return _steps(value, resource) > _steps(most, resource) if most is not None else False


def _steps(value: object, resource: str) -> int:
    try:
        return parse(value, scale_of(resource)) if isinstance(value, (int, float, str)) else 0
    except QuantityError:
        return 0


def _flavors(queue: Queue, known: set[str], at: Place) -> Iterator[Finding]:
    seen: set[str] = set()
    for g, group in enumerate(queue.resource_groups or ()):
        here: Place = (*at, "resource_groups", g)
        if not group.flavors or not group.resources:
            yield _error("empty-resource-group", here, "a resource group covers at least one resource by one flavor")
        for f, flavor in enumerate(group.flavors):
            place: Place = (*here, "flavors", f)
            if flavor.name in seen:
                detail = f"flavor {flavor.name!r} is in two resource groups"
                yield _error("flavor-in-two-groups", (*place, "name"), detail)
            seen.add(flavor.name)
            if flavor.name not in known and flavor.name != DEFAULT_FLAVOR:
                detail = f"no flavor {flavor.name!r}: it is never chosen (Kueue keeps the ClusterQueue inactive)"
                yield _warning("flavor-not-found", (*place, "name"), detail)
            for resource in group.resources:
                if resource not in flavor.quota:
                    detail = f"no quota for {resource!r}, which the group covers: it counts as 0"
                    yield _error("resource-without-quota", (*place, "quota"), detail)


def _policies(block: model.Queue, at: Place) -> Iterator[Finding]:
    rules = block.flavor_fungibility or model.FlavorFungibility()
    try_next = rules.when_can_borrow == rules.when_can_preempt == "TryNextFlavor"
    if rules.preference is not None and not try_next:
        yield _error(
                "preference-without-try-next", (*at, "flavor_fungibility", "preference"),
                "a preference needs when_can_borrow and when_can_preempt both TryNextFlavor",
            )  # fmt: skip
    preemption = block.preemption
    if preemption is None:
        return
    here: Place = (*at, "preemption")
    borrow = preemption.borrow_within_cohort
    if borrow is not None and borrow.policy != "Never" and preemption.reclaim_within_cohort == "Never":
        detail = "borrow_within_cohort needs reclaim_within_cohort other than Never"
        yield _error("borrow-without-reclaim", (*here, "borrow_within_cohort"), detail)
    if borrow is not None and borrow.policy == "Never" and borrow.max_priority_threshold is not None:
        detail = "a threshold says nothing while the policy is Never"
        yield _warning("threshold-unused", (*here, "borrow_within_cohort", "max_priority_threshold"), detail)
    yield from knob_findings(preemption, here)


def knob_findings(preemption: model.Preemption, at: Place) -> Iterator[Finding]:
    """What is wrong with the knobs that KEP-83 deferred."""
    waiting = preemption.trigger_after_workload_waiting_seconds
    if waiting is not None and not 0 <= waiting < float("inf"):
        yield _error(
            "waiting-negative", (*at, "trigger_after_workload_waiting_seconds"), "seconds are finite, 0 or more"
        )
    if preemption.workload_sorting is not None:
        yield from _sorting_findings(preemption.workload_sorting, (*at, "workload_sorting"))
    if preemption.disruption_cost_milestones is not None:
        yield from milestone_findings(preemption.disruption_cost_milestones, (*at, "disruption_cost_milestones"))
    for name in ("long_runner_penalty", "waiting_boost"):
        rate: model.LongRunnerPenalty | model.WaitingBoost | None = getattr(preemption, name)
        if rate is not None:
            yield from _rate_findings(rate, (*at, name))


def _sorting_findings(sorting: Sequence[model.Sorting], at: Place) -> Iterator[Finding]:
    """Each criterion once, and running time in one direction only."""
    for i, criterion in enumerate(sorting):
        if criterion in sorting[:i]:
            yield _error("sorting-repeated", (*at, i), f"{criterion} is listed twice")
    if "ByLowestRuntime" in sorting and "ByLongestRuntime" in sorting:
        yield _error("sorting-contradicts", at, "ByLowestRuntime and ByLongestRuntime contradict each other")


def milestone_findings(milestones: Sequence[model.Milestone], at: Place) -> Iterator[Finding]:
    """Times ascend strictly from 0 on; costs are finite, 0 or more."""
    for i, milestone in enumerate(milestones):
        if not 0 <= milestone.seconds <= 1e12:
            yield _error("milestone-time", (*at, i, "seconds"), "seconds are from 0 to 1e12")
        elif i and not milestone.seconds > milestones[i - 1].seconds:
            yield _error(
                "milestones-order", (*at, i, "seconds"), "milestones are listed by ascending time, each time once"
            )
        if not 0 <= milestone.cost <= 1e15:
            yield _error("milestone-cost", (*at, i, "cost"), "a cost is from 0 to 1e15")


def _rate_findings(rate: model.LongRunnerPenalty | model.WaitingBoost, at: Place) -> Iterator[Finding]:
    if not 0 <= rate.rate_per_hour <= 1e9:
        yield _error("rate-negative", (*at, "rate_per_hour"), "priority points an hour are from 0 to 1e9")
    try:
        if parse_duration(rate.grace) < 0:
            yield _error("grace-negative", (*at, "grace"), "a grace period is not negative")
    except DurationError as error:
        yield _error("grace-negative", (*at, "grace"), str(error))
