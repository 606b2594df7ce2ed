"""Shared wire types: the struct base, quantities, times and durations as they arrive; native fields as kept.

A ``Quantity`` and a ``Duration`` stay as sent until a compile step parses them; a ``Time`` is decoded by msgspec,
which refuses one without an offset.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any

import msgspec

Quantity = Annotated[
    int | float | str,
    msgspec.Meta(title="Quantity", description="A Kubernetes quantity: `1500m`, `4Gi`, or a number of units"),
]
Resources = dict[str, Quantity]
Time = Annotated[datetime, msgspec.Meta(tz=True)]
Duration = Annotated[
    int | float | str, msgspec.Meta(title="Duration", description="Seconds, or a Go duration: `30s`, `1h30m`")
]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
Total = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""How many of what is counted over time or over a cluster: exact in JSON everywhere."""
Priority = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]


class Wire(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Base of every struct that crosses the wire: immutable, unknown fields refused."""


Fields = dict[str, Any]
"""Part of a native document, as its system writes it: nested mappings and lists, strings, numbers and bools."""


class Native(Wire, frozen=True, kw_only=True):
    """By system, the part of one native document that Arbiter does not decide, in the shape of the document. An export
    to that system writes it again beside what Arbiter decides; no decision depends on it."""

    kueue: Fields = {}
    """Of a ClusterQueue, Cohort, ResourceFlavor or of Kueue's own Configuration, from its top: `metadata`, `spec`."""
    yunikorn: Fields = {}
    """Of a queue of queues.yaml, or of the partition."""
    kai: Fields = {}
    """Of a Queue, or of the SchedulingShard, from its top: `metadata`, `spec`."""
    ytsaurus: Fields = {}
    """Attributes of a pool, or of the pool tree."""


class NativeDocuments(Native, frozen=True, kw_only=True):
    """What belongs to no queue and no flavor: the rest of the configuration's own document, and whole objects."""

    objects: list[Fields] = []
    """Kubernetes objects that belong to the configuration and bear on no decision, whole: LocalQueues, AdmissionChecks,
    Topologies, WorkloadPriorityClasses. An export to the system of their API group writes them again."""


_INT64 = 2**63 - 1
_SECOND = 10**9
_GO = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_DAY = 24 * 3600 * _SECOND
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h|d|w)")
_LONGEST = 256


class DurationError(ValueError):
    """A duration that is malformed or out of range; the text says which."""


@dataclass(frozen=True, eq=False)
class Dialect:
    """Who spells a duration so. ``units`` in nanoseconds; ``limit``: the longest one, in nanoseconds, either way."""

    units: Mapping[str, int]
    limit: int


WIRE = Dialect(_GO, limit=10**12 * _SECOND)
"""Arbiter's own: Go's units, and as many seconds as a number may name."""
GO = Dialect(_GO, limit=_INT64)
"""Go's time.Duration, an int64 of nanoseconds: 292 years. YuniKorn's properties."""
GO_WITH_DAYS = Dialect(_GO | {"d": _DAY, "w": 7 * _DAY}, limit=_INT64)
"""The same with days of 24 hours and weeks: KAI's plugin arguments (str2duration)."""


@lru_cache(maxsize=4096, typed=True)
def parse_duration(value: Duration, dialect: Dialect = WIRE) -> int:
    """``value`` in microseconds, possibly negative; a text's rest below one falls away. Raises DurationError."""
    if isinstance(value, bool):
        raise DurationError("a boolean is not a duration")
    if isinstance(value, str):
        nanos = nanoseconds(value, dialect)
        return nanos // 1000 if nanos >= 0 else -(-nanos // 1000)
    if value != value or abs(value) > dialect.limit // _SECOND:
        raise DurationError("out of range")
    return value * 10**6 if isinstance(value, int) else round(Decimal(repr(value)) * 10**6)


def nanoseconds(text: str, dialect: Dialect = GO) -> int:
    """A duration string in nanoseconds, possibly negative. Raises DurationError."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0
    total, position = 0, 0
    while position < len(body) <= _LONGEST:
        part = _PART.match(body, position)
        if part is None or not (part[1] or part[2]) or part[3] not in dialect.units:
            break
        unit = dialect.units[part[3]]
        total += int(part[1] or 0) * unit + _fraction(part[2] or "", unit)
        position = part.end()
    if position == 0 or position < len(body):
        raise DurationError(f"{text[:64]!r} is not a duration")
    negative = text[0] == "-"
    if total > dialect.limit + (negative and dialect.limit == _INT64):
        raise DurationError(f"{text[:64]!r} is out of range: at most {seconds(dialect.limit // 1000):g} s")
    return -total if negative else total


def _fraction(digits: str, unit: int) -> int:
    """``0.digits`` of ``unit``: Go leaves out digits that an int64 has no room for, then multiplies doubles."""
    value, scale = 0, 1.0
    for digit in digits:
        longer = value * 10 + int(digit)
        if longer > 2**63:
            break
        value, scale = longer, scale * 10
    return int(value * (unit / scale))


def seconds(micros: int) -> int | float:
    """Microseconds as answers show them: seconds."""
    whole, rest = divmod(micros, 10**6)
    return whole if rest == 0 else micros / 10**6


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)


def micros(instant: datetime) -> int:
    """``instant`` in microseconds since the epoch."""
    gap = instant - _EPOCH
    return gap.days * 86_400_000_000 + gap.seconds * 1_000_000 + gap.microseconds


@lru_cache(maxsize=4096)
def to_datetime(value: int) -> datetime:
    """The instant ``value`` microseconds after the epoch, in UTC. Cached: whatever happens at one instant says so."""
    return _EPOCH + value * _MICRO


MILLI_RESOURCES = frozenset({"cpu", "vcore", "gpu"})
MAX_UNITS = 2**53
MAX_STEPS = 2**63 - 1
UNLIMITED = "unlimited"

_FORM = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,3})|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?"
)
_SUFFIX = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("0.001"),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12),
    "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip


class QuantityError(ValueError):
    """A quantity that is malformed, negative, too fine or too large; the text says which."""


@lru_cache(maxsize=1024)
def scale_of(resource: str) -> int:
    """Integer steps in one whole unit of ``resource``: 1000 or 1."""
    return 1000 if resource in MILLI_RESOURCES or resource.endswith("/gpu") else 1


@lru_cache(maxsize=1 << 16, typed=True)
def parse_quantity(value: Quantity, scale: int) -> int:
    """``value`` in steps of 1/``scale`` unit. Raises QuantityError.

    Cached: a cluster repeats a few hundred distinct quantities.
    """
    if isinstance(value, bool):
        raise QuantityError("a boolean is not a quantity")
    if isinstance(value, int):
        return _checked(value * scale, scale, value)
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise QuantityError("not a finite number")
        number = Decimal(repr(value))
    else:
        number = _decimal(value)
    steps = number * scale
    if steps != steps.to_integral_value():
        raise QuantityError(f"{value!r} is finer than {'1/1000 of a unit' if scale > 1 else 'one unit'}")
    if scale > 1 and isinstance(value, str) and value.endswith("m") and MAX_UNITS * scale < steps <= MAX_STEPS:
        return int(steps)
    return _checked(int(steps), scale, value)


def exact(value: object) -> Decimal:
    """``value`` in whole units, however fine. Raises QuantityError, also where it is of another type."""
    if isinstance(value, bool):
        raise QuantityError("a boolean is not a quantity")
    if not isinstance(value, str | int | float):
        raise QuantityError(f"a quantity is a number or a text, not {type(value).__name__}")
    number = _decimal(value) if isinstance(value, str) else Decimal(repr(value))
    if not number.is_finite():
        raise QuantityError("not a finite number")
    if not 0 <= number <= MAX_UNITS:
        raise QuantityError(f"{value!r} is negative" if number < 0 else f"{value!r} is past 2^53 units")
    return number


def _decimal(text: str) -> Decimal:
    match = _FORM.fullmatch(text) if len(text) <= 64 else None
    if match is None:
        raise QuantityError(f"{text[:64]!r} is not a Kubernetes quantity")
    digits, exponent, suffix = match.groups()
    number = Decimal(digits)
    if exponent is not None:
        if abs(int(exponent)) > 30:
            raise QuantityError(f"{text!r} is out of range")
        return number.scaleb(int(exponent))
    return number * _SUFFIX[suffix] if suffix else number


def _checked(steps: int, scale: int, value: Quantity) -> int:
    if steps < 0:
        raise QuantityError(f"{value!r} is negative")
    if steps > MAX_UNITS * scale:
        raise QuantityError(f"{value!r} is past 2^53 units")
    return steps


def units(steps: int, resource: str) -> int | float:
    """``steps`` of ``resource`` as answers show them: a number in whole units."""
    scale = scale_of(resource)
    whole, rest = divmod(steps, scale)
    return whole if rest == 0 else steps / scale


def units_of(resource: str, **steps: int) -> dict[str, int | float]:
    """Several amounts of ``resource`` by name, each in whole units."""
    return {name: units(amount, resource) for name, amount in steps.items()}
