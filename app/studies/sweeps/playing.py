"""One point of a sweep: bytes in, bytes out, the same wherever it runs."""

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from app.answering.sources import Compiled
from app.base.decoding import decode
from app.simulations.core.run import simulate
from app.simulations.core.scenario import setting_of
from app.simulations.core.sink import Silence
from app.simulations.core.validation import check_jobs
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
    """The summary of a simulation, as JSON. Raises InvalidInput, with the line of each job that can never run."""
    asked = decode(request, SimulationRequest)
    start = msgspec.json.decode(trace.start, type=Trace).start
    changes = [_change(line) for line in _lines(trace) if line.startswith(_CHANGE)]
    asked = msgspec.structs.replace(asked, trace=Trace(changes=changes, start=start))
    configurations, seed = Compiled(None), asked.seed or 0
    located = ((f"/trace/lines/{number}", job) for number, job in _jobs(trace, seed))
    check_jobs(located, setting_of(asked, configurations))
    return _encode(simulate(asked, configurations, Silence(), lambda: False, (job for _, job in _jobs(trace, seed))))


def _lines(trace: Played) -> Iterator[bytes]:
    for chunk in trace.chunks:
        yield from unpacked(chunk).splitlines()


def _jobs(trace: Played, seed: int) -> Iterator[tuple[int, Job]]:
    """Those that the seed draws, with the number of each line from 1: each by its id alone, so that a larger sample has
    all jobs of a smaller one."""
    bound = None if trace.sample is None else int(trace.sample * 2**64)
    for number, line in enumerate(_lines(trace), 1):
        if line.startswith(_CHANGE):
            continue
        job = _job(line)
        if bound is None or _draw(seed, job.ask.id) < bound:
            yield number, msgspec.structs.replace(job, after=[]) if bound is not None and job.after else job


def _draw(seed: int, job: str) -> int:
    return int.from_bytes(sha256(f"{seed}/{job}".encode()).digest()[:8], "big")
