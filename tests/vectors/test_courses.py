"""Clusters over time: a simulation admits and evicts the same jobs as the real scheduler and queue manager did, in the
same cycles, at the same seconds, for the same reasons."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.answering.answers import answer
from app.answering.sources import Compiled, nothing_stored
from app.base.decoding import convert
from app.simulations.core.run import simulate
from app.simulations.core.sink import Stopped
from app.simulations.schemas import RoundLine, SimulationRequest
from app.solver.model.base import micros
from tests.unit.simulations.running import Told, play, watched
from tests.vectors.files import lines, parts, recorded

FILES = recorded("kueue-time")
PART = 80_000
"""Compressed bytes in a test: those of a large file are a minute's work and more."""
LATER = datetime(2030, 1, 1, tzinfo=UTC)
Act = tuple[int, list[str], list[tuple[str, str | None, str]]]
"""Seconds since the start, who was admitted, and who was evicted, for whom and by which rule."""


def acts_of(cycles: list[dict[str, Any]]) -> list[Act]:
    """The cycles that admitted or evicted somebody."""
    return [
        (c["at"], sorted(c["admitted"]), sorted((e["job"], e.get("by"), e["rule"]) for e in c["evicted"]))
        for c in cycles
        if c["admitted"] or c["evicted"]
    ]


def played(rounds: list[RoundLine], start: int) -> list[Act]:
    return [
        (
            (micros(line.at) - start) // 10**6,
            sorted(line.admitted),
            sorted((e.job, e.by, e.rule) for e in line.evicted),
        )
        for line in rounds
        if line.admitted or line.evicted
    ]


def first_acts(request: SimulationRequest, number: int) -> list[RoundLine]:
    """The rounds until so many of them have admitted or evicted somebody."""
    told = Told()
    last = 0

    def enough() -> bool:
        nonlocal last, number
        number -= sum(1 for line in told.rounds[last:] if line.admitted or line.evicted)
        last = len(told.rounds)
        return number <= 0

    with suppress(Stopped):
        simulate(request, Compiled(None), told, enough)
    return told.rounds


def request_of(vector: dict[str, Any]) -> SimulationRequest:
    return convert(vector["request"], SimulationRequest)


def _parts() -> list[Any]:
    return [
        pytest.param(path, part, of, id=f"{path.name.removesuffix('.jsonl.gz')}-{part}")
        for path in FILES
        for of in (parts(path, PART),)
        for part in range(of)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "part", "of"), _parts())
def test_every_course_agrees(path: Path, part: int, of: int) -> None:
    """Every ``of``-th course of a file, beginning with number ``part``."""
    for line in lines(path)[part::of]:
        vector = json.loads(line)
        request, expected = request_of(vector), vector["expect"]
        assert request.start is not None
        want, truncated = acts_of(expected["cycles"]), bool(expected.get("truncated"))
        # Where the scheduler span for too long the recording stops; what follows its end is not known.
        rounds = first_acts(request, len(want)) if truncated else play(request).rounds
        found = played(rounds, micros(request.start))
        compared = found[: len(want)] if truncated else [f for f in found if f[0] <= expected["end"]]
        assert compared == want, vector["id"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_every_round_says_the_same_when_asked_again_with_what_it_carried(path: Path) -> None:
    for line in lines(path)[::13]:
        _, rounds = watched(request_of(json.loads(line)))
        for asked in rounds:
            answered = answer(asked.request(), LATER, nothing_stored())
            assert answered.body == asked.answer()
