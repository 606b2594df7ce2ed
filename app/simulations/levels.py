"""What queues held, waited for and were guaranteed over time: kept as lines, read as exact areas. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import msgspec

from app.simulations.core.amounts import Amounts, work
from app.simulations.core.times import time_of
from app.simulations.results import ResourceSeries, Series

Level = tuple[int, dict[str, tuple[int, int, int]]]
"""Since when, in microseconds, and by resource what is held, waited for and guaranteed, in steps."""


class _Line(msgspec.Struct, array_like=True, frozen=True):
    queue: str
    since: int
    amounts: dict[str, tuple[int, int, int]]


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(_Line).decode


@dataclass
class Areas:
    """Of one resource, by interval: steps times microseconds."""

    usage: list[int] = field(default_factory=list[int])
    waiting: list[int] = field(default_factory=list[int])
    guarantee: list[int] = field(default_factory=list[int])


def level_of(since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> Level:
    """Resources of which there is nothing are left out."""
    found: dict[str, tuple[int, int, int]] = {}
    for resource in {**usage, **waiting, **guarantee}:
        amounts = usage.get(resource, 0), waiting.get(resource, 0), guarantee.get(resource, 0)
        if any(amounts):
            found[resource] = amounts
    return since, found


def line_of(queue: str, since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> bytes:
    """A level as it is kept."""
    return _encode(_Line(queue, *level_of(since, usage, waiting, guarantee)))


def levels_of(blocks: Iterable[bytes], queue: str) -> Iterator[Level]:
    """The levels of one queue, in order, from blocks of lines."""
    mine = re.compile(rb"^\[" + re.escape(_encode(queue)) + rb",.*$", re.MULTILINE)
    for block in blocks:
        for line in mine.findall(block):
            found = _decode(line)
            yield found.since, found.amounts


def edges(start: int, end: int, points: int) -> list[int]:
    """Where ``points`` intervals begin, and the end of the last one, in microseconds; none where there is no time."""
    return [] if end <= start else [start + (end - start) * i // points for i in range(points + 1)]


def areas(levels: Iterable[Level], at: Sequence[int], resource: str | None = None) -> dict[str, Areas]:
    """By resource (only ``resource``, where given), for each interval between two of ``at``. A level holds until the
    next one, the last to the end."""
    found: dict[str, Areas] = {}
    if not at:
        return found
    before: Level = at[0], {}
    place = 0
    last: Level = at[-1], {}
    for level in chain(levels, [last]):
        place = _spread(found, before, level[0], at, place, resource)
        before = level
    return dict(sorted(found.items()))


def _spread(
    into: dict[str, Areas], level: Level, until: int, at: Sequence[int], place: int, resource: str | None
) -> int:
    """Add a level that holds until ``until``, no later than the last of ``at``; the interval in which that is.
    ``place``: one no later than that in which the level begins."""
    since, amounts = level
    while since < until:
        while at[place + 1] <= since:
            place += 1
        upto = min(until, at[place + 1])
        for name, (usage, waiting, guarantee) in amounts.items():
            if resource is not None and name != resource:
                continue
            areas = into.get(name)
            if areas is None:
                areas = into[name] = Areas(*([0] * (len(at) - 1) for _ in range(3)))
            length = upto - since
            areas.usage[place] += usage * length
            areas.waiting[place] += waiting * length
            areas.guarantee[place] += guarantee * length
        since = upto
    return place


def series_of(queue: str | None, at: Sequence[int], found: dict[str, Areas]) -> Series:
    """As the wire has it."""
    return Series(
        queue=queue,
        at=[time_of(edge) for edge in at],
        resources={
            resource: ResourceSeries(
                usage=[work(area, resource) for area in areas.usage],
                guarantee=[work(area, resource) for area in areas.guarantee],
                demand=[work(u + w, resource) for u, w in zip(areas.usage, areas.waiting, strict=True)],
            )
            for resource, areas in found.items()
        },
    )
