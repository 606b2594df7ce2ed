"""Runs for tests: short to write, and everything that a sink is told."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from app.answering.sources import Compiled
from app.base.decoding import convert
from app.simulations.core.run import run, simulate
from app.simulations.core.scenario import scenario_of
from app.simulations.core.sink import Amounts, Asked, Silence
from app.simulations.core.state import SimulatedCluster, base_of, request_of
from app.simulations.schemas import Event, JobLine, RoundLine, SimulationRequest, Summary, Trace
from app.solver.model.base import micros
from app.solver.model.problems import InvalidInput

AT_ONCE = {"kueue": {"requeue_batch_period": 0}}
START = 946_684_800_000_000
"""2000-01-01 in microseconds."""


@dataclass
class Told:
    """Everything that a run told."""

    events: list[Event] = field(default_factory=list[Event])
    rounds: list[RoundLine] = field(default_factory=list[RoundLine])
    jobs: list[JobLine] = field(default_factory=list[JobLine])
    summary: Summary | None = None

    records: list[bytes] = field(default_factory=list[bytes])
    leveled = False
    recorded = digested = True

    def level(self, queue: str, since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> None:
        del queue, since, usage, waiting, guarantee

    def spare(self, flavor: str, level: str, since: int, free: Amounts, largest: Amounts) -> None:
        del flavor, level, since, free, largest

    def event(self, event: Event) -> None:
        self.events.append(event)

    def round(self, line: RoundLine) -> None:
        self.rounds.append(line)

    def record(self, line: bytes) -> None:
        self.records.append(line)

    def job(self, line: JobLine) -> None:
        self.jobs.append(line)

    def progress(self, now: int, ended: int, total: int | None, rounds: int) -> None:
        del now, ended, total, rounds

    def said(self) -> list[str]:
        """Events as ``second kind job``."""
        return [f"{(micros(e.at) - START) / 10**6:g} {e.kind} {e.job or e.node or ''}".strip() for e in self.events]

    def of(self, job: str) -> JobLine:
        return next(line for line in self.jobs if line.job == job)

    def bytes(self) -> bytes:
        return msgspec.json.encode([self.events, self.rounds, self.jobs, self.summary])


def job(name: str, queue: str, cpu: int, at: float | str, lasts: float, **more: Any) -> dict[str, Any]:
    """A job of one task. ``priority`` goes into its ask, all else into the job."""
    ask = {"id": name, "queue": queue, "tasks": [{"name": "main", "requests": {"cpu": cpu}}]}
    ask |= {key: more.pop(key) for key in ("priority", "created_at", "workload", "min_available") if key in more}
    return {"ask": ask, "submitted_at": at, "duration": lasts, **more}


def played(configuration: Any, jobs: Iterable[Any], changes: Iterable[Any] = (), **more: Any) -> Told:
    """A run of these, to its end."""
    return play(request_for(configuration, jobs, changes, **more))


def play(request: SimulationRequest) -> Told:
    told = Told()
    told.summary = simulate(request, Compiled(None), told, lambda: False)
    return told


def without_digests(told: Told) -> bytes:
    rounds = [replace(line, state=None) for line in told.rounds]
    return msgspec.json.encode([told.events, rounds, told.jobs, told.summary])


def without_hopeless(request: SimulationRequest) -> SimulationRequest:
    """Without jobs that no queue could ever hold."""
    try:
        scenario_of(request, Compiled(None))
    except InvalidInput as refused:
        assert isinstance(request.trace, Trace)
        hopeless = {int(problem.pointer.split("/")[3]) for problem in refused.problems}
        left = [job for i, job in enumerate(request.trace.jobs) if i not in hopeless]
        return replace(request, trace=replace(request.trace, jobs=left))
    return request


def unseen(request: SimulationRequest) -> Told:
    """A run of which nobody sees what its rounds are asked of."""
    told = Told()
    told.recorded = told.digested = False
    told.summary = simulate(request, Compiled(None), told, lambda: False)
    return told


class _Rest(Told):
    round = Silence.round


def unheard(request: SimulationRequest) -> Told:
    """The same, of which nobody hears the rounds either."""
    told = _Rest()
    told.recorded = told.digested = False
    told.summary = simulate(request, Compiled(None), told, lambda: False)
    return told


def watched(request: SimulationRequest) -> tuple[Told, list[Asked]]:
    """A run with every round of it, as it was asked and answered."""
    told, found = Told(), list[Asked]()
    told.summary = run(scenario_of(request, Compiled(None)), told, lambda: False, found.append)
    return told, found


def rounds_of(request: SimulationRequest) -> list[Asked]:
    """Every round of a run, as it was asked and answered."""
    found: list[Asked] = []
    run(scenario_of(request, Compiled(None)), Silence(), lambda: False, found.append)
    return found


def request_for(configuration: Any, jobs: Iterable[Any], changes: Iterable[Any] = (), **more: Any) -> SimulationRequest:
    """Who steps aside in Kueue comes back at once, unless ``options`` say otherwise."""
    trace = {"jobs": list(jobs), "changes": list(changes)}
    body = {"configuration": configuration, "trace": trace, "options": AT_ONCE, **more}
    return convert(body, SimulationRequest)


def asked(request: SimulationRequest) -> Told:
    """A run each round of which is asked, of a state that follows before it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedCluster, "go_ahead", lambda *_: None)
        return play(request)


def as_asked(request: SimulationRequest) -> Told:
    """The same. A run whose rounds are told before they are asked comes to the same: what happens, and what of each
    round is kept, if it is."""
    told, stored = asked(request), play(request)
    assert stored.bytes() == told.bytes()
    assert told_again(request, stored) == told_again(request, told)
    assert unseen(request).bytes() == without_digests(told)
    return told


def told_again(request: SimulationRequest, told: Told) -> list[bytes]:
    """The request of every round, made of what was recorded."""
    configured = scenario_of(request, Compiled(None)).configuration
    return [request_of(told.records[base_of(line) - 1 : n], configured) for n, line in enumerate(told.records, 1)]
