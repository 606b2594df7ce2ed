"""Priority guarantees, promised guarantees and estimates, worked out by hand; 100 cpu and 100 slots."""

from typing import Any

import msgspec
import pytest

from app.solver import solve
from app.solver.engines.ytsaurus import fair_shares
from app.solver.model.configuration import Configuration
from tests.support.bounds import Bounded
from tests.unit.solver.engines.ytsaurus.cluster import ask, effective, node, operation, pool, request, shares

Json = dict[str, Any]
PRIORITY = {"ytsaurus": {"enable_priority_strong_guarantee_adjustment": True}}
DONOR = {"ytsaurus": {"enable_priority_strong_guarantee_adjustment_donorship": True}}


def guaranteed(amount: float) -> Json:
    return {"quota": {"cpu": {"guaranteed": amount}, "user_slots": {"guaranteed": amount}}}


def cut(*, donor: bool, priority: bool) -> Json:
    """A pool guaranteed 50 and limited to 30, whose two pools are guaranteed 20 and 30."""
    limits = {"resource_limits": {"cpu": 30, "user_slots": 30}}
    pools = [
        pool("top", **guaranteed(50), ytsaurus=limits | (DONOR["ytsaurus"] if donor else {})),
        pool("first", parent="top", **guaranteed(20), **(PRIORITY if priority else {})),
        pool("second", parent="top", **guaranteed(30)),
    ]
    return request(pools, [node(cpu=100)], [])


def strong(answer: Json) -> list[Any]:
    return [pytest.approx(answer["queues"][name]["strong_guarantee"]["cpu"]) for name in ("first", "second")]


def test_the_guarantee_of_a_priority_pool_is_cut_last() -> None:
    assert strong(shares(cut(donor=False, priority=False))) == [12, 18]
    assert strong(shares(cut(donor=True, priority=True))) == [20, 10]


def test_priority_without_a_donor_does_not_count_and_is_told() -> None:
    body = cut(donor=False, priority=True)
    answer = shares(body)
    assert strong(answer) == [12, 18]
    assert answer["alerts"] == [29002]
    assert shares(cut(donor=True, priority=True))["alerts"] == []
    assert effective(body)["queues"]["first"]["enable_priority_strong_guarantee_adjustment"] is False
    found = {
        (f.rule, f.pointer) for f in solve.findings(msgspec.convert(body["configuration"], Configuration), "ytsaurus")
    }
    at = "/queues/1/ytsaurus/enable_priority_strong_guarantee_adjustment"
    assert ("ytsaurus-priority-without-donor", at) in found


def test_priority_reaches_up_to_the_donor() -> None:
    """low is a priority pool two levels below the donor: the part of middle that is its guarantee is cut last too."""
    limits = {"resource_limits": {"cpu": 20, "user_slots": 20}}
    pools = [
        pool("top", **guaranteed(60), ytsaurus=limits | DONOR["ytsaurus"]),
        pool("middle", parent="top", **guaranteed(30)),
        pool("low", parent="middle", **guaranteed(15), **PRIORITY),
        pool("other", parent="top", **guaranteed(30)),
    ]
    answer = shares(request(pools, [node(cpu=100)], []))
    found = {name: p["strong_guarantee"]["cpu"] for name, p in answer["queues"].items()}
    # 15 of middle come first; the other 15 and the 30 of other share the 5 that are left, 1 : 2.
    assert found == {
        name: pytest.approx(v) for name, v in (("top", 20), ("middle", 50 / 3), ("low", 15), ("other", 10 / 3))
    }


def promising() -> Json:
    """YTsaurus' own example: a is guaranteed 30, a-1 below it 10; everybody wants all, only x-3 wants 2."""
    pools = [
        pool("a", **guaranteed(30), ytsaurus={"compute_promised_guarantee_fair_share": True}),
        pool("a-1", parent="a", **guaranteed(10)),
        pool("a-2", parent="a"),
        pool("a-3", parent="a"),
        pool("b", **guaranteed(30)),
    ]
    wanting = {"a-1": 100, "a-2": 100, "a-3": 2, "b": 100}
    operations = [operation(f"x{name}", name) for name in wanting]
    return request(pools, [node(cpu=100)], operations, [ask(f"x{n}", n, count) for n, count in wanting.items()])


def test_promised_shares_are_what_guarantees_alone_give() -> None:
    answer = shares(promising())
    fair = {name: p["fair_share"]["cpu"] for name, p in answer["queues"].items()}
    promised = {name: p["promised_guarantee_fair_share"]["cpu"] for name, p in answer["queues"].items()}
    assert fair == pytest.approx({"a": 50, "a-1": 29, "a-2": 19, "a-3": 2, "b": 50})
    assert promised == pytest.approx({"a": 30, "a-1": 19, "a-2": 9, "a-3": 2, "b": 0})
    assert answer["workloads"]["xa-1"]["promised_guarantee_fair_share"]["cpu"] == pytest.approx(19)
    assert answer["alerts"] == []


def test_promised_shares_of_a_pool_that_is_not_the_first_in_a_tree_that_is_too_large_to_look_twice(
    bounded: Bounded,
) -> None:
    """A suggestion of nothing lets a pool take all of its guarantee, where its curve has several vertices at 0."""
    bounded(fair_shares, MOST_EXACT=-1)
    body = promising()
    pools = body["configuration"]["queues"]
    body["configuration"]["queues"] = [pools[-1], *pools[:-1]]
    promised = {n: p["promised_guarantee_fair_share"]["cpu"] for n, p in shares(body)["queues"].items()}
    assert promised == pytest.approx({"a": 30, "a-1": 19, "a-2": 9, "a-3": 2, "b": 0})


def test_the_uppermost_pool_that_asks_for_promised_shares_counts() -> None:
    body = promising()
    body["configuration"]["queues"][2]["ytsaurus"] = {"compute_promised_guarantee_fair_share": True}
    answer = shares(body)
    assert answer["alerts"] == [29001]
    assert answer["queues"]["a-2"]["promised_guarantee_fair_share"]["cpu"] == pytest.approx(9)
    own = effective(body)["queues"]
    assert own["a"]["compute_promised_guarantee_fair_share"] is True
    assert own["a-2"]["compute_promised_guarantee_fair_share"] is False


def test_nobody_is_told_promised_shares_who_did_not_ask() -> None:
    body = promising()
    del body["configuration"]["queues"][0]["ytsaurus"]
    assert "promised_guarantee_fair_share" not in shares(body)["queues"]["a"]


def test_an_estimate_is_the_guarantee_and_by_weight_what_the_pool_has_left() -> None:
    """Of a's 30, a-1 has 10 and 1/4 of the other 20; the operation in a-2 has all of a-2's."""
    body = promising()
    body["configuration"]["queues"][2]["weight"] = 2
    answer = shares(body)
    found = {name: p["estimated_guarantee"]["cpu"] for name, p in answer["queues"].items()}
    assert found == pytest.approx({"a": 30, "a-1": 15, "a-2": 10, "a-3": 5, "b": 30})
    assert answer["workloads"]["xa-2"]["estimated_guarantee"]["cpu"] == pytest.approx(10)


def test_parts_say_where_a_share_comes_from() -> None:
    found = shares(promising())["queues"]["a-1"]["fair_share_parts"]
    assert {kind: part["cpu"] for kind, part in found.items()} == pytest.approx(
        {"strong": 10, "integral": 0, "weight": 19}
    )


def in_tiers(donor: Json, **own: Json) -> Json:
    """Strong guarantees below a donor, cpu and slots; whose name begins with p has priority."""
    donates, priority = ({f"enable_priority_strong_guarantee_adjustment{end}": True} for end in ("_donorship", ""))
    quotas = {"d": donor} | own
    pools = [pool(name, quota={r: {"guaranteed": x} for r, x in quota.items()}) for name, quota in quotas.items()]
    pools[0]["ytsaurus"] = donates
    for one in pools[1:]:
        one.update({"parent": "d"} | ({"ytsaurus": priority} if one["name"].startswith("p") else {}))
    found = shares(request(pools, [node(cpu=100)], []))["queues"]
    return {name: found[name]["strong_guarantee"] for name in own}


def test_where_priority_pools_exceed_their_donor_the_others_keep_nothing() -> None:
    both = {"cpu": 40, "user_slots": 40}
    found = in_tiers({"cpu": 50, "user_slots": 50}, p1=both, p2=both, r={"cpu": 1, "user_slots": 20})
    assert found["p1"] == found["p2"] == pytest.approx({"cpu": 25, "user_slots": 25})
    assert found["r"] == {"cpu": 0, "user_slots": 0}


def test_where_priority_pools_just_fit_the_others_keep_what_they_have_of_the_rest() -> None:
    found = in_tiers({"cpu": 50, "user_slots": 50}, p={"cpu": 50, "user_slots": 20}, r={"cpu": 0, "user_slots": 30})
    assert found["p"] == {"cpu": 50, "user_slots": 20}
    assert found["r"] == {"cpu": 0, "user_slots": 30}


@pytest.mark.parametrize(("given", "weight"), [(1, 9), (0.5, 1)])
def test_a_weight_is_inferred_from_a_guarantee_that_counts_at_all(given: float, weight: float) -> None:
    """From a billionth of the cluster on."""
    pools = [pool("a", quota={"cpu": {"guaranteed": given}})]
    settings = {"infer_weight_from_guarantees_share_multiplier": 9}
    assert shares(request(pools, [node(cpu=10**9)], [], settings=settings))["queues"]["a"]["weight"] == weight
