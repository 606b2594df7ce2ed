from typing import Any

from app.solver.engines.ytsaurus.answer import after_shares
from tests.unit.solver.engines.ytsaurus.cluster import alloc, ask, decide, node, operation, pool, request, shares


def hungry(used: int = 0, **more: Any) -> dict[str, Any]:
    """x may have 5 of 10 and uses ``used``; y uses the rest."""
    own = [alloc(f"x{i}", i) for i in range(used)]
    other = [alloc(f"y{i}", i) for i in range(10 - used)]
    settings = more.pop("settings", {})
    return request(
        [pool("a", **more.pop("a", {})), pool("b")], [node()],
        [operation("x", "a", own, **more.pop("x", {})), operation("y", "b", other)],
        [ask("x", "a", 10), ask("y", "b", 10)], settings, **more,
    )  # fmt: skip


def walk(body: dict[str, Any], *seconds: float) -> list[tuple[str, str]]:
    """Starvation of operation x and of its pool at each instant, the state carried on."""
    out: list[tuple[str, str]] = []
    for second in seconds:
        answer = shares(body | {"now": f"2026-01-01T12:{int(second) // 60:02}:{second % 60:09.6f}Z"})
        out.append((answer["workloads"]["x"]["starvation"], answer["queues"]["a"]["starvation"]))
        body = body | {"state": after_shares(body["state"], answer)}
    return out


def test_the_tolerance_decides_and_equality_is_normal() -> None:
    def status(used: int) -> str:
        return shares(hungry(used))["workloads"]["x"]["status"]

    assert [status(n) for n in (3, 4, 5)] == ["below_fair_share", "normal", "normal"]  # 0.8 * 5 = 4


def test_a_demand_that_fair_share_covers_has_tolerance_one() -> None:
    """9 of 10 used: within 0.9 of its due, but its fair share covers what it wants."""
    body = request(
        [pool("a")], [node()], [operation("x", "a", [alloc(f"x{i}", i) for i in range(9)])], [ask("x", "a", 1)],
        {"fair_share_starvation_tolerance": 0.5},
    )  # fmt: skip
    answer = shares(body)
    assert answer["workloads"]["x"]["status"] == "below_fair_share"
    assert answer["queues"]["a"]["status"] == "normal"  # pools keep their tolerance


def test_timers_are_strict_and_the_first_look_only_arms() -> None:
    found = walk(hungry(settings={"enable_pool_starvation": True}), 0, 30, 30.000001)
    assert [x for x, _ in found] == ["non_starving", "non_starving", "starving"]
    assert [a for _, a in found] == ["non_starving", "non_starving", "starving"]


def test_a_timeout_of_zero_needs_a_second_look() -> None:
    assert [x for x, _ in walk(hungry(settings={"fair_share_starvation_timeout": 0}), 0, 0, 1)] == [
        "non_starving", "non_starving", "starving",
    ]  # fmt: skip


def test_aggressive_starvation_where_enabled() -> None:
    body = hungry(a={"ytsaurus": {"enable_aggressive_starvation": True}})
    assert [x for x, _ in walk(body, 0, 31, 120, 121)][1:] == ["starving", "starving", "aggressively_starving"]
    assert [x for x, _ in walk(hungry(), 0, 31, 500)][-1] == "starving"


def test_enough_resources_end_it_at_once() -> None:
    block = {"starvation": "aggressively_starving", "below_fair_share_since": "2026-01-01T11:00:00Z"}
    answer = shares(hungry(5, x={"ytsaurus": block}))["workloads"]["x"]
    assert (answer["starvation"], answer["below_fair_share_since"]) == ("non_starving", None)


def test_starvation_stays_while_below_and_waiting() -> None:
    block = {"starvation": "aggressively_starving", "below_fair_share_since": "2026-01-01T11:59:59Z"}
    assert shares(hungry(x={"ytsaurus": block}))["workloads"]["x"]["starvation"] == "aggressively_starving"


def test_pools_starve_only_where_they_may() -> None:
    body = hungry(settings={"enable_pool_starvation": False})
    body["state"]["queues"] = {"a": {"ytsaurus": {"starvation": "starving"}}}
    answer = shares(body)["queues"]["a"]
    assert (answer["status"], answer["starvation"]) == ("below_fair_share", "starving")  # as it was


def test_few_pending_allocations_shorten_the_timeouts() -> None:
    body = hungry(settings={"allocation_count_preemption_timeout_coefficient": 20})
    body["asks"][0]["tasks"][0]["count"] = 10  # half of 20: 15 s
    assert [x for x, _ in walk(body, 0, 15, 16)] == ["non_starving", "non_starving", "starving"]


def test_suspended_operations_are_normal() -> None:
    body = hungry(x={"ytsaurus": {"suspended": True}})
    assert shares(body)["workloads"]["x"]["status"] == "normal"


def test_the_absolute_tolerance_wants_a_whole_allocation_missing() -> None:
    body = hungry(
        4, settings={"enable_absolute_fair_share_starvation_tolerance": True, "fair_share_starvation_tolerance": 1}
    )
    body["asks"][0]["tasks"][0]["requests"] = {"user_slots": 2, "cpu": 2}
    assert shares(body)["workloads"]["x"]["status"] == "normal"
    body["asks"][0]["tasks"][0]["requests"] = {"user_slots": 1, "cpu": "500m"}
    assert shares(body)["workloads"]["x"]["status"] == "below_fair_share"


def test_the_absolute_tolerance_is_not_for_who_can_have_all_it_wants() -> None:
    """x uses 9 and wants 10, all of which it is due: one allocation is missing, no more than that."""
    body = request(
        [pool("a")], [node()], [operation("x", "a", [alloc(f"x{i}", i) for i in range(9)])], [ask("x", "a", 1)],
        {"enable_absolute_fair_share_starvation_tolerance": True},
    )  # fmt: skip
    assert shares(body)["workloads"]["x"]["status"] == "below_fair_share"


def test_carrying_on_forgets_what_ended_and_keeps_the_rest() -> None:
    state = {
        "workloads": [
            {"id": "x", "ytsaurus": {"is_gang": True, "below_fair_share_since": "t", "starvation": "starving"}}
        ],
        "queues": {"other": {"ytsaurus": {"starvation": "starving"}}},
        "nodes": [{"name": "n"}],
    }
    said = {"workloads": {"x": {"starvation": "non_starving", "below_fair_share_since": None}}, "queues": {"a": {}}}
    carried = after_shares(state, said)
    assert carried["workloads"] == [{"id": "x", "ytsaurus": {"is_gang": True, "starvation": "non_starving"}}]
    assert carried["queues"]["other"] == state["queues"]["other"]
    assert state["workloads"][0]["ytsaurus"]["starvation"] == "starving"  # nothing changes in place


def test_heartbeats_leave_notes_for_the_next() -> None:
    body = hungry()
    (left,) = decide(body)["notes"]["nodes"].values()
    assert left["last_preemptive_scheduling_at"] == "2026-01-01T12:00:00Z"
