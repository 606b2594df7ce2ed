"""A variant gives what it gives alone, byte for byte, whatever other variants there are and whatever came before it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.answering.sources import Compiled
from app.jobs.repository import Chunk, Claimed
from app.jobs.worker import ChunkWriter, Work, lines_of
from app.simulations.core.run import Parting, simulate
from app.simulations.core.scenario import in_order, variants_of
from app.simulations.core.sink import Silence
from app.simulations.core.state import SimulatedCluster
from app.simulations.results import Outcome, VariantSummary
from app.simulations.schemas import Change, Job, Parted, SimulationRequest, Trace
from app.simulations.service import Limits, Simulating
from app.solver.model.base import micros
from app.solver.model.request import Variant
from tests.properties.runs import ENGINES, contended, prefix, requests
from tests.support.profiles import Met, examples
from tests.unit.simulations.running import START, without_hopeless

TRACE = UUID(int=1)


class Stored:
    """The trace of a request, as if it had been stored."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.start = trace.start
        self.total = len(trace.jobs)

    def changes(self) -> list[Change]:
        return self._trace.changes

    def jobs(self) -> Iterator[Job]:
        return iter(in_order(self._trace.jobs, START if self.start is None else micros(self.start)))

    def numbered(self) -> Iterator[tuple[int, Job]]:
        return enumerate(self.jobs(), 1)


def made(request: SimulationRequest, *, stored: bool) -> tuple[list[VariantSummary], dict[str, bytes]]:
    """The summary of each variant, and every stream that was stored."""
    streams: dict[str, bytes] = defaultdict(bytes)

    def store(chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            streams[chunk.stream] += lines_of(chunk, 0, None)[0]

    trace = request.trace
    assert isinstance(trace, Trace)
    writer = ChunkWriter(store, 1 << 30)
    body = msgspec.json.encode(replace(request, trace="t") if stored else request)
    job = Claimed(UUID(int=2), "simulation", 1, 0, TRACE if stored else None, b"")
    simulating = Simulating(Compiled(None), lambda _: Stored(trace), Limits(365))
    outcome = simulating.do(job, body, Work(writer, lambda: None))
    writer.flush()
    return msgspec.json.decode(outcome, type=Outcome).variants, streams


def variants(engine: str) -> list[Variant]:
    queue = f"queues.{prefix(engine)}a"
    quota: dict[str, Any] = {f"{queue}.quota.{cell}.guaranteed": 6 for cell in ("cpu", "gpu")}
    return [Variant(name="as it is"), Variant(name="more", set=quota), Variant(name="as it is, again")]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_variant_alone_gives_the_same_bytes(engine: str) -> None:
    most = 4 if engine == "ytsaurus" else 12

    @given(requests([engine]), st.permutations(variants(engine)), st.booleans())
    @examples(most)
    def check(request: SimulationRequest, several: list[Variant], stored: bool) -> None:
        together, streams = made(replace(request, variants=several), stored=stored)
        for number, variant in enumerate(several):
            (alone,), own = made(replace(request, variants=[variant]), stored=stored)
            unparted = replace(together[number], parted=None)  # alone there is nothing that it could part from
            assert msgspec.json.encode(alone) == msgspec.json.encode(unparted)
            theirs = {name.partition("/")[2]: text for name, text in streams.items() if name.startswith(f"{number}/")}
            assert theirs == {name.partition("/")[2]: text for name, text in own.items()}

    check()


def parted(request: SimulationRequest, engine: str) -> Parted | None:
    """Where it parts from itself under larger quotas, or of YTsaurus, where those seldom decide who starts, limits."""
    parting, several = Parting(), replace(request, variants=variants(engine)[:2])
    if engine == "ytsaurus":
        bounds = {f"queues.a.quota.{cell}.{bound}": 4 for cell in ("cpu", "gpu") for bound in ("guaranteed", "limit")}
        several = replace(request, variants=[Variant(name="as it is"), Variant(name="more", set=bounds)])
    for number, (name, variant) in enumerate(variants_of(several, Compiled(None))):
        course = parting.other(name) if number else parting.first(name)
        simulate(variant, Compiled(None), Silence(), lambda: False, course=course)
    return parting.parted.get("more")


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "kube-scheduler"])  # it has no quotas
def test_courses_part_in_one_round_whether_rounds_are_told_or_asked(met: Met, engine: str) -> None:
    @given(contended(engine) if engine == "yunikorn" else requests([engine]))
    @examples(24)
    def check(request: SimulationRequest) -> None:
        possible = without_hopeless(request)
        told = parted(possible, engine)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SimulatedCluster, "go_ahead", lambda *_: None)
            assert parted(possible, engine) == told
        met([told] if told is not None else [])

    check()


@given(requests(["kueue"]), st.sampled_from([None, datetime(2001, 2, 3, tzinfo=UTC)]))
@examples(6)
def test_a_stored_trace_gives_what_it_gives_inline(request: SimulationRequest, start: datetime | None) -> None:
    assert isinstance(request.trace, Trace)
    dated = replace(request, trace=replace(request.trace, start=start))
    assert made(dated, stored=True) == made(dated, stored=False)
