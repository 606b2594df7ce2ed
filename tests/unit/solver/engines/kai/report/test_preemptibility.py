"""What the minimum runtime protects from an ask, over the whole path from request to answer."""

from typing import Any

import msgspec
import pytest

from app.solver import solve
from app.solver.engines.kai.rule_sets import RULES
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.solver.model.request import PreemptibilityRequest
from app.solver.model.state import State
from app.solver.question import ProtectionQuestion

QUEUES = [
    {"name": "root", "kai": {"preempt_min_runtime": 60}},
    {"name": "a", "parent": "root", "kai": {"reclaim_min_runtime": 600}},
    {"name": "b", "parent": "root"},
]


def tasks(count: int, *states: str) -> list[dict[str, object]]:
    return [
        {"name": f"t{i}", "requests": {"cpu": 1}, "state": states[i] if i < len(states) else "running"}
        for i in range(count)
    ]


def workload(**fields: object) -> dict[str, object]:
    base = {"id": "w", "queue": "a", "started_at": "2026-01-01T00:00:00Z", "min_available": 2, "tasks": tasks(3)}
    return {**base, **fields}


def ask(**fields: object) -> dict[str, object]:
    return {"id": "ask", "queue": "b", "tasks": [{"name": "t", "requests": {"cpu": 1}}], **fields}


def answer(
    *workloads: dict[str, object], now: str = "2026-01-01T00:05:00Z", rules: str = "documented", **fields: object
) -> Any:
    body = {
        "engine": "kai", "now": now, "state": {"workloads": list(workloads)},
        "configuration": {"settings": {"kai": {"rules": rules}}, "queues": QUEUES}, **fields,
    }  # fmt: skip
    request = msgspec.convert(body, PreemptibilityRequest)
    assert isinstance(request.configuration, Configuration)
    assert isinstance(request.state, State)
    assert request.now is not None
    loaded = solve.load(solve.configure(request.configuration, "kai"), request.state)
    question = ProtectionQuestion(micros(request.now), request.asks, request.ask, request.action, request.evict)
    got = solve.preemptibility(loaded, question)
    assert {shown["reason"] for shown in got["workloads"].values()} <= {rule.rule for rule in RULES}
    return got


def evict(*names: str) -> list[dict[str, str]]:
    return [{"workload": "w", "task": name} for name in names]


def test_a_protected_gang_is_no_victim_and_says_until_when() -> None:
    got = answer(workload(min_available=3), ask=ask(), evict=evict("t0"))
    shown = got["workloads"]["w"]
    assert (shown["preemptible"], shown["reason"], shown["action"]) == (False, "MinRuntimeNotPassed", "reclaim")
    assert (shown["min_runtime"], shown["min_runtime_set_by"]) == (600, "a")
    assert shown["protected_until"] == "2026-01-01T00:10:00Z"
    assert got["evict_allowed"] is False


def test_an_elastic_workload_may_shrink_to_its_gang_and_no_further() -> None:
    assert answer(workload(), ask=ask(), evict=evict("t0"))["evict_allowed"] is True
    got = answer(workload(), ask=ask(), evict=evict("t0", "t1"))
    assert got["evict_allowed"] is False
    assert got["workloads"]["w"]["reason"] == "ElasticProtected"
    assert got["workloads"]["w"]["may_lose"] == 1
    assert answer(workload(), ask=ask(), evict=[{"workload": "w"}])["evict_allowed"] is False


def test_pods_being_released_keep_a_gang_alive_in_released_code_only() -> None:
    shrunk = workload(tasks=tasks(3, "releasing"))
    assert answer(shrunk, ask=ask(), evict=evict("t1"), rules="shipped")["evict_allowed"] is True
    assert answer(shrunk, ask=ask(), evict=evict("t1"), rules="documented")["evict_allowed"] is False


def test_a_listed_pod_that_does_not_run_is_lost_in_released_code_only() -> None:
    """Three of four run, or four as released code counts, and two are the gang."""
    leaving = workload(tasks=tasks(4, "running", "running", "running", "releasing"))
    for rules, listed, allowed in [
        ("documented", ("t0", "t3"), True), ("documented", ("t0", "t1"), False),
        ("shipped", ("t0", "t3"), True), ("shipped", ("t0", "t1", "t3"), False),
    ]:  # fmt: skip
        assert answer(leaving, rules=rules, ask=ask(), evict=evict(*listed))["evict_allowed"] is allowed, listed
    pending = ask(id="more", workload="w", queue="a", tasks=[{"name": "t9", "requests": {"cpu": 1}}])
    for rules, allowed in (("documented", True), ("shipped", False)):
        got = answer(workload(), rules=rules, asks=[pending], ask=ask(), evict=evict("t0", "t9"))
        assert got["evict_allowed"] is allowed, rules


def test_pending_pods_make_a_workload_elastic() -> None:
    gang = workload(min_available=3)
    grows = ask(id="more", queue="a", workload="w")
    assert answer(gang, ask=ask(), asks=[grows])["workloads"]["w"]["elastic"] is True
    assert answer(gang, ask=grows)["workloads"]["w"]["elastic"] is True
    assert answer(gang, ask=ask())["workloads"]["w"]["elastic"] is False


def test_after_the_minimum_runtime_everything_may_go() -> None:
    got = answer(workload(), ask=ask(), now="2026-01-01T00:10:01Z", evict=[{"workload": "w"}])
    assert got["evict_allowed"] is True
    assert got["workloads"]["w"]["reason"] == "MinRuntimePassed"
    assert got["workloads"]["w"]["may_lose"] == 3


def test_the_same_queue_means_preempt_and_the_action_may_be_named() -> None:
    assert answer(workload(), ask=ask(queue="a"))["workloads"]["w"]["min_runtime"] == 60
    assert answer(workload(), ask=ask(queue="a"), action="reclaim")["workloads"]["w"]["min_runtime"] == 600
    assert answer(workload(), action="preempt")["workloads"]["w"]["min_runtime_set_by"] == "root"
    assert answer(workload())["workloads"]["w"]["action"] == "reclaim"


def test_an_unknown_start_protects_nothing() -> None:
    got = answer(workload(started_at=None, min_available=3), ask=ask(), evict=[{"workload": "w"}])
    assert got["workloads"]["w"]["reason"] == "StartUnknown"
    assert got["workloads"]["w"]["protected_until"] is None
    assert got["evict_allowed"] is True


def test_a_start_in_the_far_future_is_no_error() -> None:
    got = answer(workload(started_at="9999-12-31T23:59:59Z"), ask=ask())
    assert got["workloads"]["w"]["protected"] is True
    assert got["workloads"]["w"]["protected_until"] is None


def test_evictions_of_what_is_not_there_are_named() -> None:
    wrong = [{"workload": "ghost"}, {"workload": "w", "task": "t9"}, {"workload": "ask"}]
    with pytest.raises(InvalidInput) as caught:
        answer(workload(), ask=ask(), evict=wrong)
    assert [p.pointer for p in caught.value.problems] == ["/evict/0/workload", "/evict/1/task", "/evict/2/workload"]
