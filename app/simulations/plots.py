"""What is drawn of a run: the numbers of its pictures, plain, so that they can be sent to a process that draws them."""

import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import Literal

import msgspec

from app.base import python
from app.base.errors import DeadlinePassed, NotInstalled
from app.base.ticket import Ticket, held
from app.simulations.core.sink import work
from app.simulations.results import Level, areas, edges
from app.simulations.schemas import Summary, Units
from app.solver.model.base import micros

Kind = Literal["usage", "waits", "evictions", "fragmentation"]


class Panel(msgspec.Struct, frozen=True):
    """One part of a picture: means by interval, in units of the resource."""

    name: str
    """The queue; empty: all together. Of what is free the flavor and the level."""
    usage: list[float]
    """What was held. Of what is free: the most in one domain."""
    guarantee: list[float]
    """What is guaranteed. Of what is free: in all domains together."""


class Usage(msgspec.Struct, frozen=True, tag=True):
    """What queues used over time."""

    resource: str
    """The resource."""
    at: list[float]
    """Seconds since 1970 where intervals begin, and the end of the last."""
    panels: list[Panel]
    """All queues together, then those that used most."""
    left_out: int = 0
    """How many queues that used some have no panel."""


class Waits(msgspec.Struct, frozen=True, tag=True):
    """How long jobs waited for their first start."""

    lines: dict[str, list[float]]
    """Seconds, ascending, by what the line is called."""
    never: int = 0
    """Jobs that did not start."""


class Evictions(msgspec.Struct, frozen=True, tag=True):
    """Who was evicted for whom."""

    counts: dict[str, dict[str, int]]
    """By the queue of the evicted, then by that it was evicted for; empty: for nobody."""


class Free(msgspec.Struct, frozen=True, tag=True):
    """What was free over time where pods are placed by topologies."""

    resource: str
    """The resource."""
    at: list[float]
    """Seconds since 1970 where intervals begin, and the end of the last."""
    panels: list[Panel]
    """By flavor and level."""
    left_out: int = 0
    """How many levels have no panel."""


Picture = Usage | Waits | Evictions | Free


class Drawing(msgspec.Struct, frozen=True):
    """Pictures one below the other."""

    title: str
    pictures: list[Picture]


_SECONDS = 60.0


def drawn(drawing: Drawing) -> bytes:
    """SVG, within the time of the request that is being answered. Drawn in a process of its own: it takes a second of
    processor time, which decisions would have to wait for. Raises NotInstalled without the extra
    ``arbiter-preemption[plot]``, and DeadlinePassed."""
    require()
    command = [*python(), "-m", "app.simulations.drawing"]
    ticket = held() or Ticket.now("large", _SECONDS)
    try:
        done = subprocess.run(
            command, input=msgspec.json.encode(drawing), capture_output=True, timeout=ticket.left, check=False
        )
    except subprocess.TimeoutExpired:  # by now the process is killed
        raise DeadlinePassed(ticket.seconds) from None
    if done.returncode:
        raise RuntimeError(f"drawing failed: {done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout


def require() -> None:
    """Raises NotInstalled where nothing can be drawn."""
    try:
        spec = find_spec("matplotlib")
    except ValueError:  # it was looked for in vain before
        spec = None
    if spec is None:
        raise NotInstalled("pictures need matplotlib: uv tool install 'arbiter-preemption[plot]'")


POINTS = 240
_PANELS = 12
_LINES = 8
_SIDE = 16
_QUANTILES = 200
OTHERS = "(others)"


class _Job(msgspec.Struct):
    queue: str
    wait: Units | None = None


class _Event(msgspec.Struct):
    kind: str
    job: str | None = None
    queue: str | None = None
    by: str | None = None


_job = msgspec.json.Decoder(_Job).decode
_event = msgspec.json.Decoder(_Event).decode


def resource_of(summary: Summary, wanted: str | None) -> str:
    """The resource to draw: the one wanted, else the one that was used most of what there is."""
    if wanted is not None:
        return wanted
    shares = summary.total.utilisation
    if shares:
        return min(shares, key=lambda name: (-shares[name], name))
    return min(summary.total.used, default="cpu")


def drawn_queues(summary: Summary, resource: str) -> tuple[list[str], int]:
    """The queues that used most of it, in order of name, and how many are left out; one that used all of it looks like
    all queues together."""

    def used(name: str) -> float:
        return summary.queues[name].used.get(resource, 0)

    whole = summary.total.used.get(resource, 0)
    parts = (name for name in summary.queues if 0 < used(name) < whole or (used(name) and len(summary.queues) == 1))
    named = sorted(parts, key=lambda name: (-used(name), name))
    return sorted(named[:_PANELS]), max(0, len(named) - _PANELS)


def usage_of(summary: Summary, resource: str, levels: Callable[[str], Iterable[Level]]) -> Usage:
    """``levels`` of a queue by its name, of all together as ``""``."""
    bounds = edges(micros(summary.start), micros(summary.end), POINTS)
    queues, left_out = drawn_queues(summary, resource)
    panels = [
        Panel(queue, _means(area.usage, bounds, resource), _means(area.guarantee, bounds, resource))
        for queue in ("", *queues)
        for area in areas(levels(queue), bounds, resource).values()
    ]
    return Usage(resource, [edge / 1e6 for edge in bounds], panels, left_out)


def free_of(summary: Summary, resource: str | None, spare: dict[tuple[str, str], list[Level]]) -> Free:
    """What is free by flavor and level; of the resource wanted, else of the one that lies scattered most."""
    most = max(summary.fragmentation, key=lambda of: (of.share, of.resource), default=None)
    chosen = resource or (resource_of(summary, None) if most is None else most.resource)
    bounds = edges(micros(summary.start), micros(summary.end), POINTS)
    panels = [
        Panel(f"{flavor}: {level}", _means(area.usage, bounds, chosen), _means(area.guarantee, bounds, chosen))
        for (flavor, level), levels in list(spare.items())[:_PANELS]
        for area in areas(levels, bounds, chosen).values()
    ]
    return Free(chosen, [edge / 1e6 for edge in bounds], panels, max(0, len(spare) - _PANELS))


def _means(totals: list[int], bounds: Sequence[int], resource: str) -> list[float]:
    return [
        1e6 * work(area, resource) / (after - before)
        for area, before, after in zip(totals, bounds, bounds[1:], strict=False)
    ]  # fmt: skip


def waits_of(lines: Iterable[bytes]) -> Waits:
    """From lines of jobs: all together, and the queues with the most jobs that started."""
    by_queue: defaultdict[str, list[float]] = defaultdict(list)
    never = 0
    for line in lines:
        job = _job(line)
        if job.wait is None:
            never += 1
        else:
            by_queue[job.queue].append(job.wait)
    largest = sorted(by_queue, key=lambda name: (-len(by_queue[name]), name))
    by_line = {"all queues": sorted(wait for waits in by_queue.values() for wait in waits)}
    if len(largest) > 1:
        by_line |= {name: sorted(by_queue[name]) for name in largest[: _LINES - 1]}
    return Waits(by_line, never)


def waits_by_variant(lines: dict[str, Iterable[bytes]]) -> Waits:
    """From lines of jobs by variant: a line for each."""
    waits = {name: sorted(job.wait for job in map(_job, jobs) if job.wait is not None) for name, jobs in lines.items()}
    return Waits(dict(list(waits.items())[:_LINES]))


def thinned(waits: Waits) -> Waits:
    """Lines of more than 201 waits as their quantiles: 0, 0.5 … 100 %."""
    lines = {
        name: [line[round(i * (len(line) - 1) / _QUANTILES)] for i in range(_QUANTILES + 1)]
        if len(line) > _QUANTILES + 1 else line
        for name, line in waits.lines.items()
    }  # fmt: skip
    return Waits(lines, waits.never)


def evictions_of(lines: Iterable[bytes]) -> Evictions:
    """From lines of events; of many queues, those with the most evictions."""
    queues: dict[str, str] = {}
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        event = _event(line)
        if event.kind == "submitted" and event.job is not None and event.queue is not None:
            queues[event.job] = event.queue
        elif event.kind == "evicted" and event.queue is not None:
            counts[event.queue]["" if event.by is None else queues.get(event.by, "")] += 1
    return Evictions(_folded(counts))


def _folded(counts: dict[str, Counter[str]]) -> dict[str, dict[str, int]]:
    """The queues with the most on each side; the rest together."""
    columns: Counter[str] = Counter()
    for row in counts.values():
        columns.update(row)
    rows = {name: sum(row.values()) for name, row in counts.items()}
    kept_rows, kept_columns = _largest(rows), _largest({name: n for name, n in columns.items() if name}) | {""}
    folded: dict[str, Counter[str]] = {}
    for name, row in sorted(counts.items(), key=lambda pair: (pair[0] not in kept_rows, pair[0])):
        into = folded.setdefault(name if name in kept_rows else OTHERS, Counter())
        for by, n in sorted(row.items()):
            into[by if by in kept_columns else OTHERS] += n
    return {name: dict(row) for name, row in folded.items()}


def _largest(of: dict[str, int]) -> set[str]:
    return set(sorted(of, key=lambda name: (-of[name], name))[:_SIDE])


def lines_in(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Single lines of blocks of them."""
    for block in blocks:
        yield from block.splitlines()
