"""Results as Parquet: a row for each queue of a run, and one for all of them."""

from io import BytesIO
from typing import Any

import msgspec

from app.simulations.schemas import Spread, Summary, Totals, Units
from app.studies.sweeps.grid import Point

_SPREADS = ("wait", "completion", "slowdown")
_AMOUNTS = ("work_done", "work_lost", "used", "utilisation", "shortfall")


def rows(point: Point, summary: Summary) -> list[dict[str, Any]]:
    """The rows of a run; ``queue`` is empty in that of all queues."""
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
