"""What Kueue's admission webhooks and CRD rules would refuse, and what its scheduler would silently ignore.

Also queues' settings with the defaults filled in.
"""

from collections.abc import Iterator
from typing import Any

from app.solver.engines.kueue.admission_sharing import sharing_findings
from app.solver.engines.kueue.configuration import DEFAULT_FLAVOR, DEFAULT_STRATEGIES, CompiledConfiguration, Policy
from app.solver.engines.kueue.knobs import error, knob_findings, knob_problems
from app.solver.model import kueue as model
from app.solver.model.base import UNLIMITED, QuantityError, parse_duration, parse_quantity, scale_of, seconds
from app.solver.model.configuration import Configuration, Place, Queue, quotas
from app.solver.model.kueue import LongRunnerPenalty, WaitingBoost
from app.solver.model.problems import Finding, InvalidInput, pointer
from app.solver.model.state import State


def effective_settings(configuration: CompiledConfiguration, state: State | None) -> dict[str, Any]:
    """Queues and cohorts by name, those that are only referenced among them; durations in seconds. The knobs that
    KEP-83 deferred show only where they are set. Raises InvalidInput where one has no meaning."""
    del state  # nothing that runs changes a setting
    if problems := knob_problems(configuration):
        raise InvalidInput(problems)
    return {
        "settings": {
            "release": configuration.release,
            "quota_check_strategy": "IgnoreUndeclared" if configuration.ignores_undeclared else "BlockUndeclared",
        },
        "queues": {name: _queue(configuration, node) for node, name in enumerate(configuration.tree.names)},
    }


def _queue(configuration: CompiledConfiguration, node: int) -> dict[str, Any]:
    cohort = configuration.is_cohort[node]
    out: dict[str, Any] = {"role": "cohort" if cohort else "cluster_queue", "weight": configuration.weight[node]}
    out["fair_sharing"] = configuration.fair_sharing
    if configuration.fair_sharing:
        out["preemption_strategies"] = list(configuration.strategies)
    if configuration.usage_based[node]:
        out["admission_mode"] = "UsageBasedAdmissionFairSharing"
    if configuration.inactive[node] is not None:
        out["inactive"] = configuration.inactive[node]
    return out if cohort else out | _policy(configuration.policy[node])


def _policy(policy: Policy) -> dict[str, Any]:
    block = policy.preemption
    out: dict[str, Any] = {
        "within_cluster_queue": policy.within_cluster_queue,
        "reclaim_within_cohort": policy.reclaim_within_cohort,
        "borrow_within_cohort": "LowerPriority" if policy.borrow_within_cohort else "Never",
        "max_priority_threshold": policy.threshold,
        "when_can_borrow": policy.fungibility.when_can_borrow,
        "when_can_preempt": policy.fungibility.when_can_preempt,
        "preference": policy.fungibility.preference or "BorrowingOverPreemption",
        "queueing_strategy": "StrictFIFO" if policy.strict_fifo else "BestEffortFIFO",
    }
    if block.trigger_after_workload_waiting_seconds is not None:
        out["trigger_after_workload_waiting_seconds"] = block.trigger_after_workload_waiting_seconds
    if block.workload_sorting:
        out["workload_sorting"] = list(block.workload_sorting)
    if block.disruption_cost_milestones:
        out["disruption_cost_milestones"] = [
            {"seconds": m.seconds, "cost": m.cost} for m in block.disruption_cost_milestones
        ]
    if block.long_runner_penalty is not None:
        out["long_runner_penalty"] = _rate(block.long_runner_penalty, floor=block.long_runner_penalty.floor)
    if block.waiting_boost is not None:
        out["waiting_boost"] = _rate(block.waiting_boost, ceiling=block.waiting_boost.ceiling)
    return out


def _rate(rate: LongRunnerPenalty | WaitingBoost, **bound: int) -> dict[str, Any]:
    return {"grace": seconds(parse_duration(rate.grace)), "rate_per_hour": rate.rate_per_hour, **bound}


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
    sharing = (configuration.settings.kueue or model.Settings()).admission_fair_sharing
    out += sharing_findings(sharing) if sharing is not None else ()
    for i, queue in enumerate(configuration.queues):
        where: Place = ("queues", i)
        if sharing is None and queue.kueue is not None and queue.kueue.admission_mode != "NoAdmissionFairSharing":
            detail = "settings.kueue.admission_fair_sharing is absent: what LocalQueues consumed does not count"
            out.append(_warning("sharing-unused", (*where, "kueue", "admission_mode"), detail))
        out += _weight(queue, where)
        out += _role(queue, queue.name in parents, where)
        out += _quotas(queue, queue.name in parents, where)
        out += _flavors(queue, {f.name for f in configuration.flavors}, where)
        if queue.kueue is not None:
            out += _policies(queue.kueue, where=(*where, "kueue"))
    return out


def _warning(rule: str, where: Place, detail: str) -> Finding:
    return Finding(rule=f"kueue.{rule}", severity="warning", pointer=pointer(*where), detail=detail)


def _settings(settings: model.Settings) -> Iterator[Finding]:
    strategies = settings.preemption_strategies
    where: Place = ("settings", "kueue", "preemption_strategies")
    if strategies is None:
        return
    if strategies and tuple(strategies) not in _STRATEGY_LISTS:
        yield error(
            "strategies-order", where,
            "Kueue takes LessThanOrEqualToFinalShare, LessThanInitialShare, or both in this order",
        )  # fmt: skip
    if strategies and not settings.fair_sharing:
        yield _warning("strategies-unused", where, "preemption strategies are for fair sharing, which is off")


def _weight(queue: Queue, where: Place) -> Iterator[Finding]:
    if not queue.weight >= 0 or queue.weight == float("inf"):
        detail = f"a weight of {queue.weight} is not a finite number, 0 or more"
        yield error("weight-negative", (*where, "weight"), detail)
    elif 0 < queue.weight <= _SMALLEST_WEIGHT:
        yield error("weight-too-small", (*where, "weight"), "a weight other than 0 is above 1e-9")


def _role(queue: Queue, has_children: bool, where: Place) -> Iterator[Finding]:
    block = queue.kueue or model.Queue()
    if block.role == "cluster_queue" and has_children:
        yield error("cluster-queue-with-children", (*where, "kueue", "role"), "only a cohort has queues below it")
    if block.role == "cohort" or (block.role is None and has_children):
        unread = [name for name in ("preemption", "flavor_fungibility") if getattr(block, name) is not None]
        unread += ["queueing_strategy"] if block.queueing_strategy != "BestEffortFIFO" else []
        unread += ["admission_mode"] if block.admission_mode != "NoAdmissionFairSharing" else []
        unread += ["stop_policy"] if block.stop_policy != "None" else []
        unread += ["inactive"] if block.inactive is not None else []
        for name in unread:
            yield _warning("cohort-policy-unused", (*where, "kueue", name), f"a cohort has no {name}")


def _quotas(queue: Queue, is_cohort: bool, where: Place) -> Iterator[Finding]:
    rootless = queue.parent is None
    is_cohort = is_cohort or (queue.kueue is not None and queue.kueue.role == "cohort")
    for _, resource, quota, place in quotas(queue, where):
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
        return parse_quantity(value, scale_of(resource)) if isinstance(value, (int, float, str)) else 0
    except QuantityError:
        return 0


def _flavors(queue: Queue, known: set[str], where: Place) -> Iterator[Finding]:
    seen: set[str] = set()
    for g, group in enumerate(queue.resource_groups or ()):
        here: Place = (*where, "resource_groups", g)
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


def _policies(block: model.Queue, where: Place) -> Iterator[Finding]:
    rules = block.flavor_fungibility or model.FlavorFungibility()
    try_next = rules.when_can_borrow == rules.when_can_preempt == "TryNextFlavor"
    if rules.preference is not None and not try_next:
        yield error(
                "preference-without-try-next", (*where, "flavor_fungibility", "preference"),
                "a preference needs when_can_borrow and when_can_preempt both TryNextFlavor",
            )  # fmt: skip
    preemption = block.preemption
    if preemption is None:
        return
    here: Place = (*where, "preemption")
    borrow = preemption.borrow_within_cohort
    if borrow is not None and borrow.policy != "Never" and preemption.reclaim_within_cohort == "Never":
        detail = "borrow_within_cohort needs reclaim_within_cohort other than Never"
        yield error("borrow-without-reclaim", (*here, "borrow_within_cohort"), detail)
    if borrow is not None and borrow.policy == "Never" and borrow.max_priority_threshold is not None:
        detail = "a threshold says nothing while the policy is Never"
        yield _warning("threshold-unused", (*here, "borrow_within_cohort", "max_priority_threshold"), detail)
    yield from knob_findings(preemption, here)
