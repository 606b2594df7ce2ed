"""Snapshots of KAI Scheduler's own plugin, as a zip and as the file in it."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from app.base.documents import MAX_BYTES, Unreadable
from app.cli import run
from app.formats import import_configuration
from tests.support.instead import Instead

Json = dict[str, Any]
PARAMETERS = {
    "maxNumberConsolidationPreemptees": 7,
    "allowConsolidatingReclaim": True,
    "schedulerName": "kai-scheduler",
}


def pod(name: str, group: str, node: str | None = None) -> Json:
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"schedulerName": "kai-scheduler", "containers": [container]} | ({"nodeName": node} if node else {})
    metadata = {"name": name, "namespace": "ns", "annotations": {"pod-group-name": group}}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running" if node else "Pending"}}


def snapshot(**more: Any) -> Json:
    """Objects without their kinds, as the scheduler's listers have them."""
    groups = [
        {"metadata": {"name": name, "namespace": "ns"}, "spec": {"queue": "lab", "minMember": 1}} for name in ("a", "b")
    ]
    resources = {
        "gpu": {"quota": 2, "limit": -1},
        "cpu": {"quota": -1, "limit": -1},
        "memory": {"quota": -1, "limit": -1},
    }
    raw = {
        "queues": [{"metadata": {"name": "lab"}, "spec": {"resources": resources}}],
        "nodes": [{"metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/gpu": "2", "cpu": "8"}}}],
        "podGroups": groups, "pods": [pod("a-0", "a", "n"), pod("b-0", "b")], "configMaps": [], "topologies": None,
        "priorityClasses": [{"metadata": {"name": "train"}, "value": 50}],
    }  # fmt: skip
    config = {"actions": "allocate,reclaim", "tiers": [{"plugins": [{"name": "predicates"}]}]}
    return {"config": config, "schedulerParams": PARAMETERS, "rawObjects": raw | more}


def zipped(document: Json, name: str = "snapshot.json") -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr(name, json.dumps(document))
    return held.getvalue()


@pytest.mark.parametrize("body", [zipped(snapshot()), json.dumps(snapshot()).encode()], ids=["zip", "json"])
@pytest.mark.parametrize("system", ["kai", "kubernetes"])
def test_a_snapshot_is_configuration_and_state(body: bytes, system: str) -> None:
    found = import_configuration(body, system)
    assert [one for one in found.findings if one.severity == "error"] == []
    settings = found.configuration.settings.kai
    assert settings is not None
    assert (settings.actions, settings.max_consolidation_preemptees) == (["allocate", "reclaim"], 7)
    assert (settings.allow_consolidating_reclaim, settings.use_scheduling_signatures) == (True, False), (
        "left out: false"
    )
    assert [queue.name for queue in found.configuration.queues] == ["lab"]
    assert [node.name for node in found.state.nodes] == ["n"]
    assert [(one.id, one.tasks[0].node) for one in found.state.workloads] == [("ns/a", "n")]
    assert [ask.id for ask in found.asks] == ["ns/b"]


def test_a_pod_that_is_being_bound_is_on_its_node() -> None:
    bound = {"metadata": {"name": "r", "namespace": "ns"}, "spec": {"podName": "b-0", "selectedNode": "n"}}
    found = import_configuration(zipped(snapshot(bindRequests=[bound, None, {}])), "kai")
    assert [one.id for one in found.state.workloads] == ["ns/a", "ns/b"]
    assert found.asks == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (zipped(snapshot(), "other.json"), "without snapshot.json"), (b"PK\x03\x04 no zip", "can't be read"),
        (zipped(snapshot())[:80], "can't be read"),
    ],
    ids=["another file", "no zip", "cut"],  # a zip holds the time at which it was made: no name for a test
)  # fmt: skip
def test_a_zip_that_is_none_of_kais_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        import_configuration(body, "kubernetes")


def test_what_a_zip_unpacks_to_is_bounded(instead: Instead) -> None:
    instead("app.formats.kai.system", MAX_BYTES=1000)
    assert MAX_BYTES > 1000
    with pytest.raises(Unreadable, match="more than the 1000 bytes"):
        import_configuration(zipped({"rawObjects": {}, "x": "a" * 2000}), "kai")


def test_a_snapshot_is_decided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "snapshot.zip"
    file.write_bytes(zipped(snapshot()))
    assert run(["decide", str(file)]) == 0
    assert "ns/b: admit on n" in capsys.readouterr().out


def in_pool(kind: str, name: str, pool: str | None, **more: Any) -> Json:
    version = {"Queue": "scheduling.run.ai/v2", "PodGroup": "scheduling.run.ai/v2alpha2", "Node": "v1", "Pod": "v1",
               "SchedulingShard": "kai.scheduler/v1"}[kind]  # fmt: skip
    labels = {} if pool is None else {"kai.scheduler/node-pool": pool}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels}, **more}


AMOUNTS = {name: {"quota": -1, "limit": -1} for name in ("gpu", "cpu", "memory")}
CAPACITY = {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4", "pods": "110"}


def pooled(*shards: str | None) -> Json:
    """Two node pools, ``a`` and that without a label, with a node, a queue and a pod group of one pod each."""
    items = [in_pool("SchedulingShard", f"s{i}", None, spec={"partitionLabelValue": one} if one else {})
             for i, one in enumerate(shards)]  # fmt: skip
    for pool in ("a", None):
        name = pool or "rest"
        items += [
            in_pool("Queue", f"q-{name}", pool, spec={"resources": AMOUNTS}),
            in_pool("Node", f"n-{name}", pool, status={"allocatable": CAPACITY}),
            in_pool("PodGroup", f"g-{name}", pool, spec={"queue": f"q-{name}", "minMember": 1}),
            {"apiVersion": "v1", "kind": "Pod", **pod(f"p-{name}", f"g-{name}")},
        ]
        items[-1]["metadata"].pop("namespace")
        items.append(in_pool("Pod", f"bare-{name}", pool, spec={**items[-1]["spec"]}))
        items[-1]["metadata"]["labels"] |= {"kai.scheduler/queue": f"q-{name}"}
    return {"apiVersion": "v1", "kind": "List", "items": items}


@pytest.mark.parametrize(
    ("shards", "name", "others"), [(("a",), "a", 0), ((None,), "rest", 0), ((), "rest", 0), (("a", None), "rest", 1)]
)
def test_a_shard_decides_on_its_own_node_pool(shards: tuple[str | None, ...], name: str, others: int) -> None:
    found = import_configuration(json.dumps(pooled(*shards)).encode(), "kubernetes")
    assert [queue.name for queue in found.configuration.queues] == [f"q-{name}"]
    assert [node.name for node in found.state.nodes] == [f"n-{name}"]
    assert [ask.id for ask in found.asks] == [f"g-{name}", f"pg-bare-{name}"]
    said = [(one.severity, one.detail) for one in found.findings if one.rule == "other-pool"]
    assert len(said) == 1 + others
    assert "1 nodes, 1 queues, 1 pod groups, 1 pods without a group" in said[-1][1]
    assert {severity for severity, _ in said} == {"warning"}
    assert not any(one.severity == "error" for one in found.findings)


def test_the_scheduler_s_own_file_knows_no_pools() -> None:
    items = [*pooled()["items"], {"actions": "allocate, reclaim"}]
    found = import_configuration(json.dumps(items).encode(), "kai")
    assert [node.name for node in found.state.nodes] == ["n-a", "n-rest"]


def test_the_shared_gpus_of_a_pod_are_those_that_its_bind_request_names() -> None:
    def tasks(**spec: Any) -> Any:
        shared = pod("r", "b")
        shared["metadata"] |= {"annotations": {"pod-group-name": "b", "gpu-fraction": "0.5"}, "labels": {"a": "b"}}
        request = {"metadata": {"name": "r", "namespace": "ns"}, "spec": {"podName": "r", "selectedNode": "n"} | spec}
        status = {"status": {"phase": "Failed", "failedAttempts": 2}} if "backoffLimit" in spec else {}
        found = import_configuration(zipped(snapshot(pods=[shared], bindRequests=[request | status])), "kai")
        return [(task.node, task.gpu_group) for one in (*found.state.workloads, *found.asks) for task in one.tasks]

    assert tasks() == [("n", None)]
    assert tasks(selectedGPUGroups=["g"]) == [("n", "g")]
    assert tasks(selectedGPUGroups=["h", "g"]) == [("n", "g,h")]
    assert tasks(selectedGPUGroups=["g"], backoffLimit=3) == [("n", "g")], "it is tried again"
    assert tasks(selectedGPUGroups=["g"], backoffLimit=2) == [(None, None)]


@pytest.mark.parametrize(("threshold", "told"), [(None, 0), (120 * 10**9, 0), (60 * 10**9, 1)])
def test_when_a_pod_is_stuck_is_two_minutes_whatever_the_scheduler_says(threshold: int | None, told: int) -> None:
    document = snapshot()
    document["schedulerParams"] = PARAMETERS | ({} if threshold is None else {"stuckInReleasingThreshold": threshold})
    found = import_configuration(zipped(document), "kai")
    assert sum("stuck-in-releasing" in one.pointer for one in found.findings) == told
