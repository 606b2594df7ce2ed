"""Where the points of a sweep are run: on this machine's cores, or on a Ray cluster."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NamedTuple, cast

import msgspec

from app.solver.model.problems import InvalidInput
from app.solver.registry import engine_of
from app.studies.sweeps.grid import Point
from app.studies.sweeps.playing import Played, play
from app.studies.sweeps.processes import CONTEXT, outlive_nobody

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
        self.made: list[BaseProcess] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(CONTEXT, name)

    def Process(self, *words: Any, **named: Any) -> BaseProcess:  # noqa: N802
        """A new one."""
        made: Any = CONTEXT
        self.made.append(made.Process(*words, **named))
        return self.made[-1]


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
                    yield Ran(point, None, _told(error))
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
            for process in self._context.made:
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
            for found in ready:
                point = begun.pop(found)
                try:
                    came: Came = ray.get(found)
                except Exception as error:  # whatever it is, the rest goes on
                    yield Ran(point, None, _told(error))
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
        return None, _told(error)


def _told(error: BaseException) -> str:
    if isinstance(error, InvalidInput):
        return "; ".join(f"{p.pointer}: {p.detail}" for p in error.problems[:5])
    return str(error).strip().splitlines()[-1][:500] if str(error).strip() else type(error).__name__
