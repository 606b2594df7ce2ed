"""What is kept of an object: all that is read of it, and nothing else."""

from pathlib import Path
from typing import Any

import pytest

from app.following.objects import followed, trimmed
from app.following.replaying import Recorder, lines
from tests.cluster import kueue

KEPT = {"name": "x", "namespace": "n", "labels": {"a": "b"}, "uid": "u"}
BOOKKEEPING = {"managedFields": [{}], "resourceVersion": "7", "generation": 2, "selfLink": "/x"}


def test_bookkeeping_is_left_out_of_every_kind() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "own": "1"}
    item: dict[str, Any] = {"metadata": {**KEPT, **BOOKKEEPING, "annotations": annotations}, "spec": {"a": 1}}
    assert trimmed("Queue", item) == {"metadata": {**KEPT, "annotations": {"own": "1"}}, "spec": {"a": 1}}
    assert trimmed("Queue", {"metadata": None}) == {"metadata": None}
    assert trimmed("Queue", {"metadata": {"annotations": None}}) == {"metadata": {"annotations": None}}


@pytest.mark.parametrize(
    ("kind", "status", "kept"),
    [
        ("ClusterQueue", {"flavorsUsage": [], "conditions": []}, {"conditions": []}),
        ("Cohort", {"fairSharing": {}}, None),
        ("Event", {"a": 1}, None),
        (
            "Workload",
            {"conditions": [{"type": "Evicted", "message": "m"}], "admission": {}, "reclaimablePods": [], "checks": 1},
            {"conditions": [{"type": "Evicted", "message": "m"}], "admission": {}, "reclaimablePods": []},
        ),
        (
            "PodGroup",
            {"phase": "Pending", "conditions": [], "schedulingConditions": [{"nodePool": "default"}]},
            {"schedulingConditions": [{"nodePool": "default"}]},
        ),
        ("Pod", {"phase": "Running", "podIP": "1.2.3.4", "conditions": []}, {"phase": "Running"}),
        (
            "Pod",
            {
                "startTime": "t", "nominatedNodeName": "n",
                "conditions": [
                    {"type": "Ready", "status": "True"}, "nonsense",
                    {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "m"},
                ],
            },
            {
                "startTime": "t", "nominatedNodeName": "n",
                "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}],
            },
        ),
        (
            "PodDisruptionBudget", {"disruptionsAllowed": 1, "disruptedPods": {}, "currentHealthy": 3},
            {"disruptionsAllowed": 1, "disruptedPods": {}},
        ),
        (
            "Node",
            {
                "allocatable": {"cpu": "1"}, "capacity": {"cpu": "2"}, "images": [],
                "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "t"}, "nonsense"],
            },
            {
                "allocatable": {"cpu": "1"}, "capacity": {"cpu": "2"},
                "conditions": [{"type": "Ready", "status": "True"}, "nonsense"],
            },
        ),
        ("Node", {"conditions": {"type": "Ready"}}, {"conditions": {"type": "Ready"}}),
        ("Node", {"capacity": {}}, {"capacity": {}}),
    ],
)  # fmt: skip
def test_of_a_status_only_what_is_read_is_kept(kind: str, status: dict[str, Any], kept: dict[str, Any] | None) -> None:
    assert trimmed(kind, {"status": status}) == ({} if kept is None else {"status": kept})


def test_of_pods_containers_keep_what_they_ask_for_and_the_scheduler_is_known() -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}, "restartPolicy": "Always"}
    asked = {name: value for name, value in container.items() if name != "image"}
    spec = {
        "schedulerName": "yunikorn", "volumes": [], "hostname": "h", "nodeName": "n", "containers": [container, 5],
        "initContainers": [{"image": "i"}],
    }  # fmt: skip
    kept = {"schedulerName": "yunikorn", "nodeName": "n", "containers": [asked, 5], "initContainers": [{}]}
    assert trimmed("Pod", {"spec": spec})["spec"] == kept
    assert trimmed("Pod", {"spec": {"containers": {"name": "c"}}})["spec"] == {"containers": {"name": "c"}}
    assert trimmed("PodGroup", {"spec": {"volumes": []}}) == {"spec": {"volumes": []}}


def test_of_pods_ports_of_the_node_are_kept_and_of_those_that_are_nowhere_volumes_that_bind_them() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}, {"containerPort": 82, "hostPort": 0}, 5]
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "persistentVolumeClaim": {"claimName": "c"}}, "x"]
    spec: dict[str, Any] = {"containers": [{"name": "c", "ports": ports}, {"ports": {}}], "volumes": volumes}
    kept = [{"name": "c", "ports": [{"containerPort": 81, "hostPort": 81}]}, {}]
    waiting, running = ({"spec": {**spec, **more}} for more in ({}, {"nodeName": "n"}))
    assert trimmed("Pod", waiting)["spec"] == {"containers": kept, "volumes": [{"persistentVolumeClaim": None}]}
    assert trimmed("Pod", running)["spec"] == {"containers": kept, "nodeName": "n"}


def test_of_a_pod_that_waits_for_yunikorn_it_says_why() -> None:
    said = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingSkipped",
        "message": "m",
        "lastProbeTime": None,
    }
    kept = {name: value for name, value in said.items() if name != "lastProbeTime"}

    def pod(**spec: Any) -> Any:
        return trimmed("Pod", {"spec": spec, "status": {"conditions": [dict(said)]}})["status"]

    assert pod(schedulerName="yunikorn") == {"conditions": [kept]}
    assert pod(schedulerName="yunikorn", nodeName="n") == {}
    assert pod(schedulerName="default-scheduler") == {}


def test_what_is_never_read_is_no_line(tmp_path: Path) -> None:
    """A queue's status is written with every admission; a new spec, or one that is made again, is recorded."""
    file, kinds = tmp_path / "r.jsonl", {kind.name: kind for kind in followed("kueue")}
    recorder = Recorder(file, "kueue", "prod")

    def said(word: str, version: int, cpu: int = 8, **status: Any) -> None:
        made = {**kueue.cluster_queue("q", cpu), "status": status}
        made["metadata"] |= {"resourceVersion": str(version), "generation": version}
        recorder.event(kinds["ClusterQueue"], {"type": word, "object": made})

    recorder.item(kinds["ClusterQueue"], {**kueue.cluster_queue("q", 8), "status": {}})
    said("MODIFIED", 1, pendingWorkloads=1)
    said("MODIFIED", 2, pendingWorkloads=2, conditions=[{"type": "Active", "status": "False"}])
    said("MODIFIED", 3, pendingWorkloads=3, conditions=[{"type": "Active", "status": "False"}])
    said("MODIFIED", 4, cpu=9)
    said("BOOKMARK", 5)
    said("DELETED", 6, cpu=9)
    said("ADDED", 7, cpu=9)
    recorder.close()
    found = [(line["type"], line.get("object", {}).get("metadata", {}).get("resourceVersion")) for line in lines(file)]
    assert found == [
        ("RECORDING", None), ("ITEM", None), ("MODIFIED", "2"), ("MODIFIED", "4"), ("BOOKMARK", "5"), ("DELETED", "6"),
        ("ADDED", "7"),
    ]  # fmt: skip
