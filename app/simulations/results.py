"""What the endpoints of simulations answer beside the lines of a run, and how levels become series. Pure.

What queues held, waited for and were guaranteed over time is kept as lines and read as exact areas.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import msgspec

from app.jobs.service import JobState
from app.simulations.core.sink import Amounts, time_of, work
from app.simulations.schemas import Parted, Summary, Units
from app.solver.model.base import Time, Wire


class Progress(Wire, frozen=True, kw_only=True):
    """How far a run is."""

    variant: str = ""
    """The variant that runs; empty where there are none."""
    variants_done: int = 0
    """How many variants are done."""
    at: Time | None = None
    """The virtual time. Absent: it has not begun."""
    ended: int = 0
    """Jobs of this variant that have ended."""
    total: int | None = None
    """All jobs of the trace. Absent: not known."""
    rounds: int = 0
    """Rounds of this variant."""


class VariantSummary(Wire, frozen=True, kw_only=True):
    """What one variant came to."""

    name: str = ""
    """Its name; empty where the request has no variants."""
    summary: Summary
    """What it came to."""
    parted: Parted | None = None
    """Where its course leaves the first variant's. Absent: nowhere, or it is the first."""


class JobDifference(Wire, frozen=True, kw_only=True):
    """A job that fared otherwise in a variant than in the first."""

    job: str
    """Its id."""
    variant: str
    """The variant."""
    completion: Units | None = None
    """Seconds from being asked for to the end in the first variant. Absent: it did not end."""
    completion_here: Units | None = None
    """The same in this variant."""
    evictions: int = 0
    """How often it was evicted in the first variant."""
    evictions_here: int = 0
    """The same in this variant."""


class TraceUsed(Wire, frozen=True, kw_only=True):
    """The stored trace of a simulation."""

    name: str
    """Its name when the simulation was asked for."""
    digest: str
    """SHA-256 of its lines."""


class About(Wire, frozen=True, kw_only=True):
    """What is kept of a request to tell of it without reading it."""

    variants: list[str]
    trace: TraceUsed | None = None
    name: str | None = None


class Outcome(Wire, frozen=True, kw_only=True):
    """What a simulation came to."""

    variants: list[VariantSummary]
    differences: list[JobDifference] = []


class Simulation(JobState, frozen=True, kw_only=True):
    """``GET /v1/simulations/{id}``."""

    name: str | None = None
    """What people call it. Absent: nothing."""
    trace: TraceUsed | None = None
    """The stored trace. Absent: the request brought its own."""
    names: list[str] = []
    """The names of its variants. Absent: it has none."""
    progress: Progress | None = None
    """How far it is, or came. Absent: it has not begun, or only just."""
    variants: list[VariantSummary] = []
    """What each variant came to, in the order of the request. Empty until it is done."""
    differences: list[JobDifference] = []
    """The jobs whose completion differs most from the first variant's, at most 20 a variant."""
    error: str | None = None
    """Why it failed."""


class ResourceSeries(Wire, frozen=True, kw_only=True):
    """One resource over time: exact areas, in units of the resource times seconds, one for each interval."""

    usage: list[Units]
    """What was held: running, or until an evicted job released it."""
    guarantee: list[Units]
    """What is guaranteed; of all queues together, the capacity."""
    demand: list[Units]
    """What was held or waited for."""


class Series(Wire, frozen=True, kw_only=True):
    """``GET /v1/simulations/{id}/series``."""

    queue: str | None = None
    """The queue, with all below it. Absent: all queues together."""
    at: list[Time]
    """Where intervals begin, and the end of the last one: one more than there are intervals. Divide an area by the
    length of its interval for the mean."""
    resources: dict[str, ResourceSeries]
    """By resource."""


class FreeSeries(Wire, frozen=True, kw_only=True):
    """One resource over time: exact areas, in units of the resource times seconds, one for each interval."""

    free: list[Units]
    """What was free in all domains of the level."""
    largest: list[Units]
    """What was free in the one of them that had most at each moment."""


class LevelSeries(Wire, frozen=True, kw_only=True):
    """One level of a flavor's topology."""

    flavor: str
    """The flavor."""
    level: str
    """The level."""
    resources: dict[str, FreeSeries]
    """By resource."""


class FragmentationSeries(Wire, frozen=True, kw_only=True):
    """``GET /v1/simulations/{id}/fragmentation``."""

    at: list[Time]
    """Where intervals begin, and the end of the last one: one more than there are intervals."""
    levels: list[LevelSeries]
    """By flavor, from the outermost level to the lowest. Empty: no flavor has a topology."""


class SimulationPage(Wire, frozen=True, kw_only=True):
    """``GET /v1/simulations``: newest first."""

    items: list[Simulation]
    """Newest first, without summaries."""
    next_cursor: str | None = None
    """Give it as `cursor` for the next page. Absent: this is the last."""


Level = tuple[int, dict[str, tuple[int, int, int]]]
"""Since when, in microseconds, and by resource what is held, waited for and guaranteed, in steps."""


class _Line(msgspec.Struct, array_like=True, frozen=True):
    of: str | tuple[str, str]
    since: int
    amounts: dict[str, tuple[int, int, int]]


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(_Line).decode
_SPARE = re.compile(rb"^\[\[.*$", re.MULTILINE)


@dataclass
class Areas:
    """Of one resource, by interval: steps times microseconds."""

    usage: list[int] = field(default_factory=list[int])
    waiting: list[int] = field(default_factory=list[int])
    guarantee: list[int] = field(default_factory=list[int])


def level_of(since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> Level:
    """Resources of which there is nothing are left out."""
    levels: dict[str, tuple[int, int, int]] = {}
    for resource in {**usage, **waiting, **guarantee}:
        amounts = usage.get(resource, 0), waiting.get(resource, 0), guarantee.get(resource, 0)
        if any(amounts):
            levels[resource] = amounts
    return since, levels


def line_of(queue: str, since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> bytes:
    """A level as it is kept."""
    return _encode(_Line(queue, *level_of(since, usage, waiting, guarantee)))


def spare_line_of(flavor: str, level: str, since: int, free: Amounts, largest: Amounts) -> bytes:
    """What is free, as it is kept: a level of (flavor, level) that holds the largest and is guaranteed all."""
    return _encode(_Line((flavor, level), *level_of(since, largest, {}, free)))


def spare_of(blocks: Iterable[bytes]) -> dict[tuple[str, str], list[Level]]:
    """The levels of every flavor and level of its topology, in order, from blocks of lines."""
    spare: dict[tuple[str, str], list[Level]] = {}
    for block in blocks:
        for line in _SPARE.findall(block):
            level = _decode(line)
            if isinstance(level.of, tuple):
                spare.setdefault(level.of, []).append((level.since, level.amounts))
    return spare


def levels_of(blocks: Iterable[bytes], queue: str) -> Iterator[Level]:
    """The levels of one queue, in order, from blocks of lines."""
    mine = re.compile(rb"^\[" + re.escape(_encode(queue)) + rb",.*$", re.MULTILINE)
    for block in blocks:
        for line in mine.findall(block):
            level = _decode(line)
            yield level.since, level.amounts


def edges(start: int, end: int, points: int) -> list[int]:
    """Where ``points`` intervals begin, and the end of the last one, in microseconds; none where there is no time."""
    return [] if end <= start else [start + (end - start) * i // points for i in range(points + 1)]


def areas(levels: Iterable[Level], bounds: Sequence[int], resource: str | None = None) -> dict[str, Areas]:
    """By resource (only ``resource``, where given), for each interval between two of ``bounds``. A level holds until
    the next one, the last to the end."""
    by_resource: dict[str, Areas] = {}
    if not bounds:
        return by_resource
    before: Level = bounds[0], {}
    place = 0
    last: Level = bounds[-1], {}
    for level in chain(levels, [last]):
        place = _spread(by_resource, before, level[0], bounds, place, resource)
        before = level
    return dict(sorted(by_resource.items()))


def _spread(
    into: dict[str, Areas], level: Level, until: int, bounds: Sequence[int], place: int, resource: str | None
) -> int:
    """Add a level that holds until ``until``, no later than the last of ``bounds``; the interval in which that is.
    ``place``: one no later than that in which the level begins."""
    since, amounts = level
    while since < until:
        while bounds[place + 1] <= since:
            place += 1
        upto = min(until, bounds[place + 1])
        for name, (usage, waiting, guarantee) in amounts.items():
            if resource is not None and name != resource:
                continue
            areas = into.get(name)
            if areas is None:
                areas = into[name] = Areas(*([0] * (len(bounds) - 1) for _ in range(3)))
            length = upto - since
            areas.usage[place] += usage * length
            areas.waiting[place] += waiting * length
            areas.guarantee[place] += guarantee * length
        since = upto
    return place


def series_of(queue: str | None, bounds: Sequence[int], by_resource: dict[str, Areas]) -> Series:
    """As the wire has it."""
    return Series(
        queue=queue,
        at=[time_of(edge) for edge in bounds],
        resources={
            resource: ResourceSeries(
                usage=[work(area, resource) for area in areas.usage],
                guarantee=[work(area, resource) for area in areas.guarantee],
                demand=[work(u + w, resource) for u, w in zip(areas.usage, areas.waiting, strict=True)],
            )
            for resource, areas in by_resource.items()
        },
    )


def fragmentation_of(
    bounds: Sequence[int], spare: dict[tuple[str, str], list[Level]], resource: str | None
) -> FragmentationSeries:
    """As the wire has it."""
    return FragmentationSeries(
        at=[time_of(edge) for edge in bounds],
        levels=[
            LevelSeries(
                flavor=flavor, level=level,
                resources={
                    name: FreeSeries(
                        free=[work(area, name) for area in of.guarantee],
                        largest=[work(area, name) for area in of.usage],
                    )
                    for name, of in areas(levels, bounds, resource).items()
                },
            )
            for (flavor, level), levels in spare.items()
        ],
    )  # fmt: skip
