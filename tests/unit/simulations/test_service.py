"""What a simulation is asked afterwards: which variant, which lines, what is drawn of it; without a database."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest
import zstandard

from app.auth.audit import Seats
from app.base.errors import Conflict, NotFound
from app.jobs.service import Jobs
from app.simulations import router, service
from app.simulations.accepting import Terms
from app.simulations.plots import Drawing, Evictions, Usage, Waits
from app.simulations.results import About, Simulation, TraceUsed
from app.simulations.service import Simulations
from tests.support.bounds import Bounded
from tests.support.instead import Instead
from tests.support.storing import TWICE, Bench, Stored

ID = UUID(int=5)
TRACE = UUID(int=6)


class Kept:
    """Jobs with the one simulation that ``bench`` has made."""

    def __init__(self, variants: Any = None, trace: Stored | None = None, status: str = "done") -> None:
        self.bench = Bench()
        more = {} if variants is None else {"variants": variants}
        outcome = self.bench.do(trace=trace, explain="summary", **more)
        self.body = msgspec.json.encode(self.bench.asked_for)
        self.trace = None if trace is None else TRACE
        names = [""] if variants is None else [one["name"] for one in variants]
        used = None if trace is None else TraceUsed(name="t", digest="d")
        done = status == "done"
        self.told: dict[str, Any] = {
            "id": ID, "status": status, "created_at": datetime(2026, 1, 2, tzinfo=UTC), "started_at": None,
            "ended_at": None, "attempt": 1, "error": None if done else "stopped", "progress": self.bench.work.progress,
            "about": msgspec.json.encode(About(variants=names, trace=used)),
            "outcome": squeezed(msgspec.json.encode(outcome)) if done else None,
        }  # fmt: skip

    def row(self, job: UUID, kind: str) -> Any:
        assert (job, kind) == (ID, "simulation")
        return self.told

    def request(self, job: UUID, kind: str) -> tuple[bytes, UUID | None]:
        assert (job, kind) == (ID, "simulation")
        return self.body, self.trace

    def lines(self, job: UUID, stream: str, first: int = 0, most: int | None = None) -> Iterator[bytes]:
        """Two at a time."""
        found = self.bench.raw[stream][first:][:most]
        for at in range(0, len(found), 2):
            yield b"".join(line + b"\n" for line in found[at : at + 2])


def squeezed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


class Opened:
    def __init__(self, trace: Stored | None) -> None:
        self._trace = trace

    def opened(self, trace: UUID) -> Any:
        assert trace == TRACE
        assert self._trace is not None
        return self._trace


def of(kept: Kept, trace: Stored | None = None) -> Simulations:
    return Simulations(cast(Jobs, kept), cast(Any, Opened(trace)), cast(Any, None), Terms(9, 9), 1 << 20)


@pytest.fixture(scope="module")
def plain() -> Kept:
    return Kept()


@pytest.fixture(scope="module")
def twice() -> Kept:
    return Kept(TWICE)


def test_what_is_shown_of_it(plain: Kept, twice: Kept) -> None:
    one, two = of(plain).get(ID), of(twice).get(ID)
    assert (one.names, two.names, [v.name for v in one.variants]) == ([], ["x", "y"], [""])
    assert (len(two.variants), {d.variant for d in two.differences}, one.trace, one.error) == (2, {"y"}, None, None)
    told = two.progress
    assert told is not None
    assert (told.variant, told.variants_done, told.ended, told.total) == ("y", 1, 3, 3)
    assert (told.at, told.rounds) == (two.variants[1].summary.end, two.variants[1].summary.rounds)
    waits = Kept(status="failed")
    waits.told |= {"progress": None}
    shown = of(waits).get(ID)
    assert (shown.variants, shown.progress, shown.error) == ([], None, "stopped")


def test_lines_are_those_of_the_variant_from_the_first_that_is_asked_for(twice: Kept) -> None:
    asked = of(twice)
    for variant, number in ((None, 0), ("x", 0), ("y", 1)):
        mine = twice.bench.raw[f"{number}/events"]
        assert b"".join(asked.lines(ID, variant, "events")).splitlines() == mine
        assert b"".join(asked.lines(ID, variant, "events", 3, 4)).splitlines() == mine[3:7]
        assert asked.line(ID, variant, "events", 2) == mine[2]
        assert asked.index(ID, variant) == number
    with pytest.raises(NotFound, match="has no such line yet, or never"):
        asked.line(ID, "x", "events", len(twice.bench.raw["0/events"]))
    with pytest.raises(NotFound, match="has no variant 'z'"):
        asked.lines(ID, "z", "events")


def test_series_are_of_a_queue_that_somebody_named_and_only_after_the_end(twice: Kept) -> None:
    asked = of(twice)
    for variant, number in (("x", 0), ("y", 1)):
        summary = asked.get(ID).variants[number].summary
        for queue, totals in {None: summary.total, **summary.queues}.items():
            found = asked.series(ID, variant, queue, None, 4)
            assert (found.queue, len(found.at), found.at[0], found.at[-1]) == (queue, 5, summary.start, summary.end)
            assert sum(found.resources["cpu"].usage) == pytest.approx(totals.used["cpu"])
    assert asked.series(ID, "x", "b", "gpu", 1).resources == {}
    assert asked.series(ID, None, None, "gpu", 1).resources == {}
    with pytest.raises(NotFound, match="has no queue 'c' that a job named"):
        asked.series(ID, None, "c", None, 1)
    with pytest.raises(Conflict, match="is running: there is nothing to draw before it is done"):
        of(Kept(status="running")).series(ID, None, None, None, 1)


def test_each_picture_is_of_its_variant_and_waits_are_of_all_where_none_is_named(
    plain: Kept, twice: Kept, instead: Instead
) -> None:
    made: list[Drawing] = []
    instead(service, require=lambda: None, drawn=lambda drawing: made.append(drawing) or b"")

    def drawing(kept: Kept, variant: str | None, kind: Any, resource: str | None = None) -> tuple[str, Any]:
        of(kept).plot(ID, variant, kind, resource)
        (picture,) = made[-1].pictures
        return made[-1].title, picture

    title, usage = drawing(twice, "y", "usage")
    assert (title, type(usage), usage.resource) == ("kueue: y", Usage, "cpu")
    assert [panel.name for panel in usage.panels] == ["", "a", "b"]
    assert max(usage.panels[0].guarantee) == 5 + 2
    assert max(drawing(twice, None, "usage")[1].panels[0].guarantee) == 2 + 2
    assert drawing(twice, "x", "usage", "gpu")[1].panels == []
    assert drawing(twice, "x", "evictions") == ("kueue: x", Evictions({"a": {"b": 1}}))
    assert drawing(twice, "y", "evictions") == ("kueue: y", Evictions({}))
    both = drawing(twice, None, "waits")
    assert (both[0], list(both[1].lines)) == ("kueue", ["x", "y"])
    assert both[1].lines["x"] != both[1].lines["y"]
    one = drawing(twice, "y", "waits")
    assert (one[0], one[1].lines["all queues"]) == ("kueue: y", both[1].lines["y"])
    assert drawing(twice, "x", "waits")[1].lines["all queues"] == both[1].lines["x"]
    alone = drawing(plain, None, "waits")
    assert (alone[0], type(alone[1]), list(alone[1].lines)) == ("kueue", Waits, ["all queues", "a", "b"])


@pytest.mark.parametrize("stored", [False, True])
def test_a_rounds_request_is_told_again_with_the_configuration_of_its_time(*, stored: bool) -> None:
    changes = [{"at": 5, "queues": {"b": {"weight": 4}}}]
    trace = Stored(changes=changes) if stored else None
    kept = Kept(TWICE, trace) if stored else Kept(TWICE)
    asked = of(kept, trace)
    for variant, number in (("x", 0), ("y", 1)):
        rounds = kept.bench.lines[f"{number}/rounds"]
        for line in rounds:
            told = msgspec.json.decode(asked.request_of(ID, variant, line["n"]))
            assert [ask["id"] for ask in told["asks"]] == line["asks"]
            assert (told["now"], told["mode"], told["explain"]) == (line["at"], "cycle", "summary")
            queues = {queue["name"]: queue for queue in told["configuration"]["queues"]}
            assert queues["a"]["quota"]["cpu"]["guaranteed"] == (2, 5)[number]
            assert queues["b"].get("weight", 1) == (4 if stored and line["at"] >= "2000-01-01T00:00:05" else 1)
        assert rounds[-1]["at"] > "2000-01-01T00:00:05"
    with pytest.raises(NotFound, match="has no round 99 yet, or never"):
        asked.request_of(ID, "x", 99)
    assert (asked.get(ID).trace is not None) is stored


def test_progress_is_an_event_whenever_it_has_moved_and_an_end(bounded: Bounded) -> None:
    bounded(router, LOOK_SECONDS=0)
    moments = [
        Simulation(id=ID, status=status, created_at=datetime(2026, 1, 2, tzinfo=UTC), attempt=attempt)
        for status, attempt in (
            ("queued", 0),
            ("queued", 0),
            ("running", 1),
            ("running", 1),
            ("running", 2),
            ("done", 2),
        )
    ]
    looks = iter(moments[1:])

    class Moving:
        def get(self, identity: UUID) -> Simulation:
            assert identity == ID
            return next(looks)

    seats = Seats(1)

    async def followed() -> list[tuple[str, str, int]]:
        told: list[tuple[str, str, int]] = []
        async for event in vars(router)["_following"](Moving(), moments[0], seats, seats.join()):
            kind, data = event.decode().rstrip("\n").split("\ndata: ")
            shown = msgspec.json.decode(data, type=Simulation)
            told.append((kind, shown.status, shown.attempt))
        return told

    assert asyncio.run(followed()) == [
        ("event: progress", "queued", 0), ("event: progress", "running", 1), ("event: progress", "running", 2),
        ("event: end", "done", 2),
    ]  # fmt: skip
    assert seats.open == 0
