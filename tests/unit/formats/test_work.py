"""Objects that start pods: how many pods of which size, by the rules of their controllers."""

from typing import Any

import pytest

from app.formats.documents.reader import Findings
from app.formats.work.read import Beside, kinds, read_work
from app.solver.model.problems import Finding


def pod(cpu: str | int = 1, **more: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}], **more}}


def of(version: str, kind: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x", **metadata}, "spec": spec}


def read(*manifests: dict[str, Any]) -> tuple[list[Any], list[Finding]]:
    findings = Findings()
    documents = [((i,), manifest) for i, manifest in enumerate(manifests)]
    return read_work(documents, Beside(), findings, namespace="default", special={}), findings.all()


def sets(manifest: dict[str, Any]) -> list[tuple[str, int, int]]:
    """Name, pods and thousandths of a cpu of each pod set."""
    (work,), findings = read(manifest)
    assert [f for f in findings if f.severity == "error"] == []
    return [(one.name, one.count, one.pod.requests["cpu"]) for one in work.pod_sets]


def test_batch_and_apps() -> None:
    job = {"parallelism": 5, "completions": 3, "template": pod(2)}
    assert sets(of("batch/v1", "Job", job)) == [("main", 3, 2000)]
    assert sets(of("batch/v1", "Job", {"template": pod("100m")})) == [("main", 1, 100)]
    cron = {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"parallelism": 4, "template": pod()}}}
    assert sets(of("batch/v1", "CronJob", cron)) == [("main", 4, 1000)]
    for kind in ("Deployment", "ReplicaSet", "StatefulSet"):
        assert sets(of("apps/v1", kind, {"replicas": 3, "template": pod()})) == [("main", 3, 1000)]
        assert sets(of("apps/v1", kind, {"template": pod()})) == [("main", 1, 1000)]
    assert sets(of("v1", "Pod", pod(3)["spec"])) == [("main", 1, 3000)]


def test_a_job_set_multiplies_replicas_and_parallelism() -> None:
    inner = {"parallelism": 4, "completions": 4, "template": pod(8)}
    spec = {
        "replicatedJobs": [
            {"name": "driver", "template": {"spec": {"template": pod()}}},
            {"name": "workers", "replicas": 2, "template": {"spec": inner}},
        ]
    }
    assert sets(of("jobset.x-k8s.io/v1alpha2", "JobSet", spec)) == [("driver", 1, 1000), ("workers", 8, 8000)]


def test_ray_has_a_head_groups_of_workers_and_a_submitter() -> None:
    cluster = {
        "headGroupSpec": {"rayStartParams": {}, "template": pod(2)},
        "workerGroupSpecs": [
            {"groupName": "Small", "replicas": 3, "minReplicas": 1, "maxReplicas": 9, "template": pod()},
            {"groupName": "slices", "replicas": 2, "numOfHosts": 4, "template": pod(4)},
            {"groupName": "later", "replicas": 0, "template": pod(4)},
        ],
    }
    expected = [("head", 1, 2000), ("small", 3, 1000), ("slices", 8, 4000)]
    assert sets(of("ray.io/v1", "RayCluster", cluster)) == expected
    job = {"entrypoint": "python train.py", "rayClusterSpec": cluster}
    assert sets(of("ray.io/v1", "RayJob", job)) == [*expected, ("submitter", 1, 500)]
    assert sets(of("ray.io/v1", "RayJob", {**job, "submissionMode": "HTTPMode"})) == expected
    given = {**job, "submitterPodTemplate": pod("50m")}
    assert sets(of("ray.io/v1", "RayJob", given))[-1] == ("submitter", 1, 50)


@pytest.mark.parametrize(
    ("kind", "field", "roles", "expected"),
    [
        ("PyTorchJob", "pytorchReplicaSpecs", ("Worker", "Master"), ("master", "worker")),
        ("MPIJob", "mpiReplicaSpecs", ("Worker", "Launcher"), ("launcher", "worker")),
        ("TFJob", "tfReplicaSpecs", ("Worker", "PS", "Chief"), ("chief", "ps", "worker")),
        ("JAXJob", "jaxReplicaSpecs", ("Worker",), ("worker",)),
    ],
)
def test_training_jobs_have_a_pod_set_a_role(
    kind: str, field: str, roles: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    specs = {role: {"replicas": 2, "template": pod()} if role == "Worker" else {"template": pod()} for role in roles}
    counts = {"worker": 2}
    manifest = of("kubeflow.org/v1", kind, {field: specs})
    assert sets(manifest) == [(name, counts.get(name, 1), 1000) for name in expected]
    policy = {"schedulingPolicy": {"minAvailable": 2, "priorityClass": "high"}}
    (work,), _ = read(of("kubeflow.org/v1", kind, {field: specs, "runPolicy": policy}))
    assert (work.least, work.priority_class) == (2, "high")


def test_a_leader_worker_set_is_so_many_groups() -> None:
    template = {"size": 4, "workerTemplate": pod(8)}
    manifest = of("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"replicas": 2, "leaderWorkerTemplate": template})
    assert sets(manifest) == [("main", 4, 8000)]
    template["leaderTemplate"] = pod(1)
    assert sets(manifest) == [("leader", 1, 1000), ("worker", 3, 8000)]
    (work,), _ = read(manifest)
    assert (work.replicas, work.pods) == (2, 8)


def test_a_pod_asks_for_its_largest_moment() -> None:
    """Containers and sidecars together, or an init container with the sidecars before it, and overhead on top."""
    template = pod(
        2,
        initContainers=[
            {"name": "first", "resources": {"requests": {"cpu": 4}}},
            {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
            {"name": "second", "resources": {"requests": {"cpu": 3}}},
        ],
        overhead={"cpu": "250m"},
    )
    assert sets(of("batch/v1", "Job", {"template": template})) == [("main", 1, 4250)]
    template["spec"]["containers"].append({"name": "more", "resources": {"limits": {"cpu": 2}}})
    assert sets(of("batch/v1", "Job", {"template": template})) == [("main", 1, 4750)]


def test_generated_names_are_told_apart() -> None:
    manifest = of("batch/v1", "Job", {"template": pod()})
    manifest["metadata"] = {"generateName": "sweep-", "namespace": "lab"}
    works, findings = read(manifest, manifest)
    assert [work.id for work in works] == ["lab/sweep-xxxxx", "lab/sweep-xxxxx-2"]
    assert findings == []


def test_two_objects_of_one_name_are_a_finding() -> None:
    manifest = of("batch/v1", "Job", {"template": pod()})
    _, findings = read(manifest, manifest)
    assert [(f.rule, f.severity) for f in findings] == [("duplicate", "error")]


def test_what_stands_beside_a_job_starts_no_pods() -> None:
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "files"},
        "data": {"x.yaml": "kind: Nonsense"},
    }
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"}, "spec": {}}
    works, findings = read(config, service)
    assert (works, [(f.rule, f.severity) for f in findings]) == ([], [("no-pods", "info")])


def test_every_kind_is_listed_once() -> None:
    assert len(set(kinds())) == len(kinds())
