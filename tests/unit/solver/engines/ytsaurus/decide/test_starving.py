"""One update of fair shares and what it says of the next: who starves, when that changes by itself, what is carried."""

from datetime import datetime
from typing import Any

import msgspec
import pytest

from app.solver import solve
from app.solver.engines.ytsaurus.fair_shares import Standing, Updated, fair_share_update
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.request import SharesRequest
from tests.unit.solver.engines.ytsaurus.cluster import alloc, ask, node, operation, pool, request

Json = dict[str, Any]
SECOND = 1_000_000
QUIET = Standing("non_starving", None)


def updated(body: Json, last: int | None = None) -> Updated:
    """``last`` in seconds before the update."""
    asked = msgspec.convert(body, SharesRequest)
    assert isinstance(asked.configuration, Configuration)
    assert asked.now is not None
    assert not isinstance(asked.asks, str)
    loaded = solve.load(solve.configure(asked.configuration, asked.engine), asked.state)
    now = micros(asked.now)
    return fair_share_update(loaded.compiled, asked.asks, now, None if last is None else now - last * SECOND)


def below(seconds: int, level: str = "non_starving") -> Json:
    """Below its fair share for so long at 12:00:00."""
    clock = (
        f"2026-01-01T11:{59 - seconds // 60:02}:{(60 - seconds % 60) % 60:02}Z" if seconds else "2026-01-01T12:00:00Z"
    )
    if seconds and not seconds % 60:
        clock = f"2026-01-01T11:{60 - seconds // 60:02}:00Z"
    return {"ytsaurus": {"below_fair_share_since": clock, "starvation": level}}


def hungry(x: Json | None = None, a: Json | None = None, count: int = 10, **settings: Any) -> Json:
    """x of pool a is due five cpus of ten and uses none; y of pool b uses all. Only operations starve."""
    return request(
        [pool("a", ytsaurus=a or {}), pool("b")], [node()],
        [operation("x", "a", **(x or {})), operation("y", "b", [alloc(f"y{i}", i) for i in range(10)])],
        [ask("x", "a", count), ask("y", "b", 10)], {"enable_pool_starvation": False} | settings,
    )  # fmt: skip


def to_wait(body: Json) -> float | None:
    """Seconds until something changes."""
    found, now = updated(body), msgspec.convert(body["now"], datetime)
    return None if found.changes_at is None else (found.changes_at - micros(now)) / SECOND


JUST_PAST = 1 / SECOND


def test_who_is_below_its_share_starves_once_the_timeout_has_passed() -> None:
    found = updated(hungry())
    now = found.operations["x"].since
    assert now is not None
    assert found.operations == {"x": Standing("non_starving", now)}
    assert found.pools["a"] == QUIET
    assert not found.starves
    assert found.changes_at == now + 30 * SECOND + 1
    assert updated(hungry(below(31))).starves
    assert updated(hungry(below(31))).operations["x"].starvation == "starving"


@pytest.mark.parametrize(("since", "seconds"), [(0, 30), (29, 1), (30, 0), (31, None), (120, None)])
def test_a_timeout_that_has_passed_changes_nothing_any_more(since: int, seconds: int | None) -> None:
    expected = None if seconds is None else pytest.approx(seconds + JUST_PAST, abs=1e-9)
    assert to_wait(hungry(below(since))) == expected


@pytest.mark.parametrize(("since", "seconds"), [(0, 30), (29, 1), (30, 0), (31, 89), (119, 1), (120, 0), (121, None)])
def test_aggressive_starvation_comes_next_where_it_is_enabled(since: int, seconds: int | None) -> None:
    expected = None if seconds is None else pytest.approx(seconds + JUST_PAST, abs=1e-9)
    assert to_wait(hungry(below(since), {"enable_aggressive_starvation": True})) == expected


def test_few_pending_allocations_shorten_both_timeouts() -> None:
    body = hungry(below(1), {"enable_aggressive_starvation": True}, allocation_count_preemption_timeout_coefficient=20)
    assert to_wait(body) == pytest.approx(14 + JUST_PAST), "10 of 20: half of 30 s"
    body["state"]["workloads"][0] |= below(16)
    assert to_wait(body) == pytest.approx(44 + JUST_PAST), "and half of 120 s"
    body["configuration"]["settings"]["ytsaurus"]["allocation_count_preemption_timeout_coefficient"] = 5
    assert to_wait(body) == pytest.approx(14 + JUST_PAST), "never longer"


def test_pools_starve_by_their_own_timeout_where_they_may() -> None:
    body = hungry(below(31), {"fair_share_starvation_timeout": 40}, enable_pool_starvation=True)
    body["state"]["queues"] = {"a": below(35)}
    assert to_wait(body) == pytest.approx(5 + JUST_PAST)
    body["state"]["workloads"][0] |= below(38)
    assert to_wait(body) == pytest.approx(2 + JUST_PAST), "the operation waits as long, and has waited longer"
    body["state"]["queues"] = {"a": below(41)}
    found = updated(body)
    assert (found.pools["a"].starvation, found.operations["x"].starvation, found.starves) == (
        "starving", "non_starving", True,
    )  # fmt: skip
    body["configuration"]["queues"][0]["ytsaurus"]["enable_aggressive_starvation"] = True
    body["state"]["workloads"][0] |= below(41)
    assert to_wait(body) == pytest.approx(79 + JUST_PAST)
    body["configuration"]["settings"]["ytsaurus"]["enable_pool_starvation"] = False
    body["state"]["workloads"][0] |= below(121)
    assert to_wait(body) is None


def test_who_has_its_share_carries_nothing() -> None:
    body = hungry(below(50, "aggressively_starving"), count=0)
    assert "x" not in updated(body).operations
    assert to_wait(body) is None


def test_volumes_of_pools_that_are_guaranteed_one() -> None:
    """A tenth of ten cpus for a minute; x takes it, and the pool gives it all of that."""
    flow = {"integral_guarantees": {"guarantee_type": "relaxed", "resource_flow": {"cpu": 1}}}
    body = hungry(a=flow)
    assert updated(body).volumes == {"a": ({"user_slots": 0, "cpu": 0}, 0)}
    volume, ratio = updated(body, last=60).volumes["a"]
    assert volume == pytest.approx({"user_slots": 600, "cpu": 60})
    assert ratio == pytest.approx(0.1)
