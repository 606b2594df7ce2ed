"""Every rule that answers of Kueue name, with what it says and where it comes from."""

from app.solver.model.problems import PROPOSALS, Rule

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
