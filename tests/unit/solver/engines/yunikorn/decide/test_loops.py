"""The design's examples of preemption loops, played over several rounds: Prod and Test replica sets, siblings.

Each round evicted pods are made again by their replica set and wait as asks; the node that an ask got is carried
as a reservation. There is no space left on the cluster, and pods are 2 units big.
"""

from tests.support.yunikorn_world import Json, World, app, ask, node, queue, task

TWO = {"vcore": 2}


def world(prod: tuple[int, int], test: tuple[int, int], size: int, rules: str = "documented") -> World:
    """``prod`` and ``test``: (guaranteed, running pods)."""

    def pods(name: str, count: int, first: int) -> list[Json]:
        return [task(f"{name}{i}", "n1", TWO, 4000 - 10 * (first + i)) for i in range(count)]

    return World(
        queues=[queue("root"), queue("root.prod", {"vcore": prod[0]}), queue("root.test", {"vcore": test[0]})],
        nodes=[node("n1", {"vcore": size})],
        workloads=[
            app("prod", "root.prod", *pods("prod", prod[1], 0)),
            app("test", "root.test", *pods("test", test[1], 100)),
        ],
        rules=rules,
    )


def pending(name: str, count: int) -> list[Json]:
    return [ask(f"{name}-new{i}", f"root.{name}", TWO, 300 - i, workload=name) for i in range(count)]


def running(of: World, name: str) -> int:
    return sum(len(w["tasks"]) for w in of.workloads if w["id"] == name)


def test_case_1_both_end_above_their_guarantee_and_nothing_follows() -> None:
    of = world(prod=(9, 4), test=(6, 6), size=20)
    left, history = of.settle(pending("prod", 2), rounds=8)
    assert [len(evicted) for evicted in history] == [1, 0, 0]
    assert history[0] == [("test", "test5")]
    assert (running(of, "prod"), running(of, "test")) == (5, 5)
    assert sorted(one["workload"] for one in left) == ["prod", "test"]


def test_case_2_test_would_fall_below_its_guarantee_so_nothing_happens() -> None:
    of = world(prod=(10, 4), test=(11, 6), size=20)
    left, history = of.settle(pending("prod", 2), rounds=8)
    assert history == [[]]
    assert (running(of, "prod"), running(of, "test"), len(left)) == (4, 6, 2)


def test_case_3_prod_is_still_below_and_goes_on_but_is_never_taken_from() -> None:
    of = world(prod=(14, 4), test=(6, 6), size=20)
    left, history = of.settle(pending("prod", 5), rounds=12)
    assert sum(len(evicted) for evicted in history) == 3
    assert {workload for evicted in history for workload, _ in evicted} == {"test"}
    assert (running(of, "prod"), running(of, "test")) == (7, 3)
    assert sorted(one["workload"] for one in left) == ["prod", "prod", "test", "test", "test"]


def test_case_3_with_a_guarantee_for_test_too_stops_where_test_meets_it() -> None:
    of = world(prod=(14, 4), test=(10, 6), size=20)
    _, history = of.settle(pending("prod", 5), rounds=12)
    assert sum(len(evicted) for evicted in history) == 1
    assert (running(of, "prod"), running(of, "test")) == (5, 5)


def test_the_evicted_pod_cannot_slip_back_onto_the_reserved_node() -> None:
    of = world(prod=(9, 4), test=(6, 6), size=20)
    wanted = pending("prod", 1)
    answer = of.decide(*wanted, mode="cycle")
    asks = of.advance(wanted, answer)
    assert of.reservations[0]["node"] == "n1"
    back = next(one for one in asks if one["workload"] == "test")
    assert of.one(back)["outcome"] == "wait"
    of.reservations = []
    assert of.one(back)["outcome"] == "admit"


def test_the_ask_takes_the_node_it_reserved() -> None:
    of = world(prod=(9, 4), test=(6, 6), size=20)
    wanted = pending("prod", 1)
    of.nodes.append(node("a-free-one", {"vcore": 2}, schedulable=False))
    asks = of.advance(wanted, of.decide(*wanted, mode="cycle"))
    decision = of.one(next(one for one in asks if one["workload"] == "prod"))
    assert (decision["outcome"], decision["node"]) == ("admit", "n1")


def test_the_released_scheduler_takes_test_below_its_guarantee_in_case_2() -> None:
    of = world(prod=(10, 4), test=(11, 6), size=20, rules="shipped")
    decision = of.one(pending("prod", 1)[0])
    assert [victim["task"] for victim in decision["victims"]] == ["test5"]
