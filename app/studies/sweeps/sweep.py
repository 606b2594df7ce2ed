"""A sweep from its document to its folder."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from app.base.decoding import convert, decode
from app.base.documents import read_one
from app.base.errors import BadInput, BadRequest
from app.simulations.schemas import Summary, Trace
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.registry import ENGINES
from app.studies.sweeps.executors import Ran, Runner
from app.studies.sweeps.folder import Folder
from app.studies.sweeps.grid import Grid, Point, TraceFile, points
from app.studies.sweeps.playing import Played
from app.traces.cluster import configuration
from app.traces.files import load
from app.traces.ingest import Ingested
from app.traces.preparing import mapping_of

_OF_TRACE = "trace"


def read(text: bytes) -> Grid:
    """A grid from YAML or JSON. Raises InvalidInput."""
    return convert(read_one(text, "the grid"), Grid)


def engines(grid: Grid, base: Path) -> set[str]:
    """The engines that its points name, as far as its documents tell before a trace is read. ``base``: where its files
    are; what is wrong with one is told later, when it is needed."""
    named = [grid.request.get("engine")]
    for given in grid.configurations.values():
        if given == _OF_TRACE:
            named += [_mapped(base / part.mapping) for part in map(_part, grid.traces.values()) if part.mapping]
        else:
            with suppress(OSError, BadRequest, InvalidInput):
                named.append(_given(base, given).engine)
    return {name for name in named if isinstance(name, str) and name in ENGINES}


def sweep(
    grid: Grid, base: Path, out: Path, run: Runner, tell: Callable[[Ran, int], None]
) -> tuple[list[tuple[Point, Summary]], dict[str, str]]:
    """Run what is left of a grid. ``base``: where its files are; ``tell`` hears of each run, and how many are left.

    What each point came to, and why those that failed did, by key. Raises OSError, InvalidInput, ArbiterError."""
    traces = {name: _loaded(base, given) for name, given in grid.traces.items()}
    made = {
        (name, trace): _configuration(grid, base, name, found)
        for name in grid.configurations
        for trace, found in traces.items()
    }
    wanted = points(grid, made, {name: found.digest for name, found in traces.items()})
    folder = Folder(out, wanted)
    left = folder.left()
    played = {name: _played(found, grid.traces[name]) for name, found in traces.items()}
    for number, ran in enumerate(run(left, played) if left else (), 1):
        folder.keep(ran)
        tell(ran, len(left) - number)
    return folder.finish(), dict(folder.errors)


def _loaded(base: Path, given: str | TraceFile) -> Ingested:
    part = _part(given)
    mapping, nodes = (None if name is None else str(base / name) for name in (part.mapping, part.nodes))
    return load(str(base / part.file), part.format, mapping, nodes)


def _part(given: str | TraceFile) -> TraceFile:
    return TraceFile(file=given) if isinstance(given, str) else given


def _mapped(path: Path) -> str | None:
    """The engine of a mapping's cluster."""
    with suppress(OSError, BadRequest, InvalidInput):
        found = mapping_of(path.read_bytes())
        return found.cluster.engine if found is not None and found.cluster is not None else None
    return None


def _given(base: Path, given: str | Configuration) -> Configuration:
    return given if isinstance(given, Configuration) else decode((base / given).read_bytes(), Configuration)


def _configuration(grid: Grid, base: Path, name: str, trace: Ingested) -> Configuration:
    given = grid.configurations[name]
    if given != _OF_TRACE:
        return _given(base, given)
    found = configuration(trace)
    if found is None:
        detail = "the mapping of a trace has no cluster"
        raise BadInput([Problem(pointer=pointer("configurations", name), detail=detail)])
    return found


def _played(trace: Ingested, given: str | TraceFile) -> Played:
    sample = given.sample if isinstance(given, TraceFile) else None
    return Played([chunk.data for chunk in trace.chunks], msgspec.json.encode(Trace(start=trace.start)), sample)
