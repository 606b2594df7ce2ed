"""The two rule sets, and every place where they part.

``documented`` keeps the seven laws of the preemption design without exception and follows the released code
where the design is silent; ``shipped`` is yunikorn-core be3bb487, defects included. Everything that they do
differently is named here and nowhere else; a stage that meets a difference asks ``Rules`` and records it, so
that the explanation can say which one decided.
"""

from dataclasses import dataclass
from typing import Final, Literal

RuleSet = Literal["documented", "shipped"]
RELEASES: Final[dict[str, str]] = {"be3bb487": "yunikorn-core as of that commit (July 2026)"}
"""Those that ``shipped`` can be."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the rule sets part: what each of them does."""

    name: str
    documented: str
    shipped: str
    source: str
    """Where the released code does so."""

    @property
    def rule(self) -> str:
        """Its id in explanations."""
        return f"difference-{self.name}"


ROOT_POLICY: Final = Difference(
    "root-policy",
    "preemption.policy on the root has no effect",
    "'disabled' on the root is inherited by configured queues",
    "queue.go, mergeProperties",
)
PARENT_DELAY: Final = Difference(
    "parent-delay", "preemption.delay works on the leaf that sets it", "configured leaves inherit preemption.delay",
    "queue.go, mergeProperties",
)  # fmt: skip
ANCESTRY: Final = Difference(
    "ancestry", "an ancestor is one in the tree", "a queue whose path is a textual prefix counts as an ancestor",
    "preemption.go, GetRemainingGuaranteedResource",
)  # fmt: skip
ASK_GUARANTEE: Final = Difference(
    "ask-guarantee",
    "below the fork the ask's side must be under its guarantee before, and may end above it",
    "the ask must fit into what is left of the asking queue's guarantee",
    "preemption.go, checkPreemptionQueueGuarantees",
)
VICTIM_GUARANTEE: Final = Difference(
    "victim-guarantee",
    "nobody falls below a guarantee; queues that victim and ask share are judged with the ask placed",
    "a queue that is over its guarantee may be taken below it",
    "preemption.go, calculateVictimsByNode",
)
SAME_APPLICATION: Final = Difference(
    "same-application",
    "no task of the ask's own application",
    "tasks outside the asking queue, whatever their application",
    "queue.go, findEligiblePreemptionVictims",
)
OPTED_OUT: Final = Difference(
    "opted-out",
    "opted-out tasks only when nothing else makes room on any node",
    "opted-out tasks come last on their node",
    "preemption.go, sortVictimsForPreemption",
)
FREE_SPACE: Final = Difference(
    "free-space",
    "free space of the node counts together with the victims",
    "the victims alone must reach the ask, and collecting stops as soon as one resource is exceeded",
    "preemption.go, TryPreemption",
)
ONE_NODE: Final = Difference(
    "one-node",
    "all victims are on one node",
    "victims may be on any node when the chosen one has room already",
    "preemption.go, calculateAdditionalVictims",
)
NODE_CHOICE: Final = Difference(
    "node-choice",
    "the node whose victims are nobody opted out, then no originator, then fewest, then by name",
    "the node by number of victims and name, with scores that look at candidates and not at victims",
    "preemption.go, checkPreemptionPredicates; predicates.go",
)
REQUIRED_NODE: Final = Difference(
    "required-node",
    "no more victims than the ask needs beside the free space",
    "victims are collected until they alone cover the ask",
    "required_node_preemptor.go",
)
DIFFERENCES: Final = (
    ROOT_POLICY, PARENT_DELAY, ANCESTRY, ASK_GUARANTEE, VICTIM_GUARANTEE, SAME_APPLICATION, OPTED_OUT, FREE_SPACE,
    ONE_NODE, NODE_CHOICE, REQUIRED_NODE,
)  # fmt: skip
