"""One point of a sweep: bytes in, bytes out, the same wherever it runs."""

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from app.answering.sources import Compiled
from app.decoding import decode
from app.simulations.core.run import simulate
from app.simulations.core.sink import Silence
from app.simulations.schemas import Change, Job, SimulationRequest, Trace
from app.traces.ingest import unpacked

_CHANGE = b'{"at"'
_job = msgspec.json.Decoder(Job).decode
_change = msgspec.json.Decoder(Change).decode
_encode = msgspec.json.Encoder(order="deterministic").encode


class Played(msgspec.Struct, frozen=True):
    """A trace as every task reads it: its lines in compressed chunks, and its start as JSON."""

    chunks: list[bytes]
    start: bytes
    sample: float | None


def play(request: bytes, trace: Played) -> bytes:
    """The summary of a simulation, as JSON. Raises InvalidInput."""
    asked = decode(request, SimulationRequest)
    start = msgspec.json.decode(trace.start, type=Trace).start
    changes = [_change(line) for line in _lines(trace) if line.startswith(_CHANGE)]
    asked = msgspec.structs.replace(asked, trace=Trace(changes=changes, start=start))
    return _encode(simulate(asked, Compiled(None), Silence(), lambda: False, _jobs(trace, asked.seed or 0)))


def _lines(trace: Played) -> Iterator[bytes]:
    for chunk in trace.chunks:
        yield from unpacked(chunk).splitlines()


def _jobs(trace: Played, seed: int) -> Iterator[Job]:
    """Those that the seed draws: each by its id alone, so that a larger sample has all jobs of a smaller one."""
    bound = None if trace.sample is None else int(trace.sample * 2**64)
    for line in _lines(trace):
        if line.startswith(_CHANGE):
            continue
        job = _job(line)
        if bound is None or _draw(seed, job.ask.id) < bound:
            yield msgspec.structs.replace(job, after=[]) if bound is not None and job.after else job


def _draw(seed: int, job: str) -> int:
    return int.from_bytes(sha256(f"{seed}/{job}".encode()).digest()[:8], "big")
