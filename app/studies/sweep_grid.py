"""A grid from one document, every point of it the request of a simulation; its results as Parquet. Pure."""

from collections.abc import Iterator
from copy import deepcopy
from hashlib import sha256
from io import BytesIO
from itertools import product
from typing import Any, NamedTuple, cast

import msgspec

from app.base.decoding import convert
from app.base.errors import BadInput
from app.simulations.schemas import SimulationRequest, Spread, Summary, Totals, Units
from app.solver.model.base import Name, Wire
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput, Problem, pointer

_MOST_POINTS = 100_000
_encode = msgspec.json.Encoder(order="deterministic").encode


class TraceFile(Wire, frozen=True, kw_only=True):
    """A trace on this machine."""

    file: str
    format: str | None = None
    mapping: str | None = None
    nodes: str | None = None
    sample: float | None = None
    """The part of the jobs that each seed draws, between 0 and 1. Absent: all of them, whatever the seed."""


class Grid(Wire, frozen=True, kw_only=True):
    """``arbiter sweep FILE``. Every combination is run."""

    request: dict[str, Any] = {}
    """Fields of a simulation that all points share."""
    configurations: dict[Name, str | Configuration]
    """By name: a file, a document, or `trace` for the one that the trace's mapping makes of it."""
    traces: dict[Name, str | TraceFile]
    """By name: a file, or a file with its format."""
    seeds: list[int] | None = None
    """What samples are drawn with. Absent: one, 0."""
    settings: dict[str, list[Any]] = {}
    """Values to try, by JSON pointer into the request (`/grace`, `/configuration/settings/kueue/fair_sharing`)."""


class Point(NamedTuple):
    """One run. ``values`` by pointer; ``request`` without its trace, as JSON; ``key`` tells it from every other run, by
    all that it depends on."""

    configuration: str
    trace: str
    seed: int
    values: dict[str, Any]
    request: bytes
    key: str


def size(grid: Grid) -> int:
    """How many points it has."""
    count = len(grid.configurations) * len(grid.traces) * len(_seeds(grid))
    for values in grid.settings.values():
        count *= len(values)
    return count


def points(grid: Grid, configurations: dict[tuple[str, str], Configuration], digests: dict[str, str]) -> list[Point]:
    """Every point, in the order of the document. ``configurations`` by name and trace; ``digests`` of the traces.

    Raises InvalidInput, BadInput."""
    count = size(grid)
    if not 0 < count <= _MOST_POINTS:
        raise BadInput([Problem(pointer="", detail=f"{count} points; 1 to {_MOST_POINTS} are allowed")])
    return list(_points(grid, configurations, digests))


def _points(
    grid: Grid, configurations: dict[tuple[str, str], Configuration], digests: dict[str, str]
) -> Iterator[Point]:
    combined = list(product(*grid.settings.values()))
    for configuration, trace, seed in product(grid.configurations, grid.traces, _seeds(grid)):
        base = {
            **grid.request,
            "configuration": msgspec.to_builtins(configurations[configuration, trace]),
            "trace": trace,
            "seed": seed,
        }
        for chosen in combined:
            values = dict(zip(grid.settings, chosen, strict=True))
            document = deepcopy(base) if values else base
            for path, value in values.items():
                _set(document, path, value)
            try:
                request = _encode(convert(document, SimulationRequest))
            except InvalidInput as invalid:
                raise InvalidInput(
                    Problem(pointer=found.pointer, detail=f"{configuration}, {trace}: {found.detail}")
                    for found in invalid.problems
                ) from None
            part = grid.traces[trace]
            sampled = part.sample if isinstance(part, TraceFile) else None
            said = _encode([request.decode(), digests[trace], seed if sampled is not None else None, sampled])
            yield Point(configuration, trace, seed, values, request, sha256(said).hexdigest()[:16])


def _seeds(grid: Grid) -> list[int]:
    return [0] if grid.seeds is None else grid.seeds


def _set(document: dict[str, Any], path: str, value: Any) -> None:
    """Raises BadInput."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
    if not path.startswith("/") or steps[0] in ("trace", "seed", "variants"):
        raise BadInput([Problem(pointer=pointer("settings", path), detail="no pointer into the request")])
    at: Any = document
    for number, step in enumerate(steps, 1):
        last = number == len(steps)
        inside = _inside(at, step, None if last else {})
        if inside is None:
            raise BadInput([Problem(pointer=pointer("settings", path), detail=f"nothing there at {step!r}")])
        holder, key = inside
        if last:
            holder[key] = value
        else:
            at = holder[key]


def _inside(at: Any, step: str, absent: Any) -> tuple[Any, str | int] | None:
    """What holds ``step`` of ``at``, and by which key; an object that lacks it gets ``absent`` there. None: nothing
    can."""
    if isinstance(at, list):
        items = cast(list[Any], at)
        return (items, int(step)) if step.isdigit() and int(step) < len(items) else None
    if not isinstance(at, dict):
        return None
    fields = cast(dict[str, Any], at)
    if absent is not None:
        fields.setdefault(step, absent)
    return fields, step


_SPREADS = ("wait", "completion", "slowdown")
_AMOUNTS = ("work_done", "work_lost", "used", "utilisation", "shortfall")


def rows(point: Point, summary: Summary) -> list[dict[str, Any]]:
    """The rows of a run: one for each queue, and one for all of them, in which ``queue`` is empty."""
    named: list[tuple[str, Totals]] = [("", summary.total), *sorted(summary.queues.items())]
    return [_row(point, summary, queue, totals) for queue, totals in named]


def parquet(found: list[dict[str, Any]]) -> bytes:
    """The same bytes for the same rows."""
    import pyarrow  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]
    from pyarrow import parquet as module  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]

    pa: Any = pyarrow
    pq: Any = module
    text, number, whole = pa.string(), pa.float64(), pa.int64()
    fields: list[Any] = [("key", text), ("configuration", text), ("trace", text), ("seed", whole), ("settings", text)]
    fields += [("engine", text), ("queue", text), ("rounds", whole), ("loops", whole), ("makespan", number)]
    fields += [(name, whole) for name in ("jobs", "finished", "cancelled", "evictions", "most_evictions")]
    fields += [(f"{name}_{at}", number) for name in _SPREADS for at in Spread.__struct_fields__]
    fields += [(name, pa.map_(text, number)) for name in _AMOUNTS]
    table = pa.Table.from_pylist(found, schema=pa.schema(fields))
    out = BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()


def _row(point: Point, summary: Summary, queue: str, totals: Totals) -> dict[str, Any]:
    row: dict[str, Any] = {
        "key": point.key, "configuration": point.configuration, "trace": point.trace, "seed": point.seed,
        "settings": msgspec.json.encode(point.values, order="deterministic").decode(),
        "engine": summary.engine, "queue": queue, "rounds": summary.rounds, "loops": summary.loops,
        "makespan": float(summary.makespan), "jobs": totals.jobs, "finished": totals.finished,
        "cancelled": totals.cancelled, "evictions": totals.evictions, "most_evictions": totals.most_evictions,
    }  # fmt: skip
    for name in _SPREADS:
        spread: Spread | None = getattr(totals, name)
        for at in Spread.__struct_fields__:
            row[f"{name}_{at}"] = None if spread is None else float(getattr(spread, at))
    for name in _AMOUNTS:
        amounts: dict[str, Units] = getattr(totals, name)
        row[name] = [(resource, float(amount)) for resource, amount in sorted(amounts.items())]
    return row
