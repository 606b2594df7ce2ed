"""Guarantees of volume, worked out by hand in a cluster of 100 cpu and 100 slots."""

from typing import Any

import numpy as np
import pytest

from app.solver.engines.ytsaurus.answer import after_shares
from app.solver.engines.ytsaurus.fair_shares import fair_shares
from app.solver.engines.ytsaurus.guarantees import IntegralShares, Update, Volumes, depth_first, fitting
from tests.unit.solver.engines.ytsaurus.cluster import (
    NOW,
    ask,
    effective,
    node,
    operation,
    pool,
    refused,
    request,
    shares,
    situated,
)

Json = dict[str, Any]
BEFORE = {"ytsaurus": {"last_update_at": "2026-01-01T11:59:00Z"}}


def guaranteed(kind: str, flow: float = 10, **more: Any) -> Json:
    own = {"guarantee_type": kind, "resource_flow": {"cpu": flow}} | more
    return {"integral_guarantees": own}


def one(block: Json, wanted: int = 30, strong: float = 0, **more: Any) -> Json:
    quota = {"quota": {"cpu": {"guaranteed": strong}, "user_slots": {"guaranteed": strong}}}
    pools = [pool("p", ytsaurus=block) | quota]
    return request(pools, [node(cpu=100)], [operation("x", "p")], [ask("x", "p", wanted)], **more)


def parts(element: Json) -> list[Any]:
    """Cpu by strong guarantee, integral guarantee and weight."""
    return [pytest.approx(element["fair_share_parts"][kind]["cpu"]) for kind in ("strong", "integral", "weight")]


def volume(answer: Json, of: str = "p") -> float:
    return answer["queues"][of]["integral_guarantees"]["accumulated_volume"]["cpu"]


def carrying(volume: float, ratio: float = 0.0) -> Json:
    both = {"cpu": volume, "user_slots": volume}
    return {"queues": {"p": {"ytsaurus": {"accumulated_volume": both, "last_share_ratio": ratio}}}}


@pytest.mark.parametrize(
    "block",
    [guaranteed("relaxed"), guaranteed("burst", burst_guarantee_resources={"cpu": 10})],
    ids=["relaxed", "burst"],
)
def test_a_minute_of_flow_lasts_for_the_smooth_period(block: Json) -> None:
    """A tenth of the cluster for 60 s is 600; over 60 s that is a tenth again: 10 strong, 10 integral, 10 by weight."""
    answer = shares(one(block, strong=10), options=BEFORE)
    assert parts(answer["queues"]["p"]) == [10, 10, 10]
    own = answer["queues"]["p"]["integral_guarantees"]
    assert own["accumulated_volume"] == {"user_slots": 600, "cpu": 600}
    assert own["last_share_ratio"] == pytest.approx(0.1)
    assert own["resource_flow_ratio"] == pytest.approx(0.1)


def test_without_a_last_update_volumes_stay_as_they_are() -> None:
    answer = shares(one(guaranteed("relaxed"), state=carrying(1200)))
    assert volume(answer) == 1200
    assert parts(answer["queues"]["p"]) == [0, 20, 10]


def test_what_was_given_is_spent() -> None:
    """600 come in, 60 s of a fifth go out."""
    assert volume(shares(one(guaranteed("relaxed"), state=carrying(1000, 0.2)), options=BEFORE)) == 400
    assert volume(shares(one(guaranteed("relaxed"), state=carrying(0, 0.2)), options=BEFORE)) == 0


def test_a_pool_saves_what_flows_in_within_the_saturation_period() -> None:
    settings = {"integral_guarantees": {"pool_capacity_saturation_period": "100s"}}
    body = one(guaranteed("relaxed"), state=carrying(900), settings=settings)
    assert volume(shares(body, options=BEFORE)) == 1000
    body["state"] |= carrying(1500)
    assert volume(shares(body, options=BEFORE)) == 1500, "what is there already is not taken away"


def test_relaxed_pools_get_their_flow_times_a_limit_at_most() -> None:
    body = one(guaranteed("relaxed"), wanted=100, state=carrying(10**6))
    assert parts(shares(body)["queues"]["p"])[:2] == [0, 30]
    body["configuration"]["queues"][0]["ytsaurus"] = guaranteed("relaxed", relaxed_share_multiplier_limit=5)
    assert parts(shares(body)["queues"]["p"])[:2] == [0, 50]


def test_relaxed_pools_get_what_guarantees_leave_over() -> None:
    """q is guaranteed 80 and uses it: 20 are left of the 30 that p's volume would allow."""
    body = one(guaranteed("relaxed"), wanted=100, state=carrying(10**6))
    body["configuration"]["queues"].append(pool("q", quota={"cpu": {"guaranteed": 80}}))
    body["state"]["workloads"].append(operation("y", "q"))
    body["asks"].append(ask("y", "q", 100))
    answer = shares(body)
    assert parts(answer["queues"]["p"]) == [0, 20, 0]
    assert parts(answer["queues"]["q"]) == [80, 0, 0]
    body["asks"][1]["tasks"][0]["count"] = 10
    assert parts(shares(body)["queues"]["p"])[:2] == [0, 30], "a guarantee that nobody wants is left over too"


def test_burst_guarantees_and_strong_ones_shrink_together() -> None:
    """80 strong and 40 burst are 1.2 clusters: each times 1 / 1.2, and an alert."""
    block = guaranteed("burst", burst_guarantee_resources={"cpu": 40})
    body = one(block, wanted=100, state=carrying(10**6))
    body["configuration"]["queues"].append(pool("q", quota={"cpu": {"guaranteed": 80}}))
    body["state"]["workloads"].append(operation("y", "q"))
    body["asks"].append(ask("y", "q", 100))
    answer = shares(body)
    assert answer["alerts"] == [29000]
    assert parts(answer["queues"]["p"])[1] == pytest.approx(40 / 1.2)
    assert answer["queues"]["q"]["strong_guarantee"]["cpu"] == pytest.approx(80 / 1.2)
    assert answer["queues"]["p"]["integral_guarantees"]["burst_ratio"] == pytest.approx(0.4 / 1.2)


def test_what_flows_over_goes_to_who_takes_it() -> None:
    """a is full (10 x 100 s) and spills 600; b takes up to 1000 - 600, c nothing, and the rest is lost."""
    settings = {"integral_guarantees": {"pool_capacity_saturation_period": "100s"}}
    pools = [
        pool("top", ytsaurus={"integral_guarantees": {"should_distribute_free_volume_among_children": True}}),
        pool("a", parent="top", ytsaurus=guaranteed("relaxed")),
        pool("b", parent="top", ytsaurus=guaranteed("relaxed")),
        pool("c", parent="top", ytsaurus=guaranteed("relaxed", can_accept_free_volume=False)),
    ]
    full = {"ytsaurus": {"accumulated_volume": {"cpu": 1000, "user_slots": 1000}}}
    body = request(pools, [node(cpu=100)], [], settings=settings, state={"queues": {"a": full}})
    answer = shares(body, options=BEFORE)
    assert [volume(answer, name) for name in "abc"] == [1000, 1000, 600]
    del body["configuration"]["queues"][0]["ytsaurus"]
    assert [volume(shares(body, options=BEFORE), name) for name in "abc"] == [1000, 600, 600]


def test_inferred_weights_count_the_flow() -> None:
    """p is guaranteed 10 and flows 10, q is guaranteed 20: both a half of what the root has, times 2."""
    body = one(guaranteed("relaxed"), strong=10, settings={"infer_weight_from_guarantees_share_multiplier": 2})
    body["configuration"]["queues"].append(pool("q", quota={"cpu": {"guaranteed": 20}}))
    answer = shares(body)
    assert [answer["queues"][name]["weight"] for name in "pq"] == [pytest.approx(1), pytest.approx(1)]


def test_volumes_are_carried_from_update_to_update() -> None:
    """Each minute 600 come in; what was given of it is spent in the next."""
    body = one(guaranteed("relaxed"), strong=10, options=BEFORE)
    first = shares(body, options=BEFORE)
    body["state"] = after_shares(body["state"], first)
    assert body["state"]["queues"]["p"]["ytsaurus"]["last_share_ratio"] == pytest.approx(0.1)
    second = shares(body, now="2026-01-01T12:01:00Z", options={"ytsaurus": {"last_update_at": NOW}})
    assert volume(second) == pytest.approx(600)
    assert parts(second["queues"]["p"]) == parts(first["queues"]["p"])


def test_bad_values_are_refused() -> None:
    body = one(guaranteed("relaxed", relaxed_share_multiplier_limit=11))
    body["configuration"]["settings"]["ytsaurus"]["integral_guarantees"] = {"smooth_period": 0}
    assert set(refused(body)) == {
        "/configuration/settings/ytsaurus/integral_guarantees/smooth_period",
        "/configuration/queues/0/ytsaurus/integral_guarantees/relaxed_share_multiplier_limit",
    }
    assert set(refused(one(guaranteed("relaxed"), state=carrying(-1, -0.5)))) == {
        "/state/queues/p/ytsaurus/accumulated_volume/cpu",
        "/state/queues/p/ytsaurus/accumulated_volume/user_slots",
        "/state/queues/p/ytsaurus/last_share_ratio",
    }
    later = {"ytsaurus": {"last_update_at": "2026-01-01T12:00:01Z"}}

    def too_late(body: Json) -> Json:
        return shares(body, options=later)

    assert set(refused(one(guaranteed("relaxed")), too_late)) == {"/options/ytsaurus/last_update_at"}
    same = {"ytsaurus": {"last_update_at": NOW}}
    assert volume(shares(one(guaranteed("relaxed"), state=carrying(1200, 0.2)), options=same)) == 1200, "no time passed"


def test_effective_settings_say_what_counts() -> None:
    own = effective(one(guaranteed("relaxed")))["queues"]["p"]["integral_guarantees"]
    assert own == {
        "guarantee_type": "relaxed",
        "resource_flow": {"cpu": 10},
        "burst_guarantee_resources": {},
        "relaxed_share_multiplier_limit": 3,
        "can_accept_free_volume": True,
        "should_distribute_free_volume_among_children": False,
        "smooth_period": 60,
        "pool_capacity_saturation_period": 86400,
    }


@pytest.mark.parametrize(
    ("proposed", "strong", "limit", "expected"),
    [
        (0.5, 0.25, 0.75, 0.5),  # as much as the limit leaves
        (0.75, 0.25, 0.75, 0.5),
        (0.5, 0.75, 0.5, 0.0),  # over the limit without it
        (0.7, 0.06, 0.67, 0.61),  # 0.67 - 0.06 is 0.6100000000000001, and 0.06 more of that is over the limit
        (0.3, 0.15, 0.42, 0.26999999999999996),
    ],
)
def test_a_guarantee_fits_its_limit_to_the_last_bit(
    proposed: float, strong: float, limit: float, expected: float
) -> None:
    found = fitting(np.array([proposed]), np.array([strong]), np.array([limit]))
    assert found.tolist() == [expected]


def several(pools: list[Json], volumes: dict[str, float], *, other: int = 0, **more: Any) -> Json:
    """Every pool of ``pools`` without children wants all; ``volumes``: cpu-seconds, and as many slot-seconds.
    ``other``: what one more pool is guaranteed and uses."""
    inner = {of.get("parent") for of in pools}
    leaves = [of["name"] for of in pools if of["name"] not in inner]
    if other:
        pools = [*pools, pool("q", quota={"cpu": {"guaranteed": other}, "user_slots": {"guaranteed": other}})]
        leaves.append("q")
    carried = {name: carrying(volume)["queues"]["p"] for name, volume in volumes.items()}
    asks = [ask(f"x{name}", name, 100) for name in leaves]
    operations = [operation(f"x{name}", name) for name in leaves]
    return request(pools, [node(cpu=100)], operations, asks, state={"queues": carried}, **more)


def integral(answer: Json) -> dict[str, Any]:
    """Cpu proposed for the volumes of each pool, and what part of the cluster it spends from now on."""
    return {
        name: (
            pytest.approx(of["proposed_integral"]["cpu"], abs=1e-6),
            pytest.approx(own["last_share_ratio"], abs=1e-8),
        )
        if (own := of.get("integral_guarantees"))
        else (pytest.approx(of["proposed_integral"]["cpu"], abs=1e-6), None)
        for name, of in answer["queues"].items()
    }


def limited(amount: float) -> Json:
    return {"cpu": {"limit": amount}, "user_slots": {"limit": amount}}


def held(strong: float, limit: float) -> Json:
    return {name: {"guaranteed": strong, "limit": limit} for name in ("cpu", "user_slots")}


BURST_OF_10 = {"integral_guarantees": {"guarantee_type": "burst", "burst_guarantee_resources": {"cpu": 10}}}
BURST = {"ytsaurus": guaranteed("burst", burst_guarantee_resources={"cpu": 40})}
RELAXED = {"ytsaurus": guaranteed("relaxed", 20)}


def test_burst_pools_get_their_burst_one_by_one_within_the_limits_above() -> None:
    """top may have 60 and is guaranteed 10 of it, which a is: a takes 40 more, and b the 10 that are left; the pool
    beside them has a limit of its own."""
    pools = [
        pool("c", quota=held(5, 20), **BURST), pool("top", quota=held(10, 60)),
        pool("a", parent="top", quota={"cpu": {"guaranteed": 10}, "user_slots": {"guaranteed": 10}}, **BURST),
        pool("b", parent="top", **BURST),
    ]  # fmt: skip
    answer = shares(several(pools, dict.fromkeys("abc", 10**6)))
    # c is cut to 15 = 20 - 5. Guarantees and bursts are 15 + 120: each burst is 40 times the factor that fits.
    factor = 100 / 135
    assert answer["alerts"] == [29000]
    found = {name: of["proposed_integral"]["cpu"] for name, of in answer["queues"].items()}
    strong = {name: of["strong_guarantee"]["cpu"] for name, of in answer["queues"].items()}
    assert found["c"] == pytest.approx(min(40 * factor, 20 - strong["c"]))
    assert found["a"] == pytest.approx(40 * factor)
    assert found["b"] == pytest.approx(60 - strong["top"] - 40 * factor)
    assert found["top"] == pytest.approx(found["a"] + found["b"])


def test_a_burst_lasts_as_long_as_the_volume() -> None:
    """40 are burst, but 1200 cpu-seconds last a minute for 20 only; nobody gets more than it wants on top."""
    answer = shares(several([pool("a", **BURST)], {"a": 1200}))
    assert integral(answer) == {"a": (20, 0.2)}
    body = several([pool("a", **BURST)], {"a": 1200})
    body["state"]["queues"]["a"]["ytsaurus"]["accumulated_volume"]["user_slots"] = 600
    assert integral(shares(body)) == {"a": (10, 0.1)}, "the resource that lasts least decides"
    body["state"]["queues"]["a"]["ytsaurus"]["accumulated_volume"] = {"user_slots": 1200, "cpu": 600}
    assert integral(shares(body)) == {"a": (10, 0.1)}
    body["asks"][0]["tasks"][0]["count"] = 7
    assert integral(shares(body)) == {"a": (7, 0.07)}


def test_what_there_is_hardly_any_of_counts_for_how_long_a_volume_lasts() -> None:
    """There is one slot, of which nothing is saved; without nodes nothing lasts for anything."""
    body = several([pool("a", **BURST)], {"a": 6000})
    body["state"]["queues"]["a"]["ytsaurus"]["accumulated_volume"]["user_slots"] = 0
    body["state"]["nodes"][0]["capacity"]["user_slots"] = 1
    assert integral(shares(body)) == {"a": (0, 0)}
    body["state"]["nodes"] = []
    assert integral(shares(body)) == {"a": (0, 0)}
    assert fair_shares(situated(body)).volumes.ratio(0) == 0


def test_a_relaxed_pool_is_guaranteed_what_burst_pools_below_it_got() -> None:
    """c bursts by 10. q leaves 5 over, but p takes what c got of its own volume too, before anything is suggested."""
    pools = [pool("p", **RELAXED), pool("c", parent="p", ytsaurus=BURST_OF_10)]
    found = integral(shares(several(pools, {"p": 1200, "c": 10**6}, other=85)))
    assert (found["c"], found["p"]) == ((10, 0.1), (20, 0.1))


def test_one_relaxed_pool_gets_to_the_last_bit_what_is_left() -> None:
    answer = shares(several([pool("a", **RELAXED)], {"a": 6000}, other=50))
    assert answer["queues"]["a"]["integral_guarantees"]["last_share_ratio"] == 0.5


@pytest.mark.parametrize(
    ("volumes", "other", "gets"),
    [
        ((2400, 1200), 70, (20, 10)),  # 40 and 20 by volume, of which 30 are left: 2 : 1
        ((2400, 1200), 10, (40, 20)),  # all fits
        ((6000, 600), 70, (300 / 11, 30 / 11)),  # 10 : 1
        ((600, 600), 85, (7.5, 7.5)),
    ],
)
def test_relaxed_pools_share_what_guarantees_leave_over_by_volume(
    volumes: tuple[int, int], other: int, gets: tuple[float, float]
) -> None:
    pools = [pool("a", **RELAXED), pool("b", **RELAXED)]
    found = integral(shares(several(pools, dict(zip("ab", volumes, strict=True)), other=other)))
    assert [found[name] for name in "ab"] == [(pytest.approx(g), pytest.approx(g / 100)) for g in gets]


def test_a_relaxed_pool_keeps_within_limits_of_its_own_and_above() -> None:
    pools = [
        pool("top", quota=limited(25)), pool("a", parent="top", **RELAXED), pool("b", quota=held(4, 10), **RELAXED)
    ]  # fmt: skip
    found = integral(shares(several(pools, {"a": 2400, "b": 2400})))
    assert (found["a"][0], found["top"][0], found["b"][0]) == (25, 25, 6)
    found = integral(shares(several([pool("a", **RELAXED)], {"a": 0})))
    assert found == {"a": (0, 0)}


def test_relaxed_pools_come_after_burst_pools_whatever_their_place() -> None:
    """a bursts by 40, which leaves 60 of the 66 that b's volume and its flow allow; had it burst less, it would leave
    more."""
    pools = [pool("b", ytsaurus=guaranteed("relaxed", 30)), pool("a", **BURST)]
    found = integral(shares(several(pools, {"b": 3960, "a": 10**6})))
    assert (found["b"][0], found["a"][0]) == (60, 40)
    found = integral(shares(several(pools, {"b": 3960, "a": 1200})))
    assert (found["b"][0], found["a"][0]) == (66, 20)


@pytest.mark.parametrize(
    ("strong", "burst", "exceeds"),
    [
        ({"cpu": 6, "user_slots": 0}, {"cpu": 4}, False),
        ({"cpu": 6, "user_slots": 0}, {"cpu": 4.01}, True),
        ({"cpu": 6, "user_slots": 0}, {"cpu": 4.004}, False),  # cpu counts in hundredths
        ({"cpu": 6, "user_slots": 0}, {"user_slots": 400_400}, False),
        ({"cpu": 6, "user_slots": 0}, {"user_slots": 400_497}, False),
        ({"cpu": 6, "user_slots": 0}, {"user_slots": 400_600}, True),
        ({"cpu": 1, "user_slots": 600_000}, {"user_slots": 400_000}, False),
        ({"cpu": 1, "user_slots": 600_000}, {"user_slots": 400_001}, True),
        ({"cpu": 1, "user_slots": 0, "gpu": 1}, {"user_slots": 650_000}, False),  # gpus whole: 1.95 are 2, of 3
        ({"cpu": 1, "user_slots": 0, "gpu": 1}, {"user_slots": 600_000}, False),
        ({"cpu": 1, "user_slots": 0, "gpu": 2}, {"user_slots": 600_000}, True),
        ({"cpu": 1, "user_slots": 0, "gpu": 2}, {"user_slots": 480_000}, False),  # 1.44 are 1
    ],
)
def test_guarantees_and_bursts_that_exceed_the_cluster_together(strong: Json, burst: Json, exceeds: bool) -> None:
    nodes = [{"name": "n", "capacity": {"user_slots": 1_000_000, "cpu": 10, "gpu": 3}}]
    integral = {"guarantee_type": "burst", "burst_guarantee_resources": burst}
    pools = [
        pool("p", quota={name: {"guaranteed": amount} for name, amount in ({"gpu": 0} | strong).items()}),
        pool("q", ytsaurus={"integral_guarantees": integral}),
    ]
    assert shares(request(pools, nodes, []))["alerts"] == ([29000] if exceeds else [])


def test_bursts_beyond_the_cluster_shrink_to_the_last_bit_that_fits() -> None:
    pools = [
        pool(
            name,
            ytsaurus={"integral_guarantees": {"guarantee_type": "burst", "burst_guarantee_resources": {"cpu": cpu}}},
        )
        for name, cpu in (("p", 5), ("q", 7.5))
    ]
    found = shares(request(pools, [node(cpu=10)], []))["queues"]
    assert [one["integral_guarantees"]["burst_ratio"] for one in found.values()] == [0.5 * 0.8, 0.75 * 0.8]


def test_a_pool_between_two_guarantees_hands_on_no_more_than_it_takes() -> None:
    """p, a burst pool without volume, has the functions of q and r worked out before r gets its integral share, and q
    keeps its own. r is guaranteed the 10 cpu that q's limit lets through. q, which takes 10, still means to
    suggest a tenth to r, with which r would take 20; so it hands on as much less as keeps r within 10."""
    burst = guaranteed("burst", burst_guarantee_resources={"cpu": 10})
    pools = [
        pool("p", ytsaurus=burst), pool("q", parent="p", quota={"cpu": {"limit": 10}}),
        pool("r", parent="q", ytsaurus=guaranteed("relaxed")),
    ]  # fmt: skip
    volume = {"accumulated_volume": {"cpu": 1200, "user_slots": 1200}}
    state = {"queues": {"r": {"ytsaurus": volume}}}
    body = request(pools, [node(cpu=100)], [operation("x", "r")], [ask("x", "r", 40)], state=state)
    answer = shares(body)
    assert answer["queues"]["r"]["proposed_integral"]["cpu"] == pytest.approx(10)
    assert [answer["queues"][name]["fair_share"]["cpu"] for name in "pqr"] == [pytest.approx(10)] * 3
    assert answer["workloads"]["x"]["fair_share"]["cpu"] == pytest.approx(10)


class Taking:
    """Every pool takes this part of the cluster of any suggestion but nothing."""

    def __init__(self, part: float) -> None:
        self._part = part

    def prepare(self, top: int, guarantee: Any, limits: Any) -> None: ...

    def taken(self, pools: Any, suggestions: Any) -> Any:
        return np.where(suggestions > 0, self._part, 0.0)[:, None] * np.ones((1, 2))

    def forget(self, pool: int) -> None: ...

    def divided(self, tops: Any, suggestion: float) -> Any: ...


@pytest.mark.parametrize(("part", "strong", "limit", "close"), [
    (0.25, 0.125, 0.5, False), (0.5, 0.125, 0.5, True), (0.5 - 1e-12, 0.125, 0.5, True), (0.5, 0.125, 0.75, False),
    (1.125, 0.25, 1.5, True), (1.0, 0.25, 1.5, False), (0.0, 0.0, 0.0, False),
])  # fmt: skip
def test_what_comes_close_to_a_limit_or_to_what_there_is_may_hang_on_bits(
    part: float, strong: float, limit: float, close: bool
) -> None:
    """What a pool takes meets its limit, or beyond its guarantee what the demand, an eighth, leaves of the cluster."""
    situation = situated(one(guaranteed("relaxed"), state=carrying(6000)))
    flow = np.full(2, 0.5)
    volumes = Volumes(situation, flow, flow, Update())
    of = IntegralShares(situation, Taking(part), np.full((2, 2), strong), np.full((2, 2), limit), volumes)
    of.propose(np.zeros(2), flow, np.full((2, 2), 0.125))
    assert of.close is close


def test_only_burst_pools_give_way_with_strong_guarantees_that_exceed_the_cluster() -> None:
    """What bursts promise counts, whoever does; but a relaxed pool never gets it, so nothing makes room for it."""
    block = guaranteed("relaxed", burst_guarantee_resources={"cpu": 50})
    answer = shares(one(block, strong=100))
    assert answer["alerts"] == [29000]
    own = answer["queues"]["p"]
    assert own["strong_guarantee"]["cpu"] == 100
    assert own["integral_guarantees"]["burst_ratio"] == 0.5
    block["integral_guarantees"]["guarantee_type"] = "burst"
    own = shares(one(block, strong=100))["queues"]["p"]
    assert own["strong_guarantee"]["cpu"] == pytest.approx(200 / 3)
    assert own["integral_guarantees"]["burst_ratio"] == pytest.approx(1 / 3)


def test_integral_pools_are_looked_at_depth_first() -> None:
    burst = guaranteed("burst", burst_guarantee_resources={"cpu": 1})
    pools = [pool("p", ytsaurus=burst), pool("q", ytsaurus=burst), pool("r", parent="p", ytsaurus=burst), pool("s")]
    config = situated(request(pools, [node(cpu=100)], [])).config
    assert [config.tree.names[i] for i in depth_first(config, "burst")] == ["p", "r", "q"]
    assert depth_first(config, "relaxed") == []
