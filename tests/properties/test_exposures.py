"""Laws of exposures, on recorded requests of every engine: each line, asked as a decision, comes true."""

import json
from typing import Any

import msgspec
import pytest

from app.answering.answers import answer
from app.answering.sources import Compiled, nothing_stored
from app.solver.model.base import to_datetime
from app.solver.model.problems import InvalidInput
from app.studies.exposing import expose
from app.studies.exposure_schemas import ExposureOutcome, ExposureRequest
from tests.support.profiles import Met
from tests.vectors.files import ENGINES, HERE, files, read

SAMPLE = 25
MOST_RUNNING = 60
START = to_datetime(0)


def exposures(request: dict[str, Any], **more: Any) -> ExposureOutcome | None:
    """None: a run over time refuses what the recorded request holds."""
    given = {name: request[name] for name in ("engine", "configuration", "state", "asks", "now") if name in request}
    given.setdefault("now", "2026-03-02T09:30:00Z")
    asked = msgspec.convert({**given, "decisions": 40, "horizon": 60, **more}, ExposureRequest, strict=False)
    try:
        return expose(asked, Compiled(None), lambda: False, lambda _: None)
    except InvalidInput:
        return None


def decided(request: dict[str, Any], outcome: ExposureOutcome, asks: list[Any], mode: str) -> dict[str, Any]:
    body = {**request, "asks": asks, "mode": mode, "now": msgspec.to_builtins(outcome.now), "explain": "none"}
    for name in ("proposals", "options"):
        body.pop(name, None)
    return json.loads(answer(json.dumps(body).encode(), START, nothing_stored()).body)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_each_line_asked_as_a_decision_comes_true(engine: str) -> None:
    held = 0
    for vector in sampled(engine):
        request = vector["request"]
        outcome = exposures(request)
        if outcome is None:
            continue
        for line in outcome.exposures:
            if line.next is None:
                continue
            found = decided(request, outcome, [msgspec.to_builtins(line.next.ask)], "independent")["decisions"][0]
            victims = list(dict.fromkeys(victim["workload"] for victim in found["victims"]))
            assert victims.index(line.workload) == line.next.before, (vector["id"], line)
            held += 1
    assert held, "no ask would stop anybody in any recorded cluster: the search finds nothing"


@pytest.mark.parametrize("engine", ENGINES)
def test_who_goes_in_the_first_round_goes_in_the_decision_on_what_waits(engine: str) -> None:
    held = 0
    for vector in sampled(engine):
        request = vector["request"]
        outcome = exposures(request, decisions=0)
        if outcome is None:
            continue
        first = {line.workload for line in outcome.exposures if line.now is not None and line.now.round == 1}
        if first:
            found = decided(request, outcome, request["asks"], "cycle")
            evicted = {one["workload"] for one in found["plan"]["evictions"]}
            assert first <= evicted, vector["id"]
            held += 1
    assert held, "no recorded cluster stops anybody in its first round"


@pytest.mark.parametrize("engine", ENGINES)
def test_every_workload_has_one_line_and_bounds_are_kept(met: Met, engine: str) -> None:
    for vector in sampled(engine)[:8]:
        outcome = exposures(vector["request"], decisions=3, rounds=1)
        if outcome is None:
            continue
        running = [one["id"] for one in vector["request"]["state"].get("workloads", ())]
        assert sorted(line.workload for line in met(outcome.exposures)) == sorted(running)
        assert sorted(start.ask for start in outcome.order) == sorted(one["id"] for one in vector["request"]["asks"])
        assert outcome.decisions <= 3
        assert outcome.rounds <= 1


def sampled(engine: str) -> list[dict[str, Any]]:
    """Recorded decisions of ``engine`` on clusters small enough to look at every workload, from all of its files."""
    every = [
        [
            vector
            for vector in read(path)
            if vector.get("path", "/v1/decisions") == "/v1/decisions"
            and 0 < len(vector["request"]["state"].get("workloads", ())) <= MOST_RUNNING
        ]
        for path in files(HERE)
        if path.parent.name == engine
    ]
    found: list[dict[str, Any]] = []
    most = max(1, SAMPLE // sum(map(bool, every)))
    for small in filter(None, every):
        found += small[:: max(1, len(small) // most)][:most]
    return found
