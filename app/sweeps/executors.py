"""Where the points of a sweep are run: on this machine's cores, or on a Ray cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, NamedTuple

from app.solver.model.problems import InvalidInput
from app.sweeps.grid import Point
from app.sweeps.playing import Played, play

ATTEMPTS = 3


class Ran(NamedTuple):
    """A point and its summary as JSON, or why it has none."""

    point: Point
    summary: bytes | None
    error: str = ""


Runner = Callable[[Sequence[Point], Mapping[str, Played]], Iterator[Ran]]

_traces: Mapping[str, Played] = {}


def locally(workers: int) -> Runner:
    """On ``workers`` processes of this machine. One that dies costs only what it did: that is tried again."""

    def run(points: Sequence[Point], traces: Mapping[str, Played]) -> Iterator[Ran]:
        left = [(point, 1) for point in points]
        while left:
            again: list[tuple[Point, int]] = []
            with ProcessPoolExecutor(workers, get_context("spawn"), _keep, (traces,)) as pool:
                begun: dict[Future[bytes], tuple[Point, int]] = {}
                for point, attempt in left:
                    try:
                        begun[pool.submit(_play, point.request, point.trace)] = point, attempt
                    except BrokenProcessPool:
                        again.append((point, attempt))
                while begun:
                    for future in wait(begun, return_when=FIRST_COMPLETED).done:
                        point, attempt = begun.pop(future)
                        error = future.exception()
                        if error is None:
                            yield Ran(point, future.result())
                        elif isinstance(error, BrokenProcessPool) and attempt < ATTEMPTS:
                            again.append((point, attempt + 1))
                        else:
                            yield Ran(point, None, _told(error))
            left = again

    return run


def on_ray(address: str) -> Runner:
    """On the Ray cluster at ``address``: each trace is put into its object store once; a task whose node is lost is run
    again by Ray. Raises ImportError without the extra ``arbiter[ray]``."""
    import ray as module  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]

    ray: Any = module

    def run(points: Sequence[Point], traces: Mapping[str, Played]) -> Iterator[Ran]:
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False)
        put: dict[str, Any] = {name: ray.put(trace) for name, trace in traces.items()}
        task: Any = ray.remote(max_retries=ATTEMPTS)(_on_ray)
        begun: dict[Any, Point] = {task.remote(point.request, put[point.trace]): point for point in points}
        while begun:
            ready, _ = ray.wait(list(begun), num_returns=1)
            for found in ready:
                point = begun.pop(found)
                try:
                    summary: bytes = ray.get(found)
                except Exception as error:  # whatever it is, the rest goes on
                    yield Ran(point, None, _told(error))
                else:
                    yield Ran(point, summary)

    return run


def _keep(traces: Mapping[str, Played]) -> None:
    """In each process, once."""
    global _traces  # noqa: PLW0603
    _traces = traces


def _play(request: bytes, trace: str) -> bytes:
    return play(request, _traces[trace])


def _on_ray(request: bytes, trace: Played) -> bytes:
    return play(request, trace)


def _told(error: BaseException) -> str:
    if isinstance(error, InvalidInput):
        return "; ".join(f"{p.pointer}: {p.detail}" for p in error.problems[:5])
    return str(error).strip().splitlines()[-1][:500] if str(error).strip() else type(error).__name__
