"""A trace as the body of a simulation: its jobs, and the cluster that its mapping makes of it."""

from collections.abc import Iterator

import msgspec

from app.base.errors import BadInput
from app.solver.model.problems import Problem
from app.traces.cluster import configuration
from app.traces.ingest import Ingested, unpacked

_CHANGE = b'{"at"'
_encode = msgspec.json.Encoder(order="deterministic").encode


def body(trace: Ingested) -> Iterator[bytes]:
    """The JSON of a simulation, in pieces. Raises BadInput where the mapping has no cluster."""
    made = configuration(trace)
    if made is None:
        raise BadInput([Problem(pointer="/mapping/cluster", detail="the mapping has no cluster to play the trace on")])
    yield b'{"configuration":' + _encode(made)
    yield b',"trace":{'
    if trace.start is not None:
        yield b'"start":' + _encode(trace.start) + b","
    for name, wanted in ((b'"changes":[', True), (b'],"jobs":[', False)):
        yield name
        separator = b""
        for chunk in trace.chunks:
            found = [line for line in unpacked(chunk.data).splitlines() if line.startswith(_CHANGE) is wanted]
            if found:
                yield separator + b",\n".join(found)
                separator = b",\n"
    yield b"]}}\n"


def jobs_and_changes(trace: Ingested) -> Iterator[bytes]:
    """The lines of the trace, some at a time."""
    for chunk in trace.chunks:
        yield unpacked(chunk.data)
