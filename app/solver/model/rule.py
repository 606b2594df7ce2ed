"""A rule of an engine, as the catalogue tells it: what explanations name by its id."""

from app.solver.model.base import Wire


class Rule(Wire, frozen=True, kw_only=True):
    """One rule of one engine. Its id never changes its meaning."""

    rule: str
    """Its id, as explanations name it."""
    sentence: str
    """What it says, in one sentence."""
    source: str
    """Where the origin says so: a file or a page of it; "Arbiter" where the origin has nothing like it."""


PROPOSALS = (
    Rule(rule="unknown-workload", sentence="The state does not have it, so that nothing tells whether it may go.",
         source="Arbiter"),
    Rule(rule="no-queue", sentence="What asks is in no queue, and only work of a queue takes from work of a queue.",
         source="Arbiter"),
    Rule(rule="nothing-proposed", sentence="There is no proposal to judge.", source="Arbiter"),
    Rule(rule="ProposalAllowed", sentence="Everybody whom a proposal would evict may go for the ask.",
         source="Arbiter"),
)  # fmt: skip
"""Rules of every engine that judges what another scheduler proposes."""
