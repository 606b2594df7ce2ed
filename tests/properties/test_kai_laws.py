"""Laws of KAI's actions on random clusters: protection, priority, fairness, gangs, nodes, determinism."""

import json
from collections import Counter
from random import Random
from typing import Any, cast

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.model.request import SharesRequest
from app.solver.model.state import State
from tests.support.kai_world import ALL_ACTIONS, Json, Outcome, Shape, cluster, decide
from tests.support.profiles import Met, examples

FAST = examples(120)
ACTIONS = st.sampled_from(
    [
        ALL_ACTIONS, ["reclaim"], ["preempt"], ["allocate", "reclaim", "preempt"], ["preempt", "reclaim"],
        ["reclaim", "consolidation", "preempt"],
    ]
)  # fmt: skip
SEEDS = st.integers(0, 2**32)


@st.composite
def shapes(draw: st.DrawFn, rules: tuple[str, ...] = ("documented", "shipped"), **fixed: Any) -> Shape:
    drawn: dict[str, Any] = {
        "queues": draw(st.integers(2, 12)), "nodes": draw(st.integers(1, 6)), "workloads": draw(st.integers(1, 14)),
        "asks": draw(st.integers(1, 8)), "shares_of_gpus": draw(st.booleans()), "constraints": draw(st.booleans()),
        "actions": draw(ACTIONS), "rules": draw(st.sampled_from(rules)),
    }  # fmt: skip
    return Shape(**(drawn | fixed))


@FAST
@given(SEEDS, shapes(rules=("documented",)))
def test_nobody_protected_is_evicted(met: Met, seed: int, shape: Shape) -> None:
    outcome = Outcome(cluster(seed, shape))
    for (workload, _), eviction in met(outcome.evicted.items()):
        victim, asks = outcome.workloads[workload], outcome.may_have_asked(eviction)
        if eviction["reason"] != "consolidation" and not outcome.elastic(victim):
            assert not all(outcome.protected(victim, eviction["reason"], ask["queue"]) for ask in asks)


@FAST
@given(SEEDS, shapes(rules=("documented",), actions=["reclaim", "preempt"]))
def test_elastic_workloads_keep_their_gang_while_protected(met: Met, seed: int, shape: Shape) -> None:
    outcome = Outcome(cluster(seed, shape))
    for workload in met(outcome.workloads.values()):
        taken = [e for (owner, _), e in outcome.evicted.items() if owner == workload["id"]]
        guarded = [
            outcome.protected(workload, e["reason"], ask["queue"]) for e in taken for ask in outcome.may_have_asked(e)
        ]
        if taken and all(guarded):
            assert len(outcome.running(workload)) >= workload["min_available"]


@FAST
@given(SEEDS, shapes())
def test_only_preemptible_pods_of_the_right_queues_and_priorities_are_taken(met: Met, seed: int, shape: Shape) -> None:
    outcome = Outcome(cluster(seed, shape))
    for (workload, _), eviction in met(outcome.evicted.items()):
        victim = outcome.workloads[workload]
        assert victim["preemptible"]
        asks = outcome.may_have_asked(eviction)
        if eviction["reason"] == "preempt":
            assert any(victim["queue"] == ask["queue"] and victim["priority"] < ask["priority"] for ask in asks)
        if eviction["reason"] == "reclaim":
            assert any(victim["queue"] != ask["queue"] for ask in asks)
        if eviction["reason"] == "consolidation":
            assert any(ask["preemptible"] for ask in asks)


@FAST
@given(SEEDS, shapes(rules=("documented",), actions=["consolidation"]))
def test_whom_consolidation_moves_has_another_place(seed: int, shape: Shape) -> None:
    outcome = Outcome(cluster(seed, shape))
    assert outcome.evicted.keys() == outcome.moved.keys()


def _taken_back(body: Json) -> list[str]:
    """Asks that lost a place in the cycle that gave it."""
    return [d["ask"] for d in decide(body)["decisions"] if any(c["reason"] == "PlaceTaken" for c in d["conditions"])]


@examples(200, FAST)
@given(SEEDS, shapes(rules=("documented",), actions=["allocate", "consolidation", "reclaim", "preempt"]))
def test_no_place_is_taken_back_in_the_cycle_that_gave_it(seed: int, shape: Shape) -> None:
    assert not _taken_back(cluster(seed, shape))


def test_the_released_scheduler_takes_places_back() -> None:
    shape = Shape(queues=6, nodes=2, workloads=6, asks=8, rules="shipped", actions=["allocate", "reclaim", "preempt"])
    assert any(_taken_back(cluster(seed, shape)) for seed in range(300))


@examples(150, FAST)
@given(SEEDS, shapes(rules=("documented",), release="0.17", shares_of_gpus=False))
def test_no_order_of_a_map_or_of_a_document_decides(seed: int, shape: Shape) -> None:
    """Not even the order in which the request lists nodes, queues, workloads and asks."""
    body, random = cluster(seed, shape), Random(seed)
    plan = decide(body)["plan"]
    assert plan.get("chance") is None
    for lists, name in ((body["state"], "nodes"), (body["state"], "workloads"), (body, "asks")):
        random.shuffle(lists[name])
    random.shuffle(body["configuration"]["queues"])
    again = decide(body)["plan"]
    for part in ("evictions", "placements"):
        assert sorted(map(json.dumps, plan[part])) == sorted(map(json.dumps, again[part]))


def test_the_released_scheduler_leaves_something_to_chance() -> None:
    shape = Shape(queues=4, nodes=3, workloads=14, asks=6, rules="shipped", release="0.17")
    assert any(decide(cluster(seed, shape))["plan"].get("chance") for seed in range(200))


def _forgets(body: Json) -> bool:
    return "statement-forgotten" in json.dumps(decide(body | {"explain": "full"})["decisions"])


def _with_spare_members(body: Json) -> Json:
    """Every ask that belongs to nothing that runs is a gang of two sub groups, of which it needs one."""
    for ask in body["asks"]:
        if "workload" not in ask and len(ask["tasks"]) > 1:
            ask.pop("min_available", None)
            ask["sub_groups"] = [{"name": name, "min_available": 1} for name in "ab"]
            ask["min_sub_group"] = 1
            for i, task in enumerate(ask["tasks"]):
                task["sub_group"] = "ab"[i % 2]
    return body


@examples(150, FAST)
@given(SEEDS, shapes(rules=("documented",), release="0.17", shares_of_gpus=False))
def test_no_statement_is_forgotten(seed: int, shape: Shape) -> None:
    assert not _forgets(_with_spare_members(cluster(seed, shape)))


def test_the_released_scheduler_forgets_statements() -> None:
    shape = Shape(queues=3, nodes=2, workloads=10, asks=4, rules="shipped", release="0.17", actions=["preempt"])
    assert any(_forgets(_with_spare_members(cluster(seed, shape))) for seed in range(300))


@examples(400, FAST)
@given(SEEDS)
def test_reclaim_keeps_to_fair_shares(met: Met, seed: int) -> None:
    """With one ask, what queues hold before it is what the state says."""
    random = Random(seed)
    sizes: dict[str, Any] = {
        "queues": random.randint(2, 12),
        "nodes": random.randint(1, 6),
        "workloads": random.randint(1, 14),
    }
    body = cluster(seed, Shape(asks=1, actions=["reclaim"], rules=random.choice(["documented", "shipped"]), **sizes))
    body["asks"] = body["asks"][:1]
    outcome = Outcome(body)
    gone = [e for key, e in outcome.evicted.items() if key not in outcome.moved]
    if not met(gone):
        return
    shares, (ask,) = shares_of(body), body["asks"]
    own = shares[ask["queue"]]
    for resource, amount in outcome.asked(ask).items():
        assert own["usage"][resource] + amount <= own["fair_share"][resource]
    for eviction in gone:
        ours, theirs = outcome.path(ask["queue"])[::-1], outcome.path(eviction["queue"])[::-1]
        common = sum(a == b for a, b in zip(ours, theirs, strict=False))
        queue = shares[theirs[min(common, len(theirs) - 1)]]
        assert any(
            more_than(used, queue["allocatable_share"][resource]) or more_than(used, queue["deserved"][resource])
            for resource, used in queue["usage"].items()
        )


def more_than(used: float, bound: float | str) -> bool:
    return bound != "unlimited" and used > float(bound)


def shares_of(body: Json) -> Json:
    asked = {"configuration": body["configuration"], "state": body["state"], "asks": body["asks"]}
    request = msgspec.convert(asked, SharesRequest)
    assert isinstance(request.configuration, Configuration)
    assert isinstance(request.state, State)
    assert isinstance(request.asks, list)
    return solve.shares(solve.load(solve.configure(request.configuration, "kai"), request.state), request.asks, 0)[
        "queues"
    ]


@FAST
@given(SEEDS, shapes())
def test_gangs_are_placed_whole_or_not_at_all(met: Met, seed: int, shape: Shape) -> None:
    outcome = Outcome(cluster(seed, shape))
    placed = Counter(workload for workload, _ in outcome.placed)
    for name, count in met((name, placed[name]) for name in outcome.asks if placed[name]):
        before = len(outcome.running(outcome.workloads[name])) if name in outcome.workloads else 0
        moved = sum(key[0] == name for key in outcome.moved)
        assert count + before + moved >= outcome.asks[name]["min_available"]


@examples(250, FAST)
@given(SEEDS, shapes())
def test_nothing_placed_exceeds_a_node(met: Met, seed: int, shape: Shape) -> None:
    outcome = Outcome(cluster(seed, shape))
    capacity = {node["name"]: node["capacity"] for node in outcome.body["state"]["nodes"]}
    for later in (False, True):
        for node, use in outcome.node_use(later=later).items():
            for resource, amount in met(use.items()):
                assert amount <= capacity[node][resource] + 1e-9, (node, resource, "later" if later else "now")


@FAST
@given(SEEDS, shapes())
def test_pods_that_some_nodes_count_bind_there_and_nowhere_else(seed: int, shape: Shape) -> None:
    body, random = cluster(seed, shape), Random(seed)
    plain = decide(body)
    counted = [node for node in body["state"]["nodes"] if random.random() < 0.5]
    for node in counted:
        node["capacity"]["pods"] = 1000
    roomy = decide(body)
    assert (roomy["decisions"], roomy["plan"]) == (plain["decisions"], plain["plan"])
    for node in counted:
        node["capacity"]["pods"] = random.randint(0, 6)
    outcome = Outcome(body)
    for node in counted:
        stay = sum(task["node"] == node["name"] for w in outcome.workloads.values() for task in outcome.running(w))
        come = sum(placement["node"] == node["name"] for placement in outcome.plan["placements"])
        assert not come or stay + come <= node["capacity"]["pods"]


@examples(500, FAST)
@given(SEEDS, shapes())
def test_the_plan_and_the_decisions_say_the_same(seed: int, shape: Shape) -> None:
    outcome = Outcome(cluster(seed, shape))
    running = {(w["id"], t["name"]) for w in outcome.workloads.values() for t in w["tasks"] if t["state"] == "running"}
    assert outcome.evicted.keys() <= running
    assert outcome.moved.keys() <= outcome.evicted.keys()
    assert len(outcome.plan["evictions"]) == len(outcome.evicted) + len(outcome.taken_back)
    asked = {(a.get("workload") or a["id"], t["name"]) for a in outcome.asks.values() for t in a["tasks"]}
    assert outcome.taken_back <= (set() if shape.rules == "documented" else asked)
    for decision in outcome.answer["decisions"]:
        ask = decision["ask"]
        placed = {task: p["node"] for (owner, task), p in outcome.placed.items() if owner == ask}
        assert decision.get("placements", {}) == placed
        victims = {(v["workload"], v["task"]) for v in decision["victims"]}
        assert victims == {key for key, e in outcome.evicted.items() if e["for_ask"] == ask}
        starting = [p for (owner, _), p in outcome.placed.items() if owner == ask and not p["pipelined"]]
        if victims:
            assert (decision["outcome"], bool(placed)) == ("preempt", True), "nobody goes for an ask that gets nothing"
        else:
            assert decision["outcome"] == "admit" if starting else decision["outcome"] in ("wait", "infeasible")
        assert not decision.get("starts") or starting
        if starting:
            (condition,) = decision["conditions"]
            assert condition["message"].startswith(f"{len(starting)} of {len(outcome.asks[ask]['tasks'])} pods start")


@FAST
@given(SEEDS, shapes())
def test_the_order_of_keys_changes_nothing(seed: int, shape: Shape) -> None:
    body = cluster(seed, shape) | {"explain": "full"}
    assert decide(shuffled(body, Random(seed))) == decide(body)


def shuffled(value: Any, random: Random) -> Any:
    if isinstance(value, list):
        return [shuffled(item, random) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        pairs = list(cast("Json", value).items())
        random.shuffle(pairs)
        return {key: shuffled(item, random) for key, item in pairs}
    return value


@FAST
@given(SEEDS, shapes(asks=1, mode="independent"))
def test_an_ask_alone_is_decided_as_a_cycle_of_its_own(seed: int, shape: Shape) -> None:
    body = cluster(seed, shape)
    body["asks"] = body["asks"][:1]
    alone, cycle = decide(body), decide(body | {"mode": "cycle"})
    assert [decision.pop("plan") for decision in alone["decisions"]] == [cycle["plan"]]
    assert alone["decisions"] == cycle["decisions"]
    assert alone["plan"] == cycle["plan"]


@FAST
@given(SEEDS, shapes())
def test_an_explanation_changes_no_decision(seed: int, shape: Shape) -> None:
    body = cluster(seed, shape)
    plain, explained = decide(body), decide(body | {"explain": "full"})
    for decision in explained["decisions"]:
        assert decision.pop("explanation")
    assert json.dumps(plain["decisions"]) == json.dumps(explained["decisions"])
    assert plain["plan"] == explained["plan"]
