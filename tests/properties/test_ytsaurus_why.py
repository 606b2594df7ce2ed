"""What an explanation says is true of the answer that it comes with, and every rule stands in the catalogue."""

import random
from collections import Counter
from typing import Any

import pytest

from app.solver.engines.ytsaurus.engine import RULES
from tests.properties.ytsaurus_trees import heartbeat
from tests.support.profiles import Met, share
from tests.unit.solver.engines.ytsaurus.cluster import decide, node, operation, pool, request

Json = dict[str, Any]
MANY, FEW = 400, 120
"""Clusters that every law is held against, and those where it takes a second answer."""
KNOWN = {rule.rule for rule in RULES}


def cluster(seed: int) -> Json:
    """Heartbeats in which stages meet everything that protects, and pools and nodes that use more than they may."""
    rng, body = random.Random(seed), heartbeat(seed)
    ours = body["configuration"]["settings"]["ytsaurus"]
    ours["aggressive_preemption_satisfaction_threshold"] = rng.choice((0.2, 0.8))
    ours["preemptive_scheduling_backoff"] = rng.choice((0, 0, 0, 5))
    if rng.random() < 0.2:
        ours["allow_preemption_from_starving_operations"] = True
    if rng.random() < 0.1:
        ours["min_spare_allocation_resources"] = {"cpu": 2}
    for one in body["configuration"]["queues"]:
        if rng.random() < 0.2:
            block = one.setdefault("ytsaurus", {})
            block[rng.choice(("allow_aggressive_preemption", "allow_normal_preemption"))] = False
        if rng.random() < 0.2:
            one.setdefault("quota", {}).setdefault("cpu", {})["limit"] = rng.choice((0.1, 3, 5))
    for one in body["state"]["workloads"]:
        one["ytsaurus"]["suspended"] = rng.random() < 0.1
    for one in body["asks"]:
        one["tasks"][0]["count"] = rng.choice((0, 1, 3, 30))
        if rng.random() < 0.2:
            one["feasible_nodes"] = rng.sample([n["name"] for n in body["state"]["nodes"]], rng.randint(0, 1))
    for one in body["state"]["nodes"]:
        if rng.random() < 0.3:
            one["capacity"]["cpu"] = max(0, one["capacity"]["cpu"] - 3)
        if rng.random() < 0.3:
            one["ytsaurus"] = {"last_preemptive_scheduling_at": "2026-01-01T11:59:58Z"}
    if rng.random() < 0.6:
        body["options"] = {"ytsaurus": {"heartbeat_node": body["state"]["nodes"][0]["name"]}}
    return body | {"mode": rng.choice(("cycle", "cycle", "independent"))}


def explained(body: Json, level: str = "full") -> Json:
    return decide(body, None, explain=level) if "options" not in body else decide(body, **_one(body), explain=level)


def _one(body: Json) -> Json:
    return {"node": body["options"]["ytsaurus"]["heartbeat_node"]}


@pytest.fixture(scope="module")
def answers() -> list[Json]:
    """By seed. Laws only read them."""
    return [explained(cluster(seed)) for seed in range(share(MANY))]


def test_the_victims_shown_are_those_of_the_answer(met: Met, answers: list[Json]) -> None:
    for decision in (decision for answer in answers for decision in answer["decisions"]):
        candidates = decision["explanation"].get("candidates", [])
        names = [(c["workload"], c["task"]) for c in candidates]
        assert len(names) == len(set(names))
        shown = {(c["workload"], c["task"]): c["rule"] for c in candidates if c["verdict"] == "victim"}
        assert shown == {(v["workload"], v["task"]): v["reason"] for v in met(decision["victims"])}


def test_what_goes_for_others_is_said_to(answers: list[Json]) -> None:
    for answer in answers:
        if "order" in answer:  # in mode independent every ask has a plan of its own
            _is_said_to_go_for_others(answer)


def _is_said_to_go_for_others(answer: Json) -> None:
    evictions = {(e["workload"], e["task"]): e for e in answer["plan"]["evictions"]}
    for decision in answer["decisions"]:
        for c in decision["explanation"].get("candidates", []):
            eviction = evictions.get((c["workload"], c["task"]))
            if c["rule"] == "goes-for-another":
                assert eviction is not None
                assert eviction["for_ask"] not in (None, decision["ask"])
            elif c["rule"] in ("overcommitted", "resource_limits_violated"):
                assert eviction is not None
                assert eviction.get("for_ask") is None


def test_groups_are_the_candidates_counted(met: Met, answers: list[Json]) -> None:
    for seed, full in enumerate(answers[:FEW]):
        summary = explained(cluster(seed), "summary")
        for one, other in zip(full["decisions"], summary["decisions"], strict=True):
            candidates, groups = one["explanation"].get("candidates", []), other["explanation"].get("groups", [])
            counted = Counter((c["verdict"], c["rule"]) for c in met(candidates))
            assert counted == {(g["verdict"], g["rule"]): g["count"] for g in groups}


def test_who_waits_is_told_what_stands_in_the_way(answers: list[Json]) -> None:
    for answer in answers:
        _is_told_what_stands_in_the_way(answer)


def _is_told_what_stands_in_the_way(answer: Json) -> None:
    preemptive = [p for p in answer["plan"]["placements"] if p["stage"] != "regular"]
    for decision in answer["decisions"]:
        blocker = decision["explanation"].get("blocker")
        assert (decision["outcome"] in ("wait", "infeasible")) == (blocker is not None)
        assert decision["ask"] in decision["explanation"]["headline"]
        rules = {c["rule"] for c in decision["explanation"].get("candidates", [])}
        if blocker == "AnotherTookThePreemption":
            assert any(p["ask"] != decision["ask"] for p in preemptive)
        if blocker == "NotStarving":
            assert not rules & {"node-fits", "another-started", "not-enough"}


def rules_of(answer: Json) -> set[str]:
    found: set[str] = set()
    for decision in answer["decisions"]:
        explanation = decision["explanation"]
        found |= {step["rule"] for step in explanation["steps"]}
        found |= {candidate["rule"] for candidate in explanation.get("candidates", [])}
        found |= {explanation["blocker"]} if "blocker" in explanation else set()
    return found


@pytest.mark.slow
def test_the_catalogue_is_what_is_said_and_nothing_else(answers: list[Json]) -> None:
    found: set[str] = set()
    for answer in answers:
        found |= rules_of(answer)
    many = [node(f"n{i}", 1) for i in range(600)]
    asks = [{"id": f"a{i}", "queue": "a", "tasks": [{"name": "t", "requests": {"cpu": 2}}]} for i in range(2)]
    found |= rules_of(decide(request([pool("a")], many, [operation("x", "a")], asks), None, explain="full"))
    assert found <= KNOWN
    assert KNOWN - found <= {"steps-dropped"}
