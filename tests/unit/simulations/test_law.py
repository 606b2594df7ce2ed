"""Every round is a request that anybody could post, and gets the same answer, byte for byte."""

from datetime import UTC, datetime

from app.answering.answers import answer
from app.answering.sources import Compiled, nothing_stored
from app.simulations.core.replay import request_of
from tests.unit.simulations.running import job, play, request_for, rounds_of
from tests.unit.simulations.test_kueue_run import two_queues

LATER = datetime(2030, 1, 1, tzinfo=UTC)


def test_every_round_can_be_posted_and_gets_the_recorded_answer() -> None:
    jobs = [job(f"j{i}", "ab"[i % 2], 1 + i % 4, i, 7 + i % 3, priority=i % 3) for i in range(12)]
    request = request_for(two_queues(), jobs, grace=2, explain="summary")
    told, rounds = play(request), rounds_of(request)
    assert len(rounds) == len(told.rounds) > 20
    for line, asked in zip(told.rounds, rounds, strict=True):
        answered = answer(asked.request(), LATER, nothing_stored())
        assert answered.body == asked.answer()
        assert answered.facts.state_digest == line.state
    assert request_of(request, Compiled(None), 7, lambda: False) == rounds[6].request()
    assert request_of(request, Compiled(None), len(rounds) + 1, lambda: False) is None
