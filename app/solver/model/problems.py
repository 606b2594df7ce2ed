"""Problems with an input, findings about a configuration, and the rules that explanations name by id."""

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice
from typing import Annotated, Literal, TypeAlias

import msgspec

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


MOST_CARRIED = 100
Carried: TypeAlias = Annotated[list[Finding], msgspec.Meta(max_length=MOST_CARRIED)]
"""What of the documents that a configuration or a state was read from is not in it as it is there."""
_SEVERITIES = ("error", "warning", "info")


MOST_LISTED = 1_000
"""Of what is wrong with one request, or is to be known about one document."""


def listed(findings: Sequence[Finding]) -> list[Finding]:
    """Of many the worst, and how many more there are: an answer is not many times as large as what was asked."""
    if len(findings) <= MOST_LISTED:
        return list(findings)
    worst = sorted(findings, key=_severity)[:MOST_LISTED]
    detail = f"{len(findings) - MOST_LISTED} more findings are not listed"
    return [*worst, Finding(rule="more-findings", severity="info", pointer="", detail=detail)]


def carried(*sources: Iterable[Finding]) -> list[Finding] | None:
    """The findings of several sources, each once, the worst first. None where there are none."""
    findings = list(dict.fromkeys(finding for source in sources for finding in source))
    return sorted(findings, key=_severity) or None


def _severity(finding: Finding) -> int:
    """The worst first."""
    return _SEVERITIES.index(finding.severity)


class InvalidInput(Exception):
    """The input breaks rules that its shape cannot express; carries every problem found, never just the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        super().__init__()
        self.problems = list(problems)

    def __str__(self) -> str:
        return "; ".join(f"{p.pointer}: {p.detail}" for p in self.problems[:3])


@contextmanager
def pointing(place: Callable[[str], str]) -> Generator[None]:
    """What is found wrong meanwhile is where ``place`` says of its pointer. Raises the InvalidInput that it is."""
    try:
        yield
    except InvalidInput as invalid:
        invalid.problems = [Problem(pointer=place(p.pointer), detail=p.detail) for p in invalid.problems]
        raise


def repeated(values: Iterable[Hashable]) -> Iterator[int]:
    """The places of the values that stood somewhere before, ascending."""
    seen = set[Hashable]()
    for place, value in enumerate(values):
        if value in seen:
            yield place
        seen.add(value)


class Unsupported(InvalidInput):
    """The engine has no answer for this question, by design."""


_MOST_NAMES, _MOST_WORDS = 2000, 20
"""Comparing words takes a microsecond or two each: a large input that is all wrong must not take minutes."""


class Nearest:
    """Which of some names was meant by a word that is none of them, for the first words that it is asked about."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = known
        self._names: list[str] | None = None
        self._asked: dict[str, str] = {}

    def meant(self, word: str) -> str:
        """The end of a message about ``word``; empty where nothing is near, or after many words."""
        if word in self._asked:
            return self._asked[word]
        if len(self._asked) == _MOST_WORDS:
            return ""
        if self._names is None:
            self._names = sorted(islice(self._known, _MOST_NAMES))
        near = get_close_matches(word[:100], self._names, 1)
        self._asked[word] = f"; did you mean {near[0]!r}?" if near else ""
        return self._asked[word]


def few(names: Sequence[str], most: int) -> str:
    """The first of ``names``, for a message, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


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
