"""Problems with an input, and findings about a configuration."""

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
