"""The points of a sweep: made from one document, run on this machine's cores or on a Ray cluster, written as
Parquet.
"""

import os
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from copy import deepcopy
from hashlib import sha256
from io import BytesIO
from itertools import product
from multiprocessing import get_context, parent_process
from multiprocessing.context import BaseContext
from multiprocessing.forkserver import ensure_running
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from threading import Thread
from types import TracebackType
from typing import Any, NamedTuple, cast

import msgspec

from app.answering.sources import Compiled
from app.base.decoding import convert, decode, whole
from app.base.errors import BadInput
from app.simulations.core.run import simulate
from app.simulations.core.scenario import setting_of
from app.simulations.core.sink import Silence, Sink
from app.simulations.core.validation import check_jobs
from app.simulations.schemas import Change, Job, SimulationRequest, Spread, Summary, Totals, Trace, Units
from app.solver.engine import engine_of
from app.solver.model.base import Name, Wire
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.traces.ingest import unpacked

MOST_POINTS = 100_000
UNCOUNTED = 10**9
"""So many points and more are one number: the product of many lists has more digits than can be written."""
_encode_point = msgspec.json.Encoder(order="deterministic").encode


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
    """How many points it has; past ``UNCOUNTED`` nobody counts."""
    count = len(grid.configurations) * len(grid.traces) * len(_seeds(grid))
    for values in grid.settings.values():
        count = min(count * len(values), UNCOUNTED)
    return count


def points(grid: Grid, configurations: dict[tuple[str, str], Configuration], digests: dict[str, str]) -> list[Point]:
    """Every point, in the order of the document. ``configurations`` by name and trace; ``digests`` of the traces.

    Raises InvalidInput, BadInput."""
    count = size(grid)
    if not 0 < count <= MOST_POINTS:
        raise BadInput([Problem(pointer="", detail=f"{count} points; 1 to {MOST_POINTS} are allowed")])
    return list(each_point(grid, configurations, digests))


def each_point(
    grid: Grid, configurations: dict[tuple[str, str], Configuration], digests: dict[str, str]
) -> Iterator[Point]:
    """The same one by one, however many they are. Raises InvalidInput, BadInput."""
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
                request = _encode_point(convert(document, SimulationRequest))
            except InvalidInput as invalid:
                raise InvalidInput(
                    Problem(pointer=problem.pointer, detail=f"{configuration}, {trace}: {problem.detail}")
                    for problem in invalid.problems
                ) from None
            part = grid.traces[trace]
            sampled = part.sample if isinstance(part, TraceFile) else None
            said = _encode_point([request.decode(), digests[trace], seed if sampled is not None else None, sampled])
            yield Point(configuration, trace, seed, values, request, sha256(said).hexdigest()[:16])


def _seeds(grid: Grid) -> list[int]:
    return [0] if grid.seeds is None else grid.seeds


def _set(document: dict[str, Any], path: str, value: Any) -> None:
    """Raises BadInput."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
    if not path.startswith("/") or steps[0] in ("trace", "seed", "variants"):
        raise BadInput([Problem(pointer=pointer("settings", path), detail="no pointer into the request")])
    inner: Any = document
    for number, step in enumerate(steps, 1):
        last = number == len(steps)
        inside = _inside(inner, step, None if last else {})
        if inside is None:
            raise BadInput([Problem(pointer=pointer("settings", path), detail=f"nothing there at {step!r}")])
        holder, key = inside
        if last:
            holder[key] = value
        else:
            inner = holder[key]


def _inside(node: Any, step: str, absent: Any) -> tuple[Any, str | int] | None:
    """What holds ``step`` of ``node``, and by which key; an object that lacks it gets ``absent`` there. None: nothing
    can."""
    if isinstance(node, list):
        items = cast(list[Any], node)
        place = whole(step)
        return (items, place) if place is not None and 0 <= place < len(items) else None
    if not isinstance(node, dict):
        return None
    fields = cast(dict[str, Any], node)
    if absent is not None:
        fields.setdefault(step, absent)
    return fields, step


_SPREADS = ("wait", "completion", "slowdown")
_AMOUNTS = ("work_done", "work_lost", "used", "utilisation", "shortfall")


def rows(point: Point, summary: Summary) -> list[dict[str, Any]]:
    """The rows of a run: one for each queue, and one for all of them, in which ``queue`` is empty."""
    named: list[tuple[str, Totals]] = [("", summary.total), *sorted(summary.queues.items())]
    return [_row(point, summary, queue, totals) for queue, totals in named]


def parquet(table_rows: list[dict[str, Any]]) -> bytes:
    """The same bytes for the same rows."""
    import pyarrow  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]
    from pyarrow import parquet as module  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]

    pa: Any = pyarrow
    pq: Any = module
    text, number, whole = pa.string(), pa.float64(), pa.int64()
    fields: list[Any] = [("key", text), ("configuration", text), ("trace", text), ("seed", whole), ("settings", text)]
    fields += [("engine", text), ("queue", text), ("rounds", whole), ("loops", whole), ("makespan", number)]
    fields += [(name, whole) for name in ("jobs", "finished", "cancelled", "evictions", "most_evictions")]
    fields += [(f"{name}_{statistic}", number) for name in _SPREADS for statistic in Spread.__struct_fields__]
    fields += [(name, pa.map_(text, number)) for name in _AMOUNTS]
    table = pa.Table.from_pylist(table_rows, schema=pa.schema(fields))
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
        for statistic in Spread.__struct_fields__:
            row[f"{name}_{statistic}"] = None if spread is None else float(getattr(spread, statistic))
    for name in _AMOUNTS:
        amounts: dict[str, Units] = getattr(totals, name)
        row[name] = [(resource, float(amount)) for resource, amount in sorted(amounts.items())]
    return row


_CHANGE = b'{"at"'


class _Id(msgspec.Struct):
    id: str


class _Named(msgspec.Struct):
    """Of a job what it is drawn by."""

    ask: _Id


_named, _job = msgspec.json.Decoder(_Named).decode, msgspec.json.Decoder(Job).decode
_change = msgspec.json.Decoder(Change).decode
_encode = msgspec.json.Encoder(order="deterministic").encode
_SILENCE = Silence()


class Played(msgspec.Struct, frozen=True):
    """A trace as every task reads it: its lines in compressed chunks, and its start as JSON."""

    chunks: list[bytes]
    start: bytes
    sample: float | None


def play(request: bytes, trace: Played, sink: Sink = _SILENCE, stop: Callable[[], bool] = lambda: False) -> bytes:
    """One point of a sweep, bytes in, bytes out, the same wherever it runs: the summary of a simulation, as JSON.
    Raises InvalidInput, with the line of each job that can never run, and what ``sink`` and ``stop`` raise."""
    asked = decode(request, SimulationRequest)
    start = msgspec.json.decode(trace.start, type=Trace).start
    seed, bound = asked.seed or 0, None if trace.sample is None else int(trace.sample * 2**64)
    changes: list[Change] = []
    numbers: array[int] = array("L")
    for number, line in enumerate(_lines(trace), 1):
        if line.startswith(_CHANGE):
            changes.append(_change(line))
        elif bound is None or _draw(seed, _named(line).ask.id) < bound:
            numbers.append(number)
    asked = msgspec.structs.replace(asked, trace=Trace(changes=changes, start=start))
    configurations = Compiled(None)
    located = ((f"/trace/lines/{number}", job) for number, job in _jobs(trace, numbers))
    check_jobs(located, setting_of(asked, configurations))
    return _encode(simulate(asked, configurations, sink, stop, (job for _, job in _jobs(trace, numbers))))


def _lines(trace: Played) -> Iterator[bytes]:
    for chunk in trace.chunks:
        yield from unpacked(chunk).splitlines()


def _jobs(trace: Played, numbers: Iterable[int]) -> Iterator[tuple[int, Job]]:
    """Those on the lines of these ascending numbers, from 1, each with its own; in a sample none waits for others to
    end."""
    left = iter(numbers)
    wanted = next(left, None)
    for number, line in enumerate(_lines(trace), 1):
        if number == wanted:
            wanted = next(left, None)
            job = _job(line)
            yield number, msgspec.structs.replace(job, after=[]) if trace.sample is not None and job.after else job


def _draw(seed: int, job: str) -> int:
    """Each is drawn by its id alone, so that a larger sample has all jobs of a smaller one."""
    return int.from_bytes(sha256(f"{seed}/{job}".encode()).digest()[:8], "big")


_LONGEST = 59
"""Bytes of a folder in which a socket `/pymp-12345678/listener-12345678` has a path that every system takes: 92."""


def context_at(folder: str) -> BaseContext:
    """How processes are started whose sockets lie in ``folder``: forked from one that has read the code of runs, which
    is read only once and while the trace is read. Where that can't be, each reads it for itself."""
    return get_context("forkserver" if len(os.fsencode(folder)) <= _LONGEST else "spawn")


CONTEXT = context_at(gettempdir())


def begin(modules: Iterable[str] = ()) -> None:
    """Start the process that others are forked from; it reads the code of runs and ``modules``."""
    if CONTEXT.get_start_method() == "forkserver":
        CONTEXT.set_forkserver_preload([*modules, "app.studies.sweep_executors"])
        ensure_running()


def outlive_nobody() -> None:
    """In such a process: end with the one that it works for, even if that is killed."""
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


ATTEMPTS = 3


class Ran(NamedTuple):
    """A point and its summary as JSON, or why it has none."""

    point: Point
    summary: bytes | None
    error: str = ""


Came = tuple[bytes | None, str]
"""A summary as JSON, or None and why there is none."""
Runner = Callable[[Sequence[Point], Mapping[str, Played]], Iterator[Ran]]

_traces: dict[str, Played] = {}


class _Context:
    """``CONTEXT``, which remembers the processes that it made: those of a pool are the pool's to end, and no others."""

    def __init__(self) -> None:
        self.processes: list[BaseProcess] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(CONTEXT, name)

    def Process(self, *words: Any, **named: Any) -> BaseProcess:  # noqa: N802
        """A new one."""
        context: Any = CONTEXT
        self.processes.append(context.Process(*words, **named))
        return self.processes[-1]


class Local:
    """On ``workers`` processes of this machine. One that dies costs only what it did: that is tried again. Entered, it
    starts them at once, with these ``engines``, so that traces are read meanwhile."""

    def __init__(self, workers: int, engines: Collection[str] = ()) -> None:
        self._workers = workers
        self._engines = list(engines)
        self._pool: ProcessPoolExecutor | None = None
        self._context = _Context()

    def __enter__(self) -> "Local":
        self._started()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._close()

    def __call__(self, points: Sequence[Point], traces: Mapping[str, Played]) -> Iterator[Ran]:
        """See ``Runner``. Traces lie in files meanwhile, each of which a process reads when it first needs it."""
        left = [(point, 1) for point in points]
        with TemporaryDirectory(prefix="arbiter-sweep-") as folder:
            files = {name: str(Path(folder) / str(number)) for number, name in enumerate(traces)}
            for name, file in files.items():
                Path(file).write_bytes(msgspec.msgpack.encode(traces[name]))
            try:
                while left:
                    again: list[tuple[Point, int]] = []
                    yield from self._round(left, files, again)
                    left = again
            finally:
                self._close()

    def _round(
        self, left: list[tuple[Point, int]], files: Mapping[str, str], again: list[tuple[Point, int]]
    ) -> Iterator[Ran]:
        """Every point once; those whose process died are added to ``again``."""
        pool = self._started()
        begun: dict[Future[Came], tuple[Point, int]] = {}
        for point, attempt in left:
            try:
                begun[pool.submit(_play, point.request, files[point.trace])] = point, attempt
            except BrokenProcessPool:
                again.append((point, attempt))
        while begun:
            for future in wait(begun, return_when=FIRST_COMPLETED).done:
                point, attempt = begun.pop(future)
                error = future.exception()
                if error is None:
                    yield Ran(point, *future.result())
                elif isinstance(error, BrokenProcessPool) and attempt < ATTEMPTS:
                    again.append((point, attempt + 1))
                else:
                    yield Ran(point, None, _reason(error))
        if again:
            self._close()

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._context = _Context()
            self._pool = ProcessPoolExecutor(self._workers, cast(BaseContext, self._context), outlive_nobody)
            for _ in range(self._workers):
                self._pool.submit(_warm, self._engines)
        return self._pool

    def _close(self) -> None:
        """Nobody waits for what still runs, as when the sweep is interrupted."""
        if self._pool is not None:
            for process in self._context.processes:
                process.terminate()
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def on_ray(address: str) -> Runner:
    """On the Ray cluster at ``address``: each trace is put into its object store once; a task whose node is lost is run
    again by Ray. Raises ImportError without the extra ``arbiter-preemption[ray]``."""
    import ray as module  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]

    ray: Any = module

    def run(points: Sequence[Point], traces: Mapping[str, Played]) -> Iterator[Ran]:
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False)
        put: dict[str, Any] = {name: ray.put(trace) for name, trace in traces.items()}
        task: Any = ray.remote(max_retries=ATTEMPTS)(_tried)
        begun: dict[Any, Point] = {task.remote(point.request, put[point.trace]): point for point in points}
        while begun:
            ready, _ = ray.wait(list(begun), num_returns=1)
            for done in ready:
                point = begun.pop(done)
                try:
                    came: Came = ray.get(done)
                except Exception as error:  # whatever it is, the rest goes on
                    yield Ran(point, None, _reason(error))
                else:
                    yield Ran(point, *came)

    return run


def _warm(engines: list[str]) -> None:
    """Read the code that a run will need."""
    for name in engines:
        engine_of(name)


def _play(request: bytes, trace: str) -> Came:
    if trace not in _traces:
        _traces[trace] = msgspec.msgpack.decode(Path(trace).read_bytes(), type=Played)
    return _tried(request, _traces[trace])


def _tried(request: bytes, trace: Played) -> Came:
    """What goes wrong is told as text: not every exception can be sent from one process to another."""
    try:
        return play(request, trace), ""
    except Exception as error:  # whatever it is, the rest goes on
        return None, _reason(error)


def _reason(error: BaseException) -> str:
    if isinstance(error, InvalidInput):
        return "; ".join(f"{p.pointer}: {p.detail}" for p in error.problems[:5])
    return str(error).strip().splitlines()[-1][:500] if str(error).strip() else type(error).__name__
