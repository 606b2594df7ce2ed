"""``arbiter sweep`` runs a grid of simulations; ``arbiter trace`` turns traces of others into the body of one."""

import os
import sys
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from app.base.errors import ArbiterError
from app.cli.output import BAD_INPUT, complain, problems, read, say, table, tried
from app.solver.model.problems import InvalidInput

if TYPE_CHECKING:
    from app.simulations.schemas import Summary
    from app.solver.model.configuration import EngineName
    from app.studies.sweep_executors import Point, Ran


Named = Annotated[str | None, Parameter(help="`swf`, `alibaba-gpu-2023` or `ndjson`; absent: by the file's name.")]
MappingFile = Annotated[
    str | None, Parameter(help="Which columns become queue, priority and resources: a file of YAML or JSON.")
]
NodesFile = Annotated[str | None, Parameter(help="The list of nodes, where the format has one.")]


def trace(
    file: Annotated[
        str, Parameter(allow_leading_hyphen=True, help="The trace; may be gzip or zstd; '-' reads standard input.")
    ] = "-",
    /,
    *,
    format: Named = None,  # noqa: A002
    mapping: MappingFile = None,
    nodes: NodesFile = None,
    lines: Annotated[bool, Parameter(negative=(), help="Only the jobs and changes, one a line.")] = False,
) -> int:
    """Turn a trace into the body of a simulation: `arbiter trace FILE --mapping FILE | arbiter simulate`.

    FILE may be a recording of a cluster (`arbiter follow --record`; no mapping): JSON lines, each with `at`, `kind` and
    `type`. RECORDING begins it (`engine`, `cluster`); ITEM is an `object` of a list, LISTED says that the list is whole
    (`count`, `resource_version`); ADDED, MODIFIED and DELETED are changes of an `object`, as the API server says them.

    What is wrong is named by line. Exit code 0: done, 3: bad input.
    """
    from app.traces.preparing import body, jobs_and_changes, load

    def convert() -> int:
        if file != "-" and not lines and (engine := _recorded(file)) is not None:
            return _of_recording(engine, file)
        ingested = load(file, format, mapping, nodes)
        for number, note in enumerate(ingested.notes.listed[:5]):
            complain(f"{file}: line {note.line}: {note.detail}")
            if number == 4 and ingested.notes.count > 5:
                complain(f"{file}: and {ingested.notes.count - 5} more lines like these")
        for piece in jobs_and_changes(ingested) if lines else body(ingested):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return 0

    return tried(file, convert)


def _recorded(file: str) -> "EngineName | None":
    from app.following.objects import FOLLOWED
    from app.following.replaying import engine_of

    engine = engine_of(Path(file))
    return next((name for name in FOLLOWED if name == engine), None)


def _of_recording(engine: "EngineName", file: str) -> int:
    from app.answering.answers import encode
    from app.cli.follow import complain_left_out
    from app.following.simulating import simulated

    request, left_out = simulated(engine, Path(file))
    sys.stdout.buffer.write(encode(request) + b"\n")
    sys.stdout.buffer.flush()
    complain_left_out(engine, left_out)
    return 0


_FAILED = 1


def sweep(
    file: Annotated[
        str, Parameter(allow_leading_hyphen=True, help="The grid: YAML or JSON; '-' reads standard input.")
    ] = "-",
    /,
    *,
    out: Annotated[Path, Parameter(help="Where results go; what is done there already is not done again.")],
    workers: Annotated[int | None, Parameter(help="Processes on this machine [its cores].")] = None,
    ray: Annotated[
        str | None, Parameter(help="The Ray cluster to run on, such as `auto` (extra `arbiter-preemption[ray]`).")
    ] = None,
) -> int:
    """Run a grid of configurations, traces, seeds and settings; results as Parquet, and a table.

    Exit code 0: every run is done, 1: some failed, and are tried again next time, 3: bad input.
    """
    try:
        if find_spec("pyarrow") is None:
            raise ImportError(name="pyarrow")
        done, failed = swept_in(file, out, workers, ray)
    except ImportError as error:
        complain(
            f"{error.name} is not installed: uv tool install 'arbiter-preemption[{'sweep' if ray is None else 'ray'}]'"
        )
    except OSError as error:
        complain(f"{error.filename or file}: {error.strerror or error}")
    except InvalidInput as invalid:
        problems(file, invalid.problems)
    except ArbiterError as refused:
        problems(file, refused.problems) if refused.problems else complain(f"{file}: {refused.detail}")
    else:
        _shown(done)
        say(f"{len(done)} runs in {out / 'results.parquet'}")
        return _FAILED if failed else 0
    return BAD_INPUT


def swept_in(
    file: str, out: Path, workers: int | None, ray: str | None
) -> "tuple[list[tuple[Point, Summary]], dict[str, str]]":
    """See ``app.studies.sweeps.sweep``. Raises ImportError where an extra is not installed."""
    from app.studies.sweep_executors import begin

    if ray is None:
        begin(["app.cli"])  # which each process imports as the program; first, since what follows takes as long to load
    from app.studies.sweep_executors import Local, on_ray, size
    from app.studies.sweeps import engines
    from app.studies.sweeps import read as grid_of
    from app.studies.sweeps import sweep as run

    remote = None if ray is None else on_ray(ray)
    grid = grid_of(read(file))
    most = max(1, min(workers or os.cpu_count() or 1, size(grid)))
    with nullcontext(remote) if remote else Local(most, engines(grid, Path(file).parent)) as runner:
        return run(grid, Path(file).parent, out, runner, _tell)


def _shown(done: "list[tuple[Point, Summary]]") -> None:
    rows = [
        (
            point.key, point.configuration, point.trace, str(point.seed),
            " ".join(f"{path}={value}" for path, value in point.values.items()),
            str(summary.total.finished), _seconds(summary.total.wait and summary.total.wait.mean),
            _seconds(summary.total.wait and summary.total.wait.p99), str(summary.total.evictions),
        )
        for point, summary in done
    ]  # fmt: skip
    table(("run", "configuration", "trace", "seed", "settings", "finished", "mean wait", "p99", "evictions"), rows)
    say()


def _tell(ran: "Ran", left: int) -> None:
    point = ran.point
    said = "done" if ran.summary is not None else f"failed: {ran.error}"
    print(f"{point.key} {point.configuration} {point.trace} {said} ({left} left)", file=sys.stderr, flush=True)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} s"
