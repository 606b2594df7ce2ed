"""What Kueue's admission webhooks and CRD rules would refuse, and what its scheduler would silently ignore.

Also queues' settings with the defaults filled in, and the catalogue of rules.
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
from app.solver.model.problems import PROPOSALS, Finding, InvalidInput, Rule, pointer
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


_PREEMPTION = "pkg/scheduler/preemption/preemption.go"
_CLASSICAL = "pkg/scheduler/preemption/classical/hierarchical_preemption.go"
_POP = "pkg/scheduler/preemption/classical/candidate_generator.go"
_POLICY = "pkg/scheduler/preemption/common/preemption_policy.go"
_FAIR = "pkg/scheduler/preemption/fairsharing/strategy.go"
_ASSIGNER = "pkg/scheduler/flavorassigner/flavorassigner.go"
_SCHEDULER = "pkg/scheduler/scheduler.go"
_KEP_83 = "KEP-83 (deferred there)"
_ARBITER = "Arbiter"


def _rules(source: str, *pairs: tuple[str, str]) -> tuple[Rule, ...]:
    return tuple(Rule(rule=rule, sentence=sentence, source=source) for rule, sentence in pairs)


RULES: tuple[Rule, ...] = (
    *_rules(
        _CLASSICAL,
        ("InClusterQueue", "It runs in the ask's own queue, whose within_cluster_queue lets the ask take it."),
        ("InCohortReclamation", "The ask's side takes back quota of its own that this workload's queue borrows."),
        ("InCohortReclaimWhileBorrowing", "The ask borrows, and borrow_within_cohort lets it take a lower priority."),
        ("ask-would-borrow", "It may go only for an ask that stays within nominal quota, and this ask borrows."),
        ("within-nominal", "Its queue, or classically a cohort above it, is within quota of all that is contested."),
    ),
    *_rules(
        _FAIR,
        (
            "InCohortFairSharing",
            "The share of its side of the lowest common cohort is so high that the strategy takes it.",
        ),
        ("share-too-low", "The share of its side is not high enough against that of the ask's side."),
    ),
    *_rules(
        _SCHEDULER,
        (
            "nodes-short",
            "Quota is there, but the flavor's nodes have no room for the pods as their topology request wants them.",
        ),
        (
            "domains-looked-at",
            "The domains of a level that a placement looks at, with how much fits in each and what is free there.",
        ),
        (
            "cohorts-tie",
            "With fair sharing the origin goes into one of several cohorts of equal share by chance; here by name.",
        ),
        (
            "trees-by-chance",
            "With fair sharing the origin takes cohort trees in an order left to chance; here the request's decides.",
        ),
        (
            "consumed",
            "Admission fair sharing: in its ClusterQueue, work of the LocalQueue that has consumed least goes first.",
        ),
        (
            "consumed-unknown",
            "Admission fair sharing: what its LocalQueue has consumed is not in the state, and counts as nothing.",
        ),
        ("places-taken", "Earlier heads of the cycle took its nodes: it is assigned again, with its flavors."),
        (
            "scan-resumes",
            "The scan of flavors goes on after the flavor at which the ask's last cycle stopped, not at the first.",
        ),
    ),
    *_rules(
        _POP,
        ("queue-back-within-quota", "When its turn comes, its queue or a cohort above it is within quota."),
    ),
    *_rules(
        _PREEMPTION,
        ("still-fits", "It was taken and put back, because the ask fits with it."),
        ("candidate-not-reached", "It could go, and the ask fits without."),
        ("not-enough", "It could go, and the ask does not fit even with all gone that may go."),
        ("outside-cohort", "Its queue is in another cohort tree than the ask's."),
        ("uses-nothing-contested", "It uses no flavor-resource that needs preemption."),
        ("already-leaving", "It stops for an earlier ask of the same cycle."),
        ("needs-preemption", "More of a flavor-resource is requested than is available."),
        ("attempt", "Classically candidates are taken in order, for an ask that may borrow or one that may not."),
        ("round", "Fair sharing goes through queues by share, and through their candidates by a strategy."),
        ("reclaim-within-nominal", "The ask's queue stays within nominal quota with it: no shares are compared."),
        ("candidate", "This ask could preempt it."),
        ("no-policy", "No queue that can reach it preempts there."),
    ),
    *_rules(
        _POLICY,
        ("within-cluster-queue-never", "It runs in the ask's own queue, where within_cluster_queue is Never."),
        (
            "reclaim-within-cohort-never",
            "It runs in another queue, and reclaim_within_cohort of the ask's queue is Never.",
        ),
        ("priority", "Its priority is not one that the policy takes: lower than the ask's, or equal and newer."),
        ("not-newer", "It has the ask's priority and is not newer than the ask."),
    ),
    *_rules(
        _ASSIGNER,
        ("flavor-refused", "The pod set may not use the flavor: taints, labels, or not the one nominated."),
        ("flavor-considered", "How well the flavor suits the pod set, and from how far up its quota would come."),
        ("ask-cannot-preempt", "No flavor could be had for the ask by preemption."),
        ("ask-fits", "The ask fits without stopping anybody."),
    ),
    *_rules(
        _SCHEDULER,
        ("partial-admission", "The full size can neither be had nor preempted for; a smaller one can."),
        ("cycle-order", "The place of the head among the heads of the cycle."),
        ("targets-overlap", "Some of its victims stop for an earlier head: it is assigned again without them."),
        ("reserves", "Nobody may stop for the head, and it keeps its capacity from later heads of the cycle."),
        ("skipped", "The head is skipped in this cycle, for what earlier heads took."),
        ("head-skipped", "It could go, and the ask is skipped in this cycle, for what earlier heads took."),
        ("inadmissible", "It is not tried: its queue is stopped or not active, or something about itself forbids it."),
        ("queue-inactive", "Its ClusterQueue is stopped or not active: what runs there is nobody's candidate."),
        ("ClusterQueueStopped", "Its ClusterQueue has the stop policy HoldAndDrain."),
        ("LocalQueueStopped", "Its LocalQueue has the stop policy HoldAndDrain."),
        ("NodeFailures", "A node of it failed and its pods find no other host, or several nodes of it failed."),
        ("behind-head", "One ask of a queue is tried in a cycle, and another one goes first."),
    ),
    *_rules(
        _KEP_83,
        ("waits-before-preempting", "The ask has not waited as long as its queue wants before it preempts."),
        ("waiting-boost", "After waiting the ask's priority counts as a higher one."),
        ("nobody-low-enough", "The lowest priority within reach is too high for the policies."),
    ),
    *_rules(
        _ARBITER,
        ("not-preemptible", "It is marked as not preemptible."),
        ("own-workload", "The ask belongs to it."),
        ("preemption-policy-never", "The ask's preemption policy is Never."),
        ("beyond-kueue", "What Kueue itself would have answered, and which setting beyond Kueue changed it."),
        ("steps-dropped", "Steps past a limit are counted only; the full explanation has them."),
    ),
    *PROPOSALS,
)
