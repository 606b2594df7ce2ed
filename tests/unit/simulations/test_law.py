"""Every round is a request that anybody could post, and gets the same answer, byte for byte."""

from app.answering.answers import answer
from app.answering.sources import nothing_stored
from app.simulations.core import state as records
from tests.support.bounds import Bounded
from tests.support.kueue_run import two_queues
from tests.support.law import LATER
from tests.unit.simulations.running import job, request_for, rounds_of, told_again, watched


def test_every_round_can_be_posted_and_gets_the_recorded_answer() -> None:
    jobs = [job(f"j{i}", "ab"[i % 2], 1 + i % 4, i, 7 + i % 3, priority=i % 3) for i in range(12)]
    told, rounds = watched(request_for(two_queues(), jobs, grace=2, explain="summary"))
    assert len(rounds) == len(told.rounds) > 20
    for line, asked in zip(told.rounds, rounds, strict=True):
        answered = answer(asked.request(), LATER, nothing_stored())
        assert answered.body == asked.answer()
        assert answered.facts.state_digest == line.state


def test_a_round_is_told_again_from_the_last_whole_state(bounded: Bounded) -> None:
    bounded(records, LEAST_BYTES=2000)
    jobs = [job(f"j{i}", "ab"[i % 2], 1 + i % 4, i, 7 + i % 3, priority=i % 3) for i in range(24)]
    changes = [{"at": 11, "queues": {"a": {"quota": {"cpu": {"guaranteed": 6}}}}}]
    request = request_for(two_queues(), jobs, changes, grace=2)
    told, rounds = watched(request)
    bases = [records.base_of(line) for line in told.records]
    assert bases[0] == 1
    assert 2 < len(set(bases)) < len(bases) / 4
    assert bases == sorted(bases)
    assert told_again(request, told) == [asked.request() for asked in rounds]


def test_a_job_that_names_itself_as_its_workload_is_asked_for_as_one_that_has_none() -> None:
    rounds = rounds_of(request_for(two_queues(), [job("one", "a", 1, 0, 5, workload="one")]))
    asks = [ask for one in rounds for ask in one.question.asks]
    assert [(ask.id, ask.workload) for ask in asks] == [("one", None)]
