"""kube-scheduler's proposals on a snapshot: which nodes stay, by pods or by UIDs, and the decision that is logged."""

import json
import time
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.answering.operations import Answerer, Inquiry, Operation, Reply, guard
from app.answering.snapshot_store import SnapshotStore
from app.answering.sources import Compiled, Known, Sources
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput, Unsupported
from app.solver.model.state import Ask, State
from app.solver.solve import Beside

Json = dict[str, Any]
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
KAI: Json = {
    "engine": "kai",
    "queues": [
        {"name": "top", "quota": {"cpu": {"guaranteed": 8}}},
        {"name": "a", "parent": "top", "quota": {"cpu": {"guaranteed": 4}}, "kai": {"reclaim_min_runtime": "10m"}},
        {"name": "b", "parent": "top", "quota": {"cpu": {"guaranteed": 4}}},
    ],
}


def running(name: str, started: str) -> Json:
    task = {"name": f"{name}-0", "uid": f"uid-{name}", "node": "n1", "requests": {"cpu": 2}}
    return {"id": f"ml/{name}", "queue": "a", "started_at": started, "min_available": 1, "tasks": [task]}


STATE = {
    "nodes": [{"name": "n1", "capacity": {"cpu": 8}}],
    "workloads": [running("old", "2026-01-01T00:00:00Z"), running("young", "2026-11-22T11:55:00Z")],
}


class Stored:
    """One configuration for each engine, by the engine's name."""

    def head(self, reference: str) -> tuple[str, int]:
        return reference, 3

    def document(self, name: str, revision: int) -> bytes:
        assert revision == 3
        return json.dumps(KAI if name == "kai" else {"engine": name}).encode()


def pod(name: str, group: str | None = None, *, priority: int = 9) -> Json:
    metadata = {
        "name": name, "namespace": "ml", "uid": f"uid-{name.removesuffix('-0')}",
        "annotations": {} if group is None else {"pod-group-name": group}, "labels": {"kai.scheduler/queue": "b"},
    }  # fmt: skip
    containers = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
    return {"metadata": metadata, "spec": {"priority": priority, "containers": containers}}


ASKING = pod("serve", "serve")


def answerer(*asks: Json) -> Answerer:
    store = SnapshotStore(budget=1 << 30, idle=100, clock=time.monotonic)
    made = Answerer(Compiled(Stored()), store)
    configured = Sources(Compiled(Stored()), store).configurations.named("kai", None)
    beside = Beside(msgspec.convert(list(asks), list[Ask]), None)
    store.put("live", configured, msgspec.convert(STATE, State), 10, beside=beside)
    return made


def replied(body: Json, engine: str = "kai", known: Known | None = None, *asks: Json) -> Reply:
    asked = Inquiry(Operation.PREEMPTION, NOON, "live", known=known, configuration=engine)
    return answerer(*asks).run(asked, json.dumps(body).encode())


def stays(reply: Reply) -> Json:
    return json.loads(reply.body)["NodeNameToMetaVictims"]


OLD, YOUNG = pod("old-0", "old"), pod("young-0", "young")
BY_POD: Json = {
    "Pod": ASKING,
    "NodeNameToVictims": {
        "n1": {"Pods": [OLD, OLD], "NumPDBViolations": 1}, "n2": {"Pods": [YOUNG]}, "n3": {"Pods": []},
        "n4": {"Pods": None},
    },
}  # fmt: skip
BY_UID: Json = {
    "Pod": ASKING,
    "NodeNameToMetaVictims": {
        "n1": {"Pods": [{"UID": "uid-old"}], "NumPDBViolations": 2}, "n2": {"Pods": [{"UID": "uid-ghost"}]},
        "n3": {"Pods": [{"UID": "uid-young"}]},
    },
}  # fmt: skip


def test_nodes_whose_victims_may_go_stay_as_they_were_proposed() -> None:
    found = stays(replied(BY_POD))
    assert found == {"n1": {"Pods": [{"UID": "uid-old"}, {"UID": "uid-old"}], "NumPDBViolations": 1}}
    by_uid = stays(replied(BY_UID))
    assert by_uid == {"n1": {"Pods": [{"UID": "uid-old"}], "NumPDBViolations": 2}}


def test_the_decision_behind_it_is_one_that_anybody_could_ask_for() -> None:
    reply = replied(BY_POD)
    assert reply.logged is not None
    request = json.loads(reply.logged.request)
    assert (request["configuration"], request["state"]["snapshot"]) == ("kai", "live")
    assert [one["id"] for one in request["asks"]] == ["ml/serve"]
    old, young = ({"workload": f"ml/{name}", "task": f"{name}-0"} for name in ("old", "young"))
    assert [(one["node"], one.get("evict", [])) for one in request["proposals"]] == [
        ("n1", [old]), ("n2", [young]), ("n3", []), ("n4", []),
    ]  # fmt: skip
    by_uid = replied(BY_UID).logged
    assert by_uid is not None
    assert [one["evict"] for one in json.loads(by_uid.request)["proposals"]] == [
        [old], [{"workload": "uid-ghost"}], [young],
    ]  # fmt: skip
    assert reply.facts is not None
    assert (reply.facts.now, reply.facts.outcomes, reply.facts.spared) == (
        int(NOON.timestamp()) * 10**6, ["preempt"], ["ml/young"],
    )  # fmt: skip
    assert list(reply.seconds) == ["decode", "compile", "solve", "encode"]
    answered = reply.answered()
    assert (answered.body, answered.facts, answered.seconds) == (reply.logged.answer, reply.facts, reply.seconds)
    assert reply.documents == [], "nobody said what the log has"


def preferences(body: Json) -> Json:
    """By node, of those that kube-scheduler would take without the guard or takes with it: which."""
    logged = replied(body).logged
    assert logged is not None
    verdicts = json.loads(logged.answer)["proposals"]
    return {
        one["node"]: [what for what in ("preferred", "taken") if one.get(what)]
        for one in verdicts
        if one.get("preferred") or one.get("taken")
    }


def victim(name: str, priority: int, started: str | None = None) -> Json:
    return pod(f"{name}-0", name, priority=priority) | {"status": {} if started is None else {"startTime": started}}


def test_what_kube_scheduler_would_do_without_the_guard_is_recorded() -> None:
    """Its own order: violated budgets, highest priority, sum, pods, latest start."""
    assert preferences(BY_POD) == {"n2": ["preferred"], "n1": ["taken"]}
    assert preferences(BY_UID) == {}, "UIDs say neither priorities nor starts"

    def proposed(**nodes: Any) -> Json:
        listed = {name: {"Pods": of, "NumPDBViolations": broken} for name, (broken, *of) in nodes.items()}
        return preferences({"Pod": ASKING, "NodeNameToVictims": listed})

    both, strange = ["preferred", "taken"], {"metadata": {"name": "strange", "namespace": "x"}}
    early, late = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    assert proposed(a=(1, victim("old", 1)), b=(0, victim("old", 8))) == {"b": both}
    assert proposed(a=(0, victim("old", 2)), b=(0, victim("old", 1))) == {"b": both}
    assert proposed(a=(0, victim("old", 2), victim("old", 1)), b=(0, victim("old", 2), strange)) == {"b": both}
    assert proposed(a=(0, victim("old", 2), victim("old", -(2**31))), b=(0, victim("old", 2))) == {"b": both}
    assert proposed(a=(0, victim("old", 2, early)), b=(0, victim("old", 2, late))) == {"b": both}
    assert proposed(a=(0, victim("old", 2, late)), b=(0, victim("old", 2))) == {"b": both}, "just now"
    assert proposed(a=(0, victim("old", 2)), b=(0, victim("old", 2))) == {"a": both, "b": both}, "it draws"
    assert proposed(a=(0, victim("young", 1)), b=(0, victim("old", 2)), c=(0, victim("old", 3))) == {
        "a": ["preferred"], "b": ["taken"],
    }  # fmt: skip
    assert proposed(a=(0, victim("young", 1))) == {"a": ["preferred"]}, "none is allowed, and none is taken"


def test_what_the_log_lacks_of_the_snapshot_comes_with_it() -> None:
    (state,) = replied(BY_POD, "kai", Known()).documents
    assert (state.base, msgspec.json.decode(state.body, type=State)) == (None, msgspec.convert(STATE, State))
    assert replied(BY_POD, "kai", Known(state=state.digest)).documents == []


def test_an_ask_that_waits_beside_the_snapshot_is_the_one_that_asks() -> None:
    waits = {"id": "ml/serve", "queue": "b", "priority": 4, "tasks": [{"name": "serve", "requests": {"cpu": 2}}]}
    logged = replied(BY_POD, "kai", None, waits).logged
    assert logged is not None
    (ask,) = json.loads(logged.request)["asks"]
    assert ask["priority"] == 4


def test_what_kubernetes_needs_itself_is_held_back_by_nobody() -> None:
    reply = replied(BY_POD | {"Pod": pod("dns", priority=2_000_000_000)})
    assert sorted(stays(reply)) == ["n1", "n2"], "one without victims is of no use to it"
    assert (reply.logged, reply.facts, reply.documents) == (None, None, [])
    assert sorted(stays(replied(BY_POD | {"Pod": pod("most", "most", priority=1_999_999_999)}))) == ["n1"]
    assert sorted(stays(replied(BY_UID | {"Pod": pod("dns", priority=2_000_000_000)}))) == ["n1", "n2", "n3"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"Pod": {"metadata": {}}, "NodeNameToVictims": {}}, "/Pod/metadata/name"),
        ({"Pod": ASKING}, "/NodeNameToVictims"),
    ],
)
def test_what_is_no_proposal_is_refused(body: Json, pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        replied(body)
    assert [problem.pointer for problem in refused.value.problems] == [pointer]


def test_no_proposal_at_all_is_a_question_too() -> None:
    assert stays(replied({"Pod": ASKING, "NodeNameToVictims": {}})) == {}
    assert stays(replied({"Pod": ASKING, "NodeNameToMetaVictims": {}})) == {}


def test_a_system_without_pods_is_not_asked() -> None:
    store = SnapshotStore(budget=1 << 30, idle=100, clock=time.monotonic)
    sources = Sources(Compiled(Stored()), store)
    store.put("live", sources.configurations.written(Configuration(engine="ytsaurus"), None), State(), 10)
    with pytest.raises(Unsupported) as refused:
        guard(json.dumps(BY_POD).encode(), NOON, sources, "ytsaurus", "live")
    assert [(one.pointer, one.detail) for one in refused.value.problems] == [("", "ytsaurus has no pods")]


class Namespaces(Stored):
    """kube-scheduler's own rules."""

    def document(self, name: str, revision: int) -> bytes:
        return json.dumps({"engine": "kube-scheduler", "queues": [{"name": "ml"}]}).encode()


def foretold(asking: Json) -> Reply:
    """The snapshot has a pod of low priority on each of two nodes, on the second the lower."""
    store = SnapshotStore(budget=1 << 30, idle=100, clock=time.monotonic)
    configured = Sources(Compiled(Namespaces()), store).configurations.named("own", None)
    state = {
        "nodes": [{"name": name, "capacity": {"cpu": 2}} for name in ("n1", "n2")],
        "workloads": [
            {"id": f"ml/{name}", "queue": "ml", "priority": priority,
             "tasks": [{"name": name, "node": node, "requests": {"cpu": 2}}]}
            for name, node, priority in (("old-0", "n1", 2), ("young-0", "n2", 1))
        ],
    }  # fmt: skip
    store.put("live", configured, msgspec.convert(state, State), 10, beside=Beside([], None))
    body = {"Pod": asking, "NodeNameToVictims": {"n1": {"Pods": [OLD]}, "n2": {"Pods": [YOUNG]}}}
    asked = Inquiry(Operation.PREEMPTION, NOON, "live", configuration="own")
    return Answerer(Compiled(Namespaces()), store).run(asked, json.dumps(body).encode())


def test_under_its_own_rules_kube_scheduler_is_told_nothing_and_what_it_will_do_is_logged() -> None:
    reply = foretold(ASKING)
    assert stays(reply).keys() == {"n1", "n2"}, "as it proposed them"
    assert reply.logged is not None
    (decision,) = json.loads(reply.logged.answer)["decisions"]
    assert (decision["ask"], decision["outcome"], decision["node"]) == ("ml/serve", "preempt", "n2")
    assert [victim["workload"] for victim in decision["victims"]] == ["ml/young-0"]
    request = json.loads(reply.logged.request)
    assert "proposals" not in request
    assert [ask["id"] for ask in request["asks"]] == ["ml/serve"]
    port = {"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}], "resources": {"requests": {"cpu": "2"}}}
    with_port = {**ASKING, "spec": {"priority": 9, "containers": [port]}}
    logged = foretold(with_port).logged
    assert logged is not None
    assert json.loads(logged.request)["asks"][0]["tasks"][0]["host_ports"] == [{"port": 80}]


def test_of_a_pod_in_a_namespace_that_nobody_follows_nothing_is_foretold() -> None:
    elsewhere = {**ASKING, "metadata": {**ASKING["metadata"], "namespace": "elsewhere"}}
    reply = foretold(elsewhere)
    assert stays(reply).keys() == {"n1", "n2"}
    assert reply.logged is None
