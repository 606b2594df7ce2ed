"""Objects that start pods: how many pods of which size, by the rules of their controllers."""

from typing import Any

import pytest

from app.formats.reader import Findings
from app.formats.work import SPECIAL
from app.formats.work.read import Beside, kinds, read_work
from app.solver.model.problems import Finding
from tests.support.work import of, pod


def read(*manifests: dict[str, Any]) -> tuple[list[Any], list[Finding]]:
    findings = Findings()
    documents = [((i,), manifest) for i, manifest in enumerate(manifests)]
    return read_work(documents, Beside(), findings, namespace="default", special=SPECIAL), findings.all()


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


def test_spark_makes_up_memory_and_overhead() -> None:
    """Spark 3.5: 1g by default, overhead a tenth (four tenths for Python), at least 384 MiB."""
    spec: dict[str, Any] = {
        "type": "Python",
        "driver": {"cores": 2, "memory": "4g"},
        "executor": {
            "instances": 5,
            "coreRequest": "500m",
            "memory": "512m",
            "gpu": {"name": "nvidia.com/gpu", "quantity": 1},
        },
    }
    manifest = of("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec)
    (work,), findings = read(manifest)
    assert findings == []
    driver, executor = work.pod_sets
    assert (driver.count, driver.pod.requests) == (1, {"cpu": 2000, "memory": (4096 + 1638) * 2**20})
    assert executor.count == 5
    assert executor.pod.requests == {"cpu": 500, "memory": (512 + 384) * 2**20, "nvidia.com/gpu": 1000}
    spec |= {"type": "Scala", "sparkConf": {"spark.driver.memoryOverhead": "1g"}, "executor": {}}
    (work,), findings = read(manifest)
    driver, executor = work.pod_sets
    assert driver.pod.requests["memory"] == 5 * 2**30
    assert (executor.count, executor.pod.requests) == (2, {"cpu": 1000, "memory": (1024 + 384) * 2**20})
    assert [f.detail for f in findings] == ["no number of executors: Spark starts 2"]
    spec["driver"]["memory"] = "4 gigs"
    assert [(f.pointer, f.severity) for f in read(manifest)[1]][-1] == ("/0/spec/driver/memory", "error")


def test_an_app_wrapper_is_what_it_wraps() -> None:
    job = of("batch/v1", "Job", {"parallelism": 3, "template": pod(2)})
    other = of("example.com/v1", "Other", {"workers": pod(4)})
    service = of("v1", "Service", {})
    spec = {
        "components": [
            {"template": service},
            {"template": job},
            {"template": other, "podSets": [{"replicas": 2, "path": "template.spec.workers"}]},
        ]
    }
    manifest = of("workload.codeflare.dev/v1beta2", "AppWrapper", spec)
    assert sets(manifest) == [("x-0", 3, 2000), ("x-1", 2, 4000)]


def test_a_train_job_fills_in_its_runtime() -> None:
    step = "trainer.kubeflow.org/trainjob-ancestor-step"
    node = {"name": "node", "resources": {"requests": {"cpu": 1}}}
    trainer = {
        "metadata": {"labels": {step: "trainer"}},
        "spec": {"template": {"spec": {"containers": [node]}}},
    }
    data = {"metadata": {"labels": {step: "dataset-initializer"}}, "spec": {"template": pod(3)}}
    jobs = [{"name": "data", "template": data}, {"name": "node", "template": trainer}]
    template = {"spec": {"replicatedJobs": jobs}}
    runtime = of(
        "trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", {"mlPolicy": {"numNodes": 2}, "template": template},
        name="torch",
    )  # fmt: skip
    spec: dict[str, Any] = {"runtimeRef": {"name": "torch"}}
    manifest = of("trainer.kubeflow.org/v1alpha1", "TrainJob", spec)
    (work,), findings = read(manifest, runtime)
    assert [(s.name, s.count, s.pod.requests["cpu"]) for s in work.pod_sets] == [("data", 1, 3000), ("node", 2, 1000)]
    assert findings == []
    spec["trainer"] = {"numNodes": 4, "resourcesPerNode": {"requests": {"cpu": 8}}}
    (work,), _ = read(manifest, runtime)
    assert [(s.name, s.count, s.pod.requests["cpu"]) for s in work.pod_sets] == [("data", 1, 3000), ("node", 4, 8000)]
    default = {"limits": [{"type": "Container", "defaultRequest": {"memory": 7}}]}
    (work,), _ = read(manifest, runtime, of("v1", "LimitRange", default))
    assert [(s.pod.requests["cpu"], s.pod.requests["memory"]) for s in work.pod_sets] == [(3000, 7), (8000, 7)]
    (work,), findings = read(manifest)
    assert [(s.name, s.count, s.pod.requests["cpu"]) for s in work.pod_sets] == [("node", 4, 8000)]
    assert "ClusterTrainingRuntime 'torch' is not known here" in findings[0].detail
