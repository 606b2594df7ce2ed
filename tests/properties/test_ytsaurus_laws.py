"""Laws of YTsaurus' fair share, groups and heartbeats on random pool trees."""

import copy
import random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from app.solver import solve
from app.solver.engines.ytsaurus.answer import after_shares
from app.solver.engines.ytsaurus.fair_shares import FairShares, blocked, fair_shares
from app.solver.engines.ytsaurus.preparation import Bounds, bounds, groups
from app.solver.engines.ytsaurus.situation import Situation, situate
from app.solver.model.configuration import Configuration
from app.solver.model.request import SharesRequest
from tests.properties.ytsaurus_trees import heartbeat, tree
from tests.support.profiles import Met, examples
from tests.unit.solver.engines.ytsaurus.cluster import (
    alloc,
    ask,
    decide,
    node,
    operation,
    pool,
    preemptibility,
    request,
    shares,
)

Json = dict[str, Any]
LAWS = examples(100, suppress_health_check=list(HealthCheck))
FEW = examples(30, LAWS)
SEEDS = st.integers(0, 2**32)


def situation(body: Json) -> tuple[Situation, FairShares]:
    asked = msgspec.convert(body, SharesRequest)
    assert isinstance(asked.configuration, Configuration)
    loaded = solve.load(solve.configure(asked.configuration, asked.engine), asked.state)
    found = situate(loaded.compiled, asked.asks)
    return found, fair_shares(found)


@LAWS
@given(SEEDS, st.integers(1, 3))
def test_fair_shares_exceed_neither_demand_nor_limits_nor_the_cluster(seed: int, depth: int) -> None:
    found, given_ = situation(tree(random.Random(seed), depth=depth))
    assert (given_.fair <= given_.demand + 1e-9).all()
    assert (given_.fair <= given_.limits + 1e-9).all()
    assert (given_.pool_fair <= given_.pool_demand + 1e-9).all()
    assert (given_.pool_fair <= given_.pool_limits + 1e-9).all()
    assert (given_.pool_fair[found.root] <= 1 + 1e-9).all()


@LAWS
@given(SEEDS, st.integers(1, 3))
def test_a_pool_has_what_its_children_have(seed: int, depth: int) -> None:
    found, given_ = situation(tree(random.Random(seed), depth=depth))
    total = np.zeros_like(given_.pool_fair)
    np.add.at(total, found.operation_parent, given_.fair)
    np.add.at(total, found.parent[: found.root], given_.pool_fair[: found.root])
    assert total == pytest.approx(given_.pool_fair, abs=1e-9)


@LAWS
@given(SEEDS, st.sampled_from([1.1, 2.0, 7.0]))
def test_a_share_does_not_fall_when_its_weight_rises(seed: int, factor: float) -> None:
    rng = random.Random(seed)
    body = tree(rng, depth=2)
    heavier = copy.deepcopy(body)
    i = rng.randrange(len(heavier["state"]["workloads"]))
    heavier["state"]["workloads"][i]["weight"] *= factor
    _, before = situation(body)
    _, after = situation(heavier)
    assert (after.fair[i] >= before.fair[i] - 1e-9).all()


@LAWS
@given(SEEDS, st.floats(0, 1), st.floats(0, 1))
def test_an_allocation_is_not_less_protected_when_the_fair_share_grows(seed: int, low: float, high: float) -> None:
    low, high = sorted((low, high))
    body = tree(random.Random(seed), allocations=True)
    found, given_ = situation(body)
    assume(len(found.cluster.allocations))
    rows = np.arange(len(found.cluster.allocations))

    def grouped(part: float) -> Any:
        fair = given_.demand * part
        own = bounds(found, FairShares(**_replaced(given_, fair=fair)))
        return groups(found, Bounds(own.lower, own.upper, blocked(fair, given_.demand)), rows)

    assert (grouped(high) <= grouped(low)).all()


def test_why_that_law_speaks_of_growth_in_every_resource() -> None:
    """Exactly on the bound in all resources an allocation stays; growth in one of them alone takes that away."""
    tasks = [alloc("t0", 0), alloc("t1", 1)]
    body = request([pool("a")], [node(cpu=10)], [operation("x", "a", tasks)], [ask("x", "a", 8)])
    body["configuration"]["settings"]["ytsaurus"] = {"rules": "documented"}
    found, given_ = situation(body)
    rows = np.arange(2)

    def last(slots: float, cpu: float) -> int:
        bound = np.array([[slots, cpu]])
        return int(groups(found, Bounds(bound * 0, bound, blocked(bound, given_.demand)), rows)[1])

    on_bound, more_cpu, more_of_both = last(0.02, 0.2), last(0.02, 0.3), last(0.03, 0.3)
    assert (on_bound, more_cpu, more_of_both) == (1, 2, 1)


def _replaced(of: FairShares, **changes: Any) -> dict[str, Any]:
    return {name: getattr(of, name) for name in of.__slots__} | changes


@LAWS
@given(SEEDS)
def test_a_heartbeat_starts_what_is_free_first_and_preempts_for_one_allocation_at_most(met: Met, seed: int) -> None:
    body = heartbeat(seed)
    for one in body["state"]["nodes"]:
        stages = met(p["stage"] for p in decide(body, one["name"])["plan"]["placements"])
        preemptive = [stage for stage in stages if stage != "regular"]
        assert len(preemptive) <= 1
        assert stages == ["regular"] * (len(stages) - len(preemptive)) + preemptive


@pytest.mark.slow
def test_the_first_preemptive_stage_that_can_start_something_does() -> None:
    """Where the second stage started something the first could not, so it can't without those of the second either."""
    seen = {"documented": 0, "shipped": 0}
    for seed in range(400):
        body = heartbeat(seed)
        ours = body["configuration"]["settings"]["ytsaurus"]
        ours["scheduling_preemption_priority_scope"] = "operation_only"
        name = body["state"]["nodes"][0]["name"]
        rules, second = ours["rules"], "preemptive_aggressive" if ours["rules"] == "documented" else "preemptive_normal"
        if not any(p["stage"] == second for p in decide(body, name)["plan"]["placements"]):
            continue
        seen[rules] += 1
        alone = copy.deepcopy(body)
        for running in alone["state"]["workloads"]:
            if rules == "documented" and running["ytsaurus"]["starvation"] == "aggressively_starving":
                running["ytsaurus"]["starvation"] = "starving"  # the first stage serves it all the same
            elif rules == "shipped" and running["ytsaurus"]["starvation"] == "starving":
                for one in alone["asks"]:
                    if one["workload"] == running["id"]:
                        one["feasible_nodes"] = []
        again = [p["stage"] for p in decide(alone, name)["plan"]["placements"]]
        assert not any(stage != "regular" for stage in again), seed
    assert min(seen.values()) >= 3, seen


@LAWS
@given(SEEDS)
def test_non_preemptible_allocations_stay_except_for_long_overcommit(met: Met, seed: int) -> None:
    body = heartbeat(seed)
    name = body["state"]["nodes"][0]["name"]
    told = preemptibility(body)["workloads"]
    for eviction in met(decide(body, name)["plan"]["evictions"]):
        level = told[eviction["workload"]]["tasks"][eviction["task"]]["level"]
        assert level != "non_preemptible" or eviction["reason"] == "resource_overcommit"


@FEW
@given(SEEDS)
def test_victims_are_the_shortest_prefix(met: Met, seed: int) -> None:
    body = heartbeat(seed)
    for one in body["state"]["nodes"]:
        answer = decide(body, one["name"])
        free = dict(one["capacity"])
        for w in body["state"]["workloads"]:
            for a in w["tasks"]:
                if a["node"] == one["name"]:
                    for r, value in a["requests"].items():
                        free[r] -= value
        needs = {a["id"]: a["tasks"][0]["requests"] for a in body["asks"]}
        for p in answer["plan"]["placements"]:
            for r, value in needs[p["ask"]].items():
                free[r] -= value
        for decision in answer["decisions"]:
            victims = decision["victims"]
            for i, victim in enumerate(met(victims)):
                assert any(value < 0 for value in free.values()), (one["name"], i)
                for r, value in victim["freed"].items():
                    free[r] += value
        assert answer == decide(body, one["name"])


@FEW
@given(SEEDS)
def test_an_independent_ask_is_answered_as_if_it_were_alone(met: Met, seed: int) -> None:
    body = heartbeat(seed)
    together = decide(body, None, mode="independent")["decisions"]
    for one, decision in met(zip(body["asks"], together, strict=True)):
        assert decide(body | {"asks": [one]}, None, mode="independent")["decisions"] == [decision]


@LAWS
@given(SEEDS)
def test_nodes_that_are_passed_over_would_have_done_nothing(seed: int) -> None:
    """An explanation has every heartbeat processed; without one the quiet nodes are passed over."""
    rng = random.Random(seed)
    body = heartbeat(seed)
    ours = body["configuration"]["settings"]["ytsaurus"]
    ours["preemptive_scheduling_backoff"] = rng.choice((0, 5))
    for one in body["configuration"]["queues"]:
        if rng.random() < 0.3:
            one.setdefault("ytsaurus", {})["resource_limits_overcommit_tolerance"] = {"cpu": rng.randint(1, 9)}
    for i in range(rng.randint(1, 4)):
        empty = {"capacity": {"user_slots": 9, "cpu": rng.randint(0, 2), "memory": rng.randint(0, 9)}}
        body["state"]["nodes"].insert(rng.randint(0, 2), {"name": f"e{i}"} | empty)
    for one in body["state"]["nodes"]:
        if rng.random() < 0.4:
            one["ytsaurus"] = {"last_preemptive_scheduling_at": "2026-01-01T11:59:58Z"}
    told = decide(body, None, explain="full")
    for decision in told["decisions"]:
        del decision["explanation"]
    assert decide(body, None) == told


@FEW
@given(SEEDS)
def test_starvation_settles_when_nothing_changes(seed: int) -> None:
    body = tree(random.Random(seed), depth=2)
    for hour in (12, 13, 14, 15):
        body |= {"now": f"2026-01-01T{hour}:00:00Z"}
        answer = shares(body)
        settled = body["state"]
        body = body | {"state": after_shares(body["state"], answer)}
    assert body["state"] == settled
