"""What became of one allocation ask: success, or a failure with its reason."""

from dataclasses import dataclass, field
from typing import Literal

from app.solver.engines.yunikorn.decide.overlay import Held

Kind = Literal["admit", "preempt", "wait"]

REASONS: dict[str, tuple[str, str]] = {
    "never-preempts": (
        "PreemptionPreconditionsFailed", "the ask's own policy is Never: it does not preempt others",
    ),
    "already-triggered": (
        "PreemptionPreconditionsFailed", "the ask has triggered preemption before and waits for its outcome",
    ),
    "too-young": ("PreemptionPreconditionsFailed", "the ask is younger than its queue's preemption.delay"),
    "checked-lately": ("PreemptionPreconditionsFailed", "the last preemption check was less than 15 s ago"),
    "attempts-exhausted": (
        "PreemptionAttemptsExhausted", "the queue's preemption attempts of this cycle are used up",
    ),
    "queue-guarantees": (
        "QueueGuaranteesCheckFailed", "preemption is for queues below their guarantee, and this ask's is not",
    ),
    "no-candidates": ("NoPreemptionVictims", "nobody inside the fence may be preempted for this ask"),
    "no-node": ("PreemptionDoesNotHelp", "no node can make room for the ask"),
    "nodes-held": ("PreemptionDoesNotHelp", "every node that could make room for the ask is held for another"),
    "no-victims": ("PreemptionDoesNotHelp", "no victim would help the ask"),
    "shortfall": ("PreemptionShortfall", "preemption would help, but what it frees is short of the ask"),
    "resources-releasing": ("ResourcesReleasing", "what the ask needs is being released already"),
    "required-node": ("NoVictimForRequiredNode", "nothing that may be preempted makes room on the required node"),
    "required-node-released": ("ResourcesReleasing", "preemption for the required node was triggered before"),
}  # fmt: skip
"""By stage that failed: the condition's reason, and what it means."""


@dataclass(frozen=True, slots=True)
class Found:
    """A node and the tasks to preempt for it, in order; or ``failed``, a key of REASONS."""

    node: int = -1
    victims: list[int] = field(default_factory=list[int])
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """``victims``: canonical task indices in the order of taking; ``failed``: a key of REASONS; ``detail``: the facts;
    ``cancelled``: reservations of others that give way; ``attempted``: it used up one of its queue's attempts."""

    kind: Kind
    node: int | None = None
    victims: list[int] = field(default_factory=list[int])
    failed: str | None = None
    detail: str = ""
    cancelled: list[tuple[int, Held]] = field(default_factory=list[tuple[int, Held]])
    attempted: bool = False

    @property
    def reason(self) -> str:
        """Why it waits, in a sentence."""
        text = REASONS[self.failed or ""][1]
        return f"{text}: {self.detail}" if self.detail else text

    @staticmethod
    def wait(failed: str, detail: str = "", cancelled: list[tuple[int, Held]] | None = None) -> "Outcome":
        """Nothing to do now, and why."""
        return Outcome("wait", failed=failed, detail=detail, cancelled=cancelled or [])
