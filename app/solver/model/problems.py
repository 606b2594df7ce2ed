"""Problems with an input, findings about a configuration, and the rules that explanations name by id."""

from collections.abc import Iterable
from typing import Literal

from app.solver.model.base import Wire


class Problem(Wire, frozen=True, kw_only=True):
    """What is wrong, and where: ``pointer`` is an RFC 6901 pointer into the request body."""

    pointer: str
    """Where: an RFC 6901 pointer into the request body."""
    detail: str
    """What is wrong, in one sentence."""


class Finding(Wire, frozen=True, kw_only=True):
    """A remark about a configuration. ``rule`` is a stable id; errors refuse the write, warnings do not."""

    rule: str
    """A stable id of the remark."""
    severity: Literal["error", "warning", "info"]
    """`error` refuses the write; `warning` and `info` come back with it."""
    pointer: str
    """Where: an RFC 6901 pointer into the document."""
    detail: str
    """The remark, in one sentence."""


class InvalidInput(Exception):
    """The input breaks rules that its shape cannot express; carries every problem found, never just the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("; ".join(f"{p.pointer}: {p.detail}" for p in self.problems[:3]))


class Unsupported(InvalidInput):
    """The engine has no answer for this question, by design."""


def pointer(*parts: str | int) -> str:
    """RFC 6901 pointer of ``parts``."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


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
