"""Jobs as victims, and the order in which they are taken: by hand."""

import pytest

from app.solver.engines.kai.chance import Chance
from app.solver.engines.kai.job_order import VictimOrder, VictimTable, sort_victims, what_is_left
from app.solver.engines.kai.overlay import Overlay
from app.solver.engines.kai.queue_order import QueueOrder, Standing
from app.solver.engines.kai.rule_sets import KAI_0_17
from app.solver.engines.kai.scenario import Group
from app.solver.engines.kai.search import Prefix
from tests.support.kai_parts import open_overlay
from tests.support.kai_world import Json
from tests.unit.solver.engines.kai.case import ask, node, queue, workload

NODES = [node("m", gpu=9), node("n", gpu=9)]
QUEUES = [queue("root", gpu=9), queue("a", "root", gpu=1), queue("b", "root", gpu=1)]
STEP = (1000, 2**30, 1000)


def opened(workloads: list[Json], *asks: Json, rules: str = "documented") -> Overlay:
    return open_overlay(
        {
            "engine": "kai", "mode": "cycle", "now": "2027-01-15T08:00:00Z", "asks": list(asks),
            "configuration": {"queues": QUEUES, "settings": {"kai": {"rules": rules}}},
            "state": {"nodes": NODES, "workloads": workloads},
        }
    )  # fmt: skip


def times(amount: int) -> tuple[int, ...]:
    return tuple(amount * step for step in STEP)


@pytest.mark.parametrize(("least", "rank"), [(4, 0), (3, 1), (2, 2), (0, 2)])
def test_a_victim_gives_its_last_pods_first_and_ranks_by_what_it_has_beyond_its_gang(least: int, rank: int) -> None:
    overlay = opened([workload("w", "a", "m", "m", "n", min_available=least, priority=7)])
    victim = VictimTable(overlay).of(0)
    assert (victim.job, victim.tasks, victim.holds, victim.others) == (0, [2, 1, 0], times(3), False)
    assert victim.key[:2] == (-7, rank)
    for tasks, over in (([2, 1], 2 - least), ([0], 1 - least), ([], -least)):
        left = what_is_left(overlay, victim, tasks)
        assert (left.job, left.tasks, left.holds) == (0, tasks, times(len(tasks)))
        assert left.key[:2] == (-7, 0 if over < 0 else 2 if over else 1)


def test_pods_that_wait_for_their_place_go_and_hold_nothing() -> None:
    overlay = opened([workload("w", "a", "m", min_available=1)], ask("p", "a", 2, workload="w"))
    table = VictimTable(overlay)
    assert (table.of(0).tasks, table.of(0).others) == ([0], True)
    overlay.pipeline(1, 1)
    overlay.commit("allocate", 0)
    victim = table.of(0)
    assert (victim.tasks, victim.holds, victim.others) == ([0, 1], times(1), True), "of w-0, p-0 and p-1 one is pending"
    overlay.evict(1)
    overlay.evict(0)
    left = what_is_left(overlay, victim, [0, 1])
    assert (left.holds, left.others) == (times(1), True), "as they stood before the statement"


def test_a_victim_is_worked_out_once_until_a_commit_touches_it() -> None:
    running = [workload("v", "a", "m", "m", min_available=1), workload("w", "b", "n")]
    overlay = opened(running, ask("p", "b", workload="w"), ask("q", "a"))
    table = VictimTable(overlay)
    v, w = table.of(0), table.of(1)
    assert (table.of(0), table.of(1)) == (v, w)
    assert VictimTable(overlay).of(0) is v, "what no ask grows is the same for every decision on the state"
    assert VictimTable(overlay).of(1) is not w
    overlay.evict(0)
    overlay.pipeline(4, 0)
    overlay.commit("reclaim", 2)
    now = table.of(0)
    assert (now.tasks, table.of(0), table.of(1)) == ([1], now, w)
    assert VictimTable(overlay).of(0) is not v


def taken(overlay: Overlay) -> list[str]:
    """Who is taken, in order, pod by pod: what is left of a victim is put back. Only what is preemptible."""
    table, jobs = VictimTable(overlay), overlay.jobs
    victims = sort_victims(overlay, [table.of(j) for j in range(len(jobs.id)) if jobs.preemptible[j]])
    order = VictimOrder(overlay, Standing(QueueOrder(overlay).frozen()), victims)
    found: list[str] = []
    while (victim := order.pop()) is not None:
        found.append(jobs.id[victim.job])
        if len(victim.tasks) > 1:
            order.push(what_is_left(overlay, victim, victim.tasks[1:]))
    return found


def singles(name: str, count: int) -> list[Json]:
    """Jobs of one pod in the queue of that name, the first of them taken first."""
    return [workload(f"{name}{i}", name, "m", priority=i) for i in range(count)]


def test_in_a_leaf_the_lowest_priority_goes_first_then_what_is_above_its_gang_then_the_newest_then_by_id() -> None:
    day = "2027-01-0{}T00:00:00Z".format
    running = [
        workload("low", "a", "m", priority=1, created_at=day(1)), workload("old", "a", "m", created_at=day(2)),
        workload("new", "a", "m", created_at=day(3)), workload("same", "a", "m", created_at=day(3)),
        workload("above", "a", "m", "m", min_available=1, created_at=day(1)), workload("high", "a", "m", priority=90),
    ]  # fmt: skip
    assert taken(opened(running)) == ["low", "above", "same", "new", "old", "above", "high"]


def test_of_two_queues_the_one_that_is_left_with_more_of_its_share_gives_first() -> None:
    """All fit, so that ``a`` may hold its four GPUs and ``b`` its three. Without the next victim of each a has 3 of 4
    left and b 2 of 3; then 2 of 4 and 2 of 3; 2 of 4 and 1 of 3; 1 of 4 and 1 of 3; 1 of 4 and nothing. Where both
    have nothing left, the queue that may hold more is the worse one."""
    running = [*singles("a", 4), *singles("b", 3)]
    assert taken(opened(running)) == ["a0", "b0", "a1", "b1", "a2", "a3", "b2"]


def test_a_queue_remembers_what_it_gave_where_its_only_victim_comes_back() -> None:
    """``a`` may hold six GPUs: two of a job that nobody may take, and four of an elastic one, taken pod by pod; each
    time what it held counts as given. After b0 a has 2 of 6 left and b 1 of 3; then a has nothing left."""
    running = [workload("fixed", "a", "n", "n", preemptible=False), workload("a", "a", *"mmmm", min_available=0)]
    assert taken(opened([*running, *singles("b", 3)])) == ["b0", "a", "b1", "a", "a", "a", "b2"]


@pytest.mark.parametrize(("recorded", "goes"), [([], [3, 2, 1, 0]), ([3], [2, 1, 0, 3]), ([3, 1], [2, 0, 3, 1])])
def test_what_is_listed_of_a_victim_goes_chunk_by_chunk_and_what_is_recorded_last(
    recorded: list[int], goes: list[int]
) -> None:
    overlay = opened([workload("w", "a", "m", "m", "m", "m", min_available=1)], ask("p", "b"), rules="shipped")
    order = VictimOrder(
        overlay, Standing(QueueOrder(overlay).frozen()), sort_victims(overlay, [VictimTable(overlay).of(0)])
    )
    prefix = Prefix(overlay, 1, overlay.jobs.tasks[1], [Group(0, [t]) for t in recorded], order)
    while prefix.go() is not None:
        pass
    (groups,) = prefix.by_node(Chance(), KAI_0_17)
    assert [group.tasks for group in groups] == [goes]
