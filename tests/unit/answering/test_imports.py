"""Manifests as an operation gives them, and as the cluster of a plan."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from app.answering.operations import Answerer, Inquiry, Operation
from app.answering.plan import plan
from app.answering.snapshot_store import SnapshotStore
from app.answering.sources import Compiled, nothing_stored
from app.solver.model.problems import InvalidInput
from tests.support.sources import Documents

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
Json = dict[str, Any]


def cluster_queue(name: str, cpu: int, **spec: Any) -> Json:
    flavors = [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": name},
        "spec": {
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}], "namespaceSelector": {}, **spec,
        },
    }  # fmt: skip


FLAVOR = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor", "metadata": {"name": "default"}}


def listed(*objects: Json) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def imported(text: str) -> Json:
    store = SnapshotStore(budget=1, idle=1, clock=lambda: 0.0)
    asked = Inquiry(Operation.IMPORT, NOW, format="kubernetes")
    return json.loads(Answerer(nothing_stored(), store).run(asked, text.encode()).body)


def test_a_manifest_is_given_in_our_words_with_what_is_to_say_of_its_queues() -> None:
    found = imported(listed(FLAVOR, cluster_queue("team", 8, stopPolicy="Hold")))
    assert (found["format"], found["configuration"]["engine"]) == ("kubernetes", "kueue")
    assert [queue["name"] for queue in found["configuration"]["queues"]] == ["team"]
    assert (found["state"], found["asks"], found["configuration_findings"]) == ({}, [], [])
    assert found["configuration"]["queues"][0]["kueue"] == {"stop_policy": "Hold"}
    assert found["findings"] == []
    orphan = {
        "apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "a"},
        "spec": {"parentQueue": "nobody", "resources": {"gpu": {"quota": 1}}},
    }  # fmt: skip
    assert [
        (one["rule"], one["pointer"], one["detail"]) for one in imported(listed(orphan))["configuration_findings"]
    ] == [("invalid-document", "/queues/0/parent", "no queue 'nobody'")]


def test_of_a_manifest_without_queues_nothing_is_said() -> None:
    assert imported(listed(FLAVOR))["configuration_findings"] == []


def job(name: str, cpu: int) -> Json:
    template = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
    labels = {"kueue.x-k8s.io/queue-name": "team"}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels},
        "spec": {"template": template},
    }  # fmt: skip


def planned(**request: Any) -> Json:
    return json.loads(plan(json.dumps({"manifest": job("train", 3), **request}).encode(), NOW, nothing_stored()))


def refused(**request: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as found:
        planned(**request)
    return [(one.pointer, one.detail) for one in found.value.problems]


def test_a_plan_needs_a_cluster_with_queues() -> None:
    detail = "what cluster? give `configuration` and `state`, or `cluster`"
    assert refused() == refused(state={"nodes": []}) == [("/configuration", detail)]
    empty = "there are no queues in it: give them with `configuration`"
    assert refused(cluster=listed(FLAVOR)) == [("/cluster", empty)]
    ((pointer, said),) = refused(cluster="a: [1")
    assert (pointer, said[:34]) == ("/cluster", "neither JSON nor YAML at line 2, c")


def test_a_configuration_takes_the_place_of_the_queues_of_a_cluster() -> None:
    text = listed(FLAVOR, cluster_queue("team", 2))
    given = {"engine": "kueue", "queues": [{"name": "team", "quota": {"cpu": {"guaranteed": 4}}}]}
    assert planned(cluster=text)["outcome"] == "infeasible"
    for cluster in ({}, {"cluster": text}, {"cluster": listed(FLAVOR)}):
        assert planned(configuration=given, **cluster)["outcome"] == "admit"
    asks = [{"id": "first", "queue": "team", "tasks": [{"name": "main", "requests": {"cpu": 2}}]}]
    for cluster in ({"configuration": given}, {"cluster": listed(FLAVOR, cluster_queue("team", 4))}):
        found = planned(asks=asks, **cluster)
        assert sum(decision["ask"] == "default/train" for decision in found["decisions"]) == 1
        assert found["waiting"] != planned(**cluster)["waiting"], "what waits already is in it"


def test_what_is_said_of_a_cluster_points_into_it() -> None:
    found = planned(cluster=listed(FLAVOR, cluster_queue("team", 8, unknownField=1)))
    assert [one["pointer"] for one in found["findings"]] == [
        "/cluster/items/1/spec/unknownField", "/manifest/metadata/labels/kueue.x-k8s.io~1queue-name",
    ]  # fmt: skip


def test_a_stored_configuration_that_a_cluster_adds_nothing_to_keeps_its_name() -> None:
    store = SnapshotStore(budget=1, idle=1, clock=lambda: 0.0)

    def used(**request: Any) -> Json:
        body = json.dumps({"manifest": job("train", 3), "queue": "main-1", **request}).encode()
        answer = Answerer(Compiled(Documents()), store).run(Inquiry(Operation.PLAN, NOW), body)
        return json.loads(answer.body)["configuration"]

    named = used(configuration="main", cluster=listed(FLAVOR))
    assert (named["name"], named["revision"]) == ("main", 1)
    priority = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "more"}, "spec": {}}
    own = used(cluster=listed(priority), queue="more")
    assert own.keys() == {"digest"}
