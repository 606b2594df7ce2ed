"""Every rule that answers of YTsaurus name, with what it says and where it comes from.

Sources are files below yt/yt/server/scheduler/strategy of the public repository; "page" is its page on preemption.
"""

from app.solver.model.problems import Rule

_POLICY = "policy/scheduling_policy_detail.cpp"
_SPLIT = "page; policy/operation_shared_state.cpp"
_ELEMENT = "pool_tree_element.cpp"
_HEARTBEAT = "page; policy/scheduling_policy_detail.cpp"
_ARBITER = "Arbiter"


def _rules(source: str, *pairs: tuple[str, str]) -> tuple[Rule, ...]:
    return tuple(Rule(rule=rule, sentence=sentence, source=source) for rule, sentence in pairs)


_STAGES = _rules(
    _HEARTBEAT,
    ("regular", "The stage that starts what fits the free resources of the node, the least satisfied operation first."),
    ("preemptive_normal", "The stage that starts one allocation of a starving operation on what is preemptible."),
    (
        "preemptive_aggressive",
        "The stage that starts one allocation of an aggressively starving operation, on what is aggressively "
        "preemptible too.",
    ),
)
_EVICTED = _rules(
    _POLICY,
    ("preemption", "Evicted by the preemptive stage, next in order while the node's allocations exceed it."),
    ("aggressive_preemption", "Evicted by the aggressive stage, next in order while the node's allocations exceed it."),
    (
        "resource_limits_violated",
        "Its operation or a pool above exceeds its resource_limits: it goes for nobody's ask.",
    ),
    ("goes-for-another", "It stops to start an allocation of another ask."),
    ("overcommitted", "It stops as the allocations of the node use more than it has, with no start on top."),
)
_SPARED = _rules(
    _POLICY,
    ("node-fits", "It could go, and those before it in the order were enough."),
    ("another-started", "It could go, and the one allocation that the stage starts was another ask's."),
    ("not-enough", "It could go, and with all that could there was no room for the ask."),
    ("stopped-before", "Another stage had stopped it already."),
    ("takes-no-part", "The stage does not serve the operation of the ask."),
)
_GROUPS = _rules(
    _SPLIT,
    ("non_preemptible", "Up to this allocation its operation uses no more than its protected part of the fair share."),
    (
        "aggressively_preemptible",
        "Up to this allocation its operation is within its fair share: only the aggressive stage may take it.",
    ),
)
_PROTECTED = _rules(
    _POLICY,
    ("graceful", "Its operation has preemption_mode graceful: its allocations are only asked to stop."),
    ("starving", "Its operation starves itself, and allow_preemption_from_starving_operations is off."),
)
_SWITCHED_OFF = _rules(
    _ELEMENT,
    ("normal-preemption-off", "A pool above sets allow_normal_preemption to false."),
    ("aggressive-preemption-off", "Its pool, or its being a gang, forbids aggressive preemption."),
)
_DIFFERENCES = _rules(
    "page",
    ("allocation-on-bound", "Whether the allocation that crosses a bound is in the group above or below it."),
    ("stage-order", "Which of the two preemptive stages comes first."),
    ("stage-members", "Whether the preemptive stage serves aggressively starving operations too."),
    ("own-allocations", "Whether an operation may evict an allocation of its own to start another."),
)
_WAITING = _rules(
    _POLICY,
    ("Suspended", "The operation is suspended."),
    ("GracefulAndSatisfied", "A graceful operation that has its fair share starts nothing more."),
    ("ResourceLimitsReached", "One more allocation would exceed the resource_limits of the operation or a pool above."),
    ("TooLittleSpare", "The node has less than min_spare_allocation_resources left."),
    ("NotStarving", "There are no free resources for it, and nobody stops for an operation that does not starve."),
    ("PreemptiveSchedulingBackoff", "There are no free resources for it, and preemption was tried too recently."),
    ("AnotherTookThePreemption", "A stage had room for it by preemption, and started another ask's allocation."),
    ("NotEnoughPreemptible", "There is no room for it even without all that its operation may preempt."),
)
_ASKED = _rules(
    _ARBITER,
    ("NothingAsked", "The ask wants no allocation."),
    ("NoFeasibleNode", "No node that it may use is large enough for one of its allocations."),
    ("NeverWithinLimits", "One of its allocations alone exceeds the resource_limits of the operation or a pool above."),
    ("NodeNotAllowed", "The node of this heartbeat is not one that it may use."),
)
_STEPS = _rules(
    _ARBITER,
    ("fair-share", "Where the ask's operation stands before the heartbeats: shares, satisfaction, priority."),
    ("rules", "The rule set, and its choice in every point in which the two sets differ."),
    ("differences-not-tried", "The other rule set was not tried, as that means deciding again on very many nodes."),
    ("earlier-stages", "Stages before those shown are only counted."),
    ("steps-dropped", "Steps past a limit are counted only; the full explanation has them."),
)

RULES: tuple[Rule, ...] = (
    *_STAGES, *_EVICTED, *_SPARED, *_GROUPS, *_PROTECTED, *_SWITCHED_OFF, *_DIFFERENCES, *_WAITING, *_ASKED, *_STEPS,
)  # fmt: skip
