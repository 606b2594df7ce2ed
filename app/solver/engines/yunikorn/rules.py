"""Every rule that answers of YuniKorn name, with what it says and where it comes from.

Files are those of yunikorn-core's ``pkg/scheduler/objects``; "Preemption Design" is the page of that name in YuniKorn's
documentation, whose laws are numbered in its order.
"""

from collections.abc import Iterator

from app.solver.engines.yunikorn.rule_sets import DIFFERENCES
from app.solver.model.problems import PROPOSALS, Rule

_DESIGN = "Preemption Design"
_VICTIMS = "queue.go, findEligiblePreemptionVictims"
_TRY = "preemption.go, TryPreemption"
_PRECONDITIONS = "preemption.go, CheckPreconditions"
_REQUIRED = "required_node_preemptor.go"

_CANDIDATES = (
    ("asking-queue", "A task of the asking queue itself, where preemption does not look.", f"{_DESIGN}, law 3"),
    ("outside-the-fence", "Its queue is not below the fence of the asking queue.", f"{_DESIGN}, law 7"),
    ("priority-fence", "A priority fence above its queue has a higher offset than the ask's priority.", _VICTIMS),
    ("preemption-disabled", "Its queue has preemption.policy disabled.", _VICTIMS),
    (
        "no-claim",
        "No queue of the ask's path below the fork of both is under its guarantee in what the ask needs.",
        f"{_DESIGN}, law 4",
    ),
    ("within-guarantee", "Its queue is not over its guarantee.", f"{_DESIGN}, law 5"),
    ("bound-to-its-node", "It requires its node, as a DaemonSet pod does, and can run nowhere else.", _VICTIMS),
    ("already-leaving", "It is being preempted, or has been released, already.", _VICTIMS),
    ("on-no-node", "It runs on no node, so that no node gains room without it.", _VICTIMS),
    ("no-common-resource", "It names no resource that the ask names.", _VICTIMS),
    ("higher-priority", "Its priority is higher than the ask's, as seen from its queue.", f"{_DESIGN}, law 6"),
    ("same-application", "It belongs to the ask's own application.", f"{_DESIGN}, law 3"),
    ("law-2", "Without it a queue would be below its guarantee.", f"{_DESIGN}, law 2"),
    ("on-another-node", "It is not on the node that the ask requires.", _REQUIRED),
    ("node-held", "Its node is held for another ask.", "preemption.go, initWorkingState"),
    (
        "node-closed",
        "Its node is unschedulable, too small for the ask, or none that passes its predicates.",
        "preemption.go, initWorkingState",
    ),
    ("makes-room", "It goes, and makes room for the ask.", _TRY),
    ("fits-without", "It was taken and put back, because the ask fits without it.", _DESIGN),
    ("makes-no-room", "It may go, but all that may go on its node does not make room for the ask.", _TRY),
    ("not-reached", "It may go, but the search ended before it was needed.", _TRY),
    (
        "part-waits",
        "It would have gone for one task of the ask, and stays because another task can't be placed.",
        "Arbiter",
    ),
    ("may-be-preempted", "Nothing protects it.", _VICTIMS),
    ("opted-out", "It has opted out of preemption and goes as a last resort.", f"{_DESIGN}, law 1"),
    (
        "originator",
        "It is the originator of its application and goes after its other tasks.",
        "preemption.go, sortVictimsForPreemption",
    ),
    ("nothing-runs", "The application has no running task.", "Arbiter"),
)
_STEPS = (
    ("fence", "How far up the tree victims are looked for.", "queue.go, findPreemptionFenceRoot"),
    (
        "guarantee-left",
        "What is left of the guarantee on the ask's side.",
        "preemption.go, GetRemainingGuaranteedResource",
    ),
    ("task", "What became of one task of an ask that has several.", "Arbiter"),
    ("node", "A node that can make room, and who would go there.", "preemption.go, calculateVictimsByNode"),
    ("node-out", "A node that was searched in vain.", "preemption.go, calculateVictimsByNode"),
)
_FAILURES = (
    ("too-many-applications", "As many applications run as its queue, user or group may have.", "queue.go, canRunApp"),
    ("user-limit", "Its user or group may have no more of its queue.", "ugm/manager.go, Headroom"),
    ("preemption-off", "Preemption is off in the partition (preemption.enabled).", "partition.go"),
    ("never-preempts", "The ask's own policy is Never.", _PRECONDITIONS),
    ("already-triggered", "The ask has triggered preemption before.", _PRECONDITIONS),
    ("too-young", "The ask is younger than the preemption.delay of its queue.", _PRECONDITIONS),
    ("checked-lately", "The last preemption check of the ask was less than 15 s ago.", _PRECONDITIONS),
    ("attempts-exhausted", "The queue has had its preemption attempts of this cycle.", "application.go, tryPreemption"),
    ("queue-guarantees", "The ask's side is not under its guarantee.", f"{_DESIGN}, law 4"),
    ("no-candidates", "Nobody inside the fence may be preempted for the ask.", _VICTIMS),
    ("no-node", "No node can make room for the ask.", _TRY),
    ("nodes-held", "Every node that could make room is held for another ask.", "preemption.go, initWorkingState"),
    ("no-victims", "No victim would help the ask.", _TRY),
    ("shortfall", "What the victims free is short of the ask.", _TRY),
    ("resources-releasing", "What the ask needs is being released already.", "Arbiter"),
    ("required-node", "Nothing that may go makes room on the node that the ask requires.", _REQUIRED),
    ("required-node-released", "Preemption on the required node was triggered before.", _REQUIRED),
)  # fmt: skip


def _rules() -> Iterator[Rule]:
    for rule, sentence, source in (*_CANDIDATES, *_STEPS, *_FAILURES):
        yield Rule(rule=rule, sentence=sentence, source=source)
    for difference in DIFFERENCES:
        sentence = f"The rule sets part. Documented: {difference.documented}; released: {difference.shipped}."
        yield Rule(rule=difference.rule, sentence=sentence, source=f"{_DESIGN}; {difference.source}")


RULES: tuple[Rule, ...] = (*_rules(), *PROPOSALS)
