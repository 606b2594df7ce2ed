"""Reading a mapping key by key, so that whatever nobody read becomes a finding; and what an import gives.

A ``Reader`` never raises: a value of the wrong type is a finding of severity error, and reads as if it were not there.
Pointers lead into the source (RFC 6901), with the number of the document first where there are several.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import accumulate
from math import isfinite
from typing import Any, Literal, cast

import msgspec
from msgspec.structs import replace as with_

from app.base.decoding import in_calendar
from app.base.documents import Path
from app.solver.check import MAX_DEPTH
from app.solver.model.base import (
    Duration,
    DurationError,
    Quantity,
    QuantityError,
    parse_duration,
    parse_quantity,
    scale_of,
)
from app.solver.model.configuration import Configuration
from app.solver.model.problems import MOST_CARRIED, Finding, carried, pointer
from app.solver.model.state import Ask, State
from app.solver.question import safe_point

Severity = Literal["error", "warning", "info"]
Undecided = Mapping[str, tuple[Severity, str]]
"""Fields that nothing here decides on, by key: how much that matters, and why it is so."""
MOST_ALIKE = 20
_MOST_CHARACTERS = 1 << 16
_LIVE = timedelta(minutes=10)
"""Kubelets say at least every 5 minutes that they are there."""


def unkeepable(value: Any) -> str | None:
    """Why ``value`` can't be part of a configuration; None where it can. Without recursion."""
    pending: list[tuple[Any, int]] = [(value, 1)]
    while pending:
        current, depth = pending.pop()
        if depth > MAX_DEPTH:
            return f"nested deeper than {MAX_DEPTH} levels"
        if isinstance(current, dict):
            safe_point()
            fields = cast(dict[str, Any], current)
            if any("\0" in name for name in fields):
                return "a name in it holds a NUL"
            pending += [(inner, depth + 1) for inner in fields.values()]
        elif isinstance(current, str) and "\0" in current:
            return "a text that holds a NUL"
        elif isinstance(current, list):
            pending += [(inner, depth + 1) for inner in cast(list[Any], current)]
        elif isinstance(current, int) and not -(2**63) <= current < 2**63:
            return "an integer past 64 bits"
        elif isinstance(current, float) and not isfinite(current):
            return "a number that is not finite"
    return None


class Findings:
    """Findings in the order of the source. Past ``most`` of the same kind the rest is counted, not listed."""

    def __init__(self, most: int = MOST_ALIKE) -> None:
        self._most = most
        self._findings: list[tuple[tuple[str, str], Finding]] = []
        self._alike: Counter[tuple[str, str]] = Counter()
        self._severity: dict[tuple[str, str], Severity] = {}

    def add(self, rule: str, severity: Severity, path: Path, detail: str) -> None:
        """``path``: where in the source. Findings of one rule about fields of one name are of the same kind."""
        kind = (rule, next((str(part) for part in reversed(path) if isinstance(part, str)), ""))
        self._alike[kind] += 1
        self._severity[kind] = severity
        if self._alike[kind] <= self._most:
            self._findings.append((kind, Finding(rule=rule, severity=severity, pointer=pointer(*path), detail=detail)))

    def take(self, other: "Findings") -> None:
        """All that ``other`` has, as if it had been found here."""
        listed: Counter[tuple[str, str]] = Counter()
        for kind, finding in other._findings:
            listed[kind] += 1
            if self._alike[kind] + listed[kind] <= self._most:
                self._findings.append((kind, finding))
        self._alike.update(other._alike)
        self._severity.update(other._severity)

    def all(self) -> list[Finding]:
        """Everything found, and for each kind that was cut short how many more there are."""
        more = [
            Finding(
                rule=rule, severity=self._severity[rule, name], pointer="",
                detail=f"{count - self._most} more like the {self._most} listed about {name!r}",
            )
            for (rule, name), count in self._alike.items()
            if count > self._most
        ]  # fmt: skip
        return [*(finding for _, finding in self._findings), *more]


class Reader:
    """One mapping of a source. Every method that takes a key marks it as read; ``close`` reports the others.

    After ``keep`` what has no meaning here is kept too, for an export of the same system (``unread``): in this mapping
    and in those below it, though not inside of lists."""

    __slots__ = ("_below", "_left", "_rest", "findings", "path", "value")

    def __init__(self, value: Any, path: Path, findings: Findings) -> None:
        safe_point()
        self.path = path
        self.findings = findings
        self.value: Mapping[str, Any] = {}
        if isinstance(value, dict):
            self.value = cast(dict[str, Any], value)
        elif value is not None:
            findings.add("wrong-type", "error", path, f"a mapping is expected, not {_kind(value)}")
        self._left = dict.fromkeys(self.value)
        self._rest: dict[str, Any] | None = None
        self._below: dict[str, Reader] = {}

    def keep(self) -> "Reader":
        """Keep from now on what nobody reads."""
        self._rest = {}
        return self

    def unread(self, *without: str) -> dict[str, Any]:
        """What was kept, in the shape of the source; empty where nothing was. ``without``: mappings to leave out."""
        below = {key: reader.unread() for key, reader in self._below.items() if key not in without}
        return {**{key: saved for key, saved in below.items() if saved}, **(self._rest or {})}

    def keep_as_is(self, *keys: str) -> None:
        """Keep without a finding what bears on no decision, read or not."""
        for key in keys:
            self._left.pop(key, None)
            if key in self.value:
                self._keep(key, self.value[key])

    def keep_rest(self) -> None:
        """Keep without a finding what nobody has read."""
        self.keep_as_is(*self._left)

    def _keep(self, key: str, value: Any) -> bool:
        """Keep ``value`` under ``key`` where that is possible."""
        if self._rest is None:
            return False
        if why := unkeepable(value):
            self.warn(key, f"can't be kept: {why}", "error")
            return True
        self._rest[key] = value
        return True

    def __contains__(self, key: str) -> bool:
        return self.value.get(key) is not None

    def take(self, key: str) -> Any:
        """The raw value, None where absent."""
        self._left.pop(key, None)
        return self.value.get(key)

    def warn(self, key: str, detail: str, severity: Severity = "warning", rule: str = "not-carried") -> None:
        """A finding about ``key``."""
        self.findings.add(rule, severity, (*self.path, key), detail)

    def not_carried(self, key: str, detail: str, severity: Severity = "warning") -> None:
        """Read ``key``, and say why it does not count if there is something in it: it is lost, or only kept."""
        if key in self._left:
            self._unread(key, self.take(key), detail, severity)

    def none_carried(self, undecided: Undecided) -> None:
        """``not_carried`` for each of these."""
        for key, (severity, why) in undecided.items():
            self.not_carried(key, why, severity)

    def undecided(self, key: str, detail: str, severity: Severity = "warning") -> None:
        """``not_carried`` for a key that may have been read, and whose value, whatever it is, means something."""
        self._left.pop(key, None)
        saved = self._keep(key, self.value.get(key))
        more = f"{detail}; kept for an export" if saved else detail
        self.warn(key, more, severity, "not-decided" if saved else "not-carried")

    def _unread(self, key: str, value: Any, detail: str, severity: Severity) -> None:
        saved = self._keep(key, value)
        if value not in (None, {}, [], ""):
            more = f"{detail}; kept for an export" if saved else detail
            self.warn(key, more, severity, "not-decided" if saved else "not-carried")

    def ignore(self, *keys: str) -> None:
        """Bookkeeping of the server, or nothing that a scheduler reads: not worth a finding."""
        for key in keys:
            self._left.pop(key, None)

    def close(self, severity: Severity = "warning") -> None:
        """Report what nobody read and is not empty."""
        for key in self._left:
            self._unread(key, self.value[key], f"{key!r} has no counterpart in Arbiter", severity)
        self._left = {}

    def text(self, key: str) -> str | None:
        """A string; a number or bool that YAML made of an unquoted word is an error."""
        value = self.take(key)
        return value if isinstance(value, str) else self._wrong(key, value, "a string")

    def integer(self, key: str) -> int | None:
        """A whole number."""
        value = self.take(key)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**31:
            return value
        return self._wrong(key, value, "a whole number of 32 bits")

    def count(self, key: str) -> int | None:
        """A whole number, 0 or more."""
        value = self.integer(key)
        if value is not None and value < 0:
            self.warn(key, f"{value} is negative", "error", "bad-value")
            return None
        return value

    def number(self, key: str) -> float | None:
        """A finite number."""
        value = self.take(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300 and isfinite(value):
            return value
        return self._wrong(key, value, "a finite number")

    def boolean(self, key: str) -> bool | None:
        """true or false."""
        value = self.take(key)
        return value if isinstance(value, bool) else self._wrong(key, value, "true or false")

    def quantity(self, key: str, resource: str) -> Quantity | None:
        """A Kubernetes quantity of ``resource``."""
        return self._sound(key, "a quantity", lambda value: parse_quantity(value, scale_of(resource)))

    def quantities(self, key: str) -> dict[str, Quantity]:
        """A mapping of resource names to quantities."""
        inner = self.child(key)
        read = {name: inner.quantity(name, name) for name in inner.value}
        return {name: value for name, value in read.items() if value is not None}

    def decimal(self, key: str) -> float | None:
        """A quantity that is a plain number, not an amount: a weight."""
        value = self.take(key)
        if isinstance(value, str):
            try:
                return float(Decimal(parse_quantity(value, 10**9)) / 10**9)
            except QuantityError as error:
                self.warn(key, str(error), "error", "bad-value")
                return None
        return self.number(key)

    def duration(self, key: str) -> Duration | None:
        """A Go duration, or a number of seconds."""
        return self._sound(key, "a duration", parse_duration)

    def _sound(self, key: str, expected: str, parse: Callable[[str | float], int]) -> str | int | float | None:
        """What stands there, as it is, where it can be parsed."""
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            return self._wrong(key, value, expected)
        try:
            parse(value)
        except (QuantityError, DurationError) as error:
            return self.warn(key, str(error), "error", "bad-value")
        return value

    def time(self, key: str) -> datetime | None:
        """An instant in RFC 3339."""
        value = self.take(key)
        return None if value is None else instant(value, (*self.path, key), self.findings)

    def choice(self, key: str, words: Mapping[str, str]) -> str | None:
        """One of ``words``, translated."""
        value = self.text(key)
        if value is None or value == "":
            return None
        if value not in words:
            self.warn(key, f"{value[:100]!r} is none of {', '.join(words)}", "error", "bad-value")
        return words.get(value)

    def strings(self, key: str) -> list[str]:
        """A list of strings."""
        out: list[str] = []
        for path, value in self._items(key):
            if isinstance(value, str):
                out.append(value)
            else:
                self.findings.add("wrong-type", "error", path, f"a string is expected, not {_kind(value)}")
        return out

    def counts(self, key: str) -> list[int]:
        """A list of whole numbers, 0 or more."""
        out: list[int] = []
        for path, value in self._items(key):
            if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 2**31:
                out.append(value)
            else:
                self.findings.add("wrong-type", "error", path, "a whole number of 32 bits, 0 or more, is expected")
        return out

    def words(self, key: str, known: Collection[str]) -> list[str]:
        """A list of words out of ``known``; others are findings."""
        words = self.strings(key)
        for word in words:
            if word not in known:
                self.warn(key, f"{word[:100]!r} is none of {', '.join(known)}", "error", "bad-value")
        return [word for word in words if word in known]

    def labels(self, key: str) -> dict[str, str]:
        """A mapping of strings to strings."""
        inner = self.child(key)
        if all(type(value) is str for value in inner.value.values()):
            inner.ignore(*inner.value)
            return dict(inner.value)
        read = {name: inner.text(name) for name in inner.value}
        return {name: value for name, value in read.items() if value is not None}

    def child(self, key: str) -> "Reader":
        """The mapping under ``key``; an empty one where there is none."""
        below = Reader(self.take(key), (*self.path, key), self.findings)
        if self._rest is not None:
            self._below[key] = below.keep()
        return below

    def children(self, key: str) -> list["Reader"]:
        """The mappings of the list under ``key``."""
        return [Reader(value, path, self.findings) for path, value in self._items(key)]

    def _items(self, key: str) -> Iterator[tuple[Path, Any]]:
        value = self.take(key)
        if not isinstance(value, list):
            self._wrong(key, value, "a list")
            return
        for i, item in enumerate(cast(list[Any], value)):
            yield (*self.path, key, i), item

    def _wrong(self, key: str, value: Any, expected: str) -> None:
        if value is not None:
            self.warn(key, f"{expected} is expected, not {_kind(value)}", "error", "wrong-type")


def instant(value: Any, path: Path, findings: Findings) -> datetime | None:
    """An RFC 3339 string as an instant; anything else is a finding, and so is what its offset takes out of the
    calendar: no answer could be told of a state with it."""
    try:
        time = msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        time = None
    if time is None or time.tzinfo is None or not in_calendar(time):
        findings.add("bad-value", "error", path, "an instant in RFC 3339 with offset is expected")
        return None
    return time


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a bool"
    if isinstance(value, (int, float)):
        return f"the number {str(value)[:40]}"
    return {"str": "a string", "list": "a list", "dict": "a mapping", "NoneType": "nothing"}[type(value).__name__]


def as_of(taken: datetime | None, clock: datetime, *, about: bool = True) -> datetime:
    """When a source tells how things are that was taken then, or nobody knows when; ``about``: see ``Imported``."""
    return clock if taken is None or (about and abs(clock - taken) < _LIVE) else taken


@dataclass(frozen=True, slots=True)
class Imported:
    """``state`` and ``asks`` are what runs and what waits, where the source says so; ``findings`` say what could not
    be carried over, with pointers into the source. ``taken``: when it was, where the source says it; ``about``: as far
    as some object of it tells, which may be minutes earlier. ``of_state``: pointers of what state and asks are read
    from; ``release``: of the system, where the source says which is installed."""

    configuration: Configuration
    state: State
    asks: list[Ask]
    findings: list[Finding]
    taken: datetime | None = None
    about: bool = False
    of_state: frozenset[str] = frozenset()
    release: str | None = None

    def carrying(self) -> "Imported":
        """The same with ``findings`` that bear on decisions in the documents that they are about, so that they go
        wherever these go: below ``of_state``, pointers into the source, in the state, with no place in both."""
        of_state = [
            finding for finding in self.findings if not finding.pointer or _below(finding.pointer, self.of_state)
        ]
        of_configuration = [
            finding for finding in self.findings if not finding.pointer or not _below(finding.pointer, self.of_state)
        ]
        return replace(
            self,
            configuration=with_(self.configuration, findings=worst(self.configuration.findings, of_configuration)),
            state=with_(self.state, findings=worst(self.state.findings, of_state)),
        )

    def as_of(self, clock: datetime) -> datetime:
        """The time at which the state is decided: when it was taken, else now. One that was taken just about now is
        one of now."""
        return as_of(self.taken, clock, about=self.about)


def _below(place: str, parts: frozenset[str]) -> bool:
    return any(place[:end] in parts for end, mark in enumerate(place + "/") if mark == "/")


def worst(*sources: list[Finding]) -> list[Finding]:
    """Errors and warnings, as many as a document may carry."""
    findings = carried(*([finding for finding in source if finding.severity != "info"] for source in sources)) or []
    size = list(accumulate(len(finding.pointer) + len(finding.detail) for finding in findings))
    most = next((i for i, so_far in enumerate(size) if so_far > _MOST_CHARACTERS), len(findings))
    if len(findings) <= MOST_CARRIED and most == len(findings):
        return findings
    first = findings[: min(most, MOST_CARRIED - 1)]
    rest = findings[len(first) :]
    detail = f"{len(rest)} more findings: an import of the documents, or the report of the follower, has them"
    return [*first, Finding(rule="more", severity=rest[0].severity, pointer="", detail=detail)]


Effect = Literal["decided", "warning", "error", "info", "none"]
Fields = Mapping[str, Mapping[str, Effect]]
"""What becomes of every field of a system's documents, by kind and path. A path stands for all that is below it, unless
a longer one says otherwise; of pods, which are Kubernetes' own, `docs/formats.md` tells in words."""


def each(effect: Effect, names: str, below: str = "") -> dict[str, Effect]:
    """``effect`` for each of the words ``names``, with the path ``below`` which they are."""
    return dict.fromkeys((f"{below}{name}" for name in names.split()), effect)


def effects(undecided: Undecided, below: str = "") -> dict[str, Effect]:
    """What ``Reader.none_carried`` says of each."""
    return {f"{below}{key}": severity for key, (severity, _) in undecided.items()}


def effect_of(fields: Fields, kind: str, path: str) -> Effect | None:
    """That of the longest path of the table which leads to ``path`` or above it; None: nobody thought of it."""
    known = fields.get(kind, {})
    above = [
        candidate for candidate in known if path == candidate or path.startswith((f"{candidate}.", f"{candidate}[]"))
    ]
    return known[max(above, key=len)] if above else None
