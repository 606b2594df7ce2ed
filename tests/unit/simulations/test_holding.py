"""What a gang held while its tasks came and went."""

from app.simulations.core.life import Holding
from tests.support.placed_runs import NODES, configuration
from tests.unit.simulations.running import job, played, request_for, rounds_of


def test_what_is_thrown_away_is_the_end_of_a_run_and_checkpoints_have_their_part_of_the_rest() -> None:
    """Seconds 0 to 4: 2 are held, then 3 up to 10. The last 4 are lost; of the 6 before, a checkpoint took 1."""
    of = Holding()
    of.begin()
    of.level(0, {"cpu": 2})
    of.level(4, {"cpu": 3})
    assert of.split(10, (5, 4, 1)) == ({"cpu": 14 - 14 // 6}, {"cpu": 12}, {"cpu": 14 // 6})
    assert of.split(10, (10, 0, 0)) == ({"cpu": 26}, {"cpu": 0}, {"cpu": 0})
    of.begin()
    of.level(20, {"cpu": 1})
    assert of.split(20, (0, 0, 0)) == ({"cpu": 0}, {"cpu": 0}, {"cpu": 0})


def test_work_done_by_a_gang_that_grows_is_what_its_tasks_held() -> None:
    """KAI: one of two tasks is enough; the second finds room after 6 of 10 seconds."""
    first = job("first", "a", 4, 0, 6)
    gang = job("gang", "a", 4, 1, 10, min_available=1)
    gang["ask"]["tasks"][0]["count"] = 2
    told = played(configuration("kai"), [first, gang], state=NODES)
    assert [line for line in told.said() if "gang" in line] == [
        "1 submitted gang", "1 started gang", "6 started gang", "11 finished gang",
    ]  # fmt: skip
    assert told.summary is not None
    assert told.summary.total.work_done == {"cpu": 4 * 6 + 4 * 10 + 4 * 5}
    assert told.summary.total.used == told.summary.total.work_done


def test_a_task_of_a_gang_that_runs_on_is_asked_for_again_as_of_its_eviction() -> None:
    """KAI: two tasks run and one is enough; b takes the place of the other at 8, which goes for 3 s."""
    gang, own = job("gang", "a", 4, 0, 60, min_available=1), job("own", "b", 4, 8, 10)
    gang["ask"]["tasks"][0]["count"] = 2
    gang["ask"]["preemptible"] = True
    for requeue, second in (("created", 0), ("evicted", 8)):
        request = request_for(configuration("kai"), [gang, own], state=NODES, grace=3, requeue=requeue)
        asked = [ask for one in rounds_of(request) for ask in one.question.asks if ask.id == "gang"]
        assert [task.name for task in asked[-1].tasks] == ["main-1"]
        created = asked[-1].created_at
        assert created is not None
        assert (created.minute, created.second) == (0, second)
