"""What Kueue's admission webhooks and CRD rules would refuse, and what its scheduler would silently ignore.

A decision accepts all of this, as a running Kueue does with objects that an older version let in: a finding is for
whoever stores a configuration. Rule ids are stable. Errors are what Kueue refuses or what has no meaning; warnings
are what it accepts and never acts on.
"""

from collections.abc import Iterator

from app.solver.engines.kueue.compile.configuration import DEFAULT_FLAVOR
from app.solver.engines.kueue.compile.knob_findings import error, knob_findings
from app.solver.engines.kueue.compile.settings import DEFAULT_STRATEGIES
from app.solver.model import kueue as model
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.problems import Finding, pointer
from app.solver.model.quantity import UNLIMITED, QuantityError, parse, scale_of
from app.solver.quotas import Place, quotas

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


def _warning(rule: str, at: Place, detail: str) -> Finding:
    return Finding(rule=f"kueue.{rule}", severity="warning", pointer=pointer(*at), detail=detail)


def _settings(settings: model.Settings) -> Iterator[Finding]:
    strategies = settings.preemption_strategies
    at: Place = ("settings", "kueue", "preemption_strategies")
    if strategies is None:
        return
    if strategies and tuple(strategies) not in _STRATEGY_LISTS:
        yield error(
            "strategies-order", at,
            "Kueue takes LessThanOrEqualToFinalShare, LessThanInitialShare, or both in this order",
        )  # fmt: skip
    if strategies and not settings.fair_sharing:
        yield _warning("strategies-unused", at, "preemption strategies are for fair sharing, which is off")


def _weight(queue: Queue, at: Place) -> Iterator[Finding]:
    if not queue.weight >= 0 or queue.weight == float("inf"):
        yield error("weight-negative", (*at, "weight"), f"a weight of {queue.weight} is not a finite number, 0 or more")
    elif 0 < queue.weight <= _SMALLEST_WEIGHT:
        yield error("weight-too-small", (*at, "weight"), "a weight other than 0 is above 1e-9")


def _role(queue: Queue, has_children: bool, at: Place) -> Iterator[Finding]:
    block = queue.kueue or model.Queue()
    if block.role == "cluster_queue" and has_children:
        yield error("cluster-queue-with-children", (*at, "kueue", "role"), "only a cohort has queues below it")
    if block.role == "cohort" or (block.role is None and has_children):
        unread = [name for name in ("preemption", "flavor_fungibility") if getattr(block, name) is not None]
        unread += ["queueing_strategy"] if block.queueing_strategy != "BestEffortFIFO" else []
        for name in unread:
            yield _warning("cohort-policy-unused", (*at, "kueue", name), f"a cohort has no {name}")


def _quotas(queue: Queue, is_cohort: bool, at: Place) -> Iterator[Finding]:
    rootless = queue.parent is None
    is_cohort = is_cohort or (queue.kueue is not None and queue.kueue.role == "cohort")
    for _, resource, quota, place in quotas(queue, at):
        for field in ("borrowing_limit", "lending_limit"):
            if rootless and getattr(quota, field) is not None:
                detail = f"a {field} needs a cohort above: this queue has no parent"
                yield error("limit-without-parent", (*place, field), detail)
        if not is_cohort and _over(quota.lending_limit, quota.guaranteed, resource):
            detail = "lends more than it owns: the lending limit is above the nominal quota"
            yield error("lending-over-nominal", (*place, "lending_limit"), detail)
        if _over(quota.guaranteed, quota.limit, resource):
            yield error("limit-below-nominal", (*place, "limit"), "the limit is below the guaranteed quota")


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
            yield error("empty-resource-group", here, "a resource group covers at least one resource by one flavor")
        for f, flavor in enumerate(group.flavors):
            place: Place = (*here, "flavors", f)
            if flavor.name in seen:
                detail = f"flavor {flavor.name!r} is in two resource groups"
                yield error("flavor-in-two-groups", (*place, "name"), detail)
            seen.add(flavor.name)
            if flavor.name not in known and flavor.name != DEFAULT_FLAVOR:
                detail = f"no flavor {flavor.name!r}: it is never chosen (Kueue keeps the ClusterQueue inactive)"
                yield _warning("flavor-not-found", (*place, "name"), detail)
            for resource in group.resources:
                if resource not in flavor.quota:
                    detail = f"no quota for {resource!r}, which the group covers: it counts as 0"
                    yield error("resource-without-quota", (*place, "quota"), detail)


def _policies(block: model.Queue, at: Place) -> Iterator[Finding]:
    rules = block.flavor_fungibility or model.FlavorFungibility()
    try_next = rules.when_can_borrow == rules.when_can_preempt == "TryNextFlavor"
    if rules.preference is not None and not try_next:
        yield error(
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
        yield error("borrow-without-reclaim", (*here, "borrow_within_cohort"), detail)
    if borrow is not None and borrow.policy == "Never" and borrow.max_priority_threshold is not None:
        detail = "a threshold says nothing while the policy is Never"
        yield _warning("threshold-unused", (*here, "borrow_within_cohort", "max_priority_threshold"), detail)
    yield from knob_findings(preemption, here)
