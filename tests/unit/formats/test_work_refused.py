"""Work that can't be planned, or not as it stands: what each planner says of it, and what it plans all the same."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.formats.admission import Admission
from app.formats.kueue.considered import LocalQueue
from app.formats.reader import Findings, Reader
from app.formats.work import SPECIAL
from app.formats.work import kueue as kueue_work
from app.formats.work import pods as kai_work
from app.formats.work import pods as yunikorn_work
from app.formats.work.kinds import MOST_PODS
from app.formats.work.read import Beside, Cluster, Planned, read_work
from app.formats.ytsaurus.orchid import plan_operations
from app.solver.model.configuration import Configuration

Json = dict[str, Any]
PLANNERS = {"kueue": kueue_work.plan_work, "kai": kai_work.plan_kai, "yunikorn": yunikorn_work.plan_yunikorn}
NOW = datetime(2026, 11, 22, tzinfo=UTC)
QUEUE = "kueue.x-k8s.io/queue-name"
KAI = {"kai.scheduler/queue": "leaf"}


def pod(
    requests: Json | None = None, *, labels: Json | None = None, annotations: Json | None = None, **spec: Any
) -> Json:
    metadata: Json = {"labels": labels or {}, "annotations": annotations or {}}
    container = {"name": "main", "resources": {"requests": requests or {"cpu": 1}}}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def job(
    labels: Json | None = None, template: Json | None = None, *, annotations: Json | None = None, **spec: Any
) -> Json:
    metadata = {"name": "x", "labels": labels or {}, "annotations": annotations or {}}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
        "spec": {"template": template or pod(), **spec},
    }  # fmt: skip


def planned(
    system: str, *manifests: Json, queues: list[Json] | None = None, local: dict[str, str] | None = None, **cluster: Any
) -> tuple[list[Planned], list[str]]:
    """What is planned, and every finding: severity, rule, pointer, words."""
    findings = Findings()
    given = [{"name": "top"}, {"name": "leaf", "parent": "top"}] if queues is None else queues
    beside = Beside(local_queues={name: LocalQueue(queue) for name, queue in (local or {}).items()})
    here = Cluster(msgspec.convert({"queues": given}, Configuration), beside, findings, NOW, **cluster)
    works = read_work(
        [((i,), one) for i, one in enumerate(manifests)], beside, findings, namespace="ns", special=SPECIAL
    )
    found = PLANNERS[system](works, here)
    return found, [f"{one.severity} {one.rule} {one.pointer}: {one.detail}" for one in findings.all()]


def asked(found: list[Planned]) -> list[tuple[str, str, int | None, Json]]:
    """Id, queue, priority, and what the first task asks for."""
    return [(ask.id, ask.queue, ask.priority, dict(ask.tasks[0].requests)) for one in found for ask in one.asks]


def test_a_queue_of_kai_is_a_leaf() -> None:
    found, said = planned("kai", job({"kai.scheduler/queue": "top"}))
    assert (asked(found), said) == (
        [], ["error no-queue /0/metadata/labels: batch/Job ns/x: 'top' is a parent queue; leaf queues are 'leaf'"],
    )  # fmt: skip
    found, said = planned("kai", job(KAI), queue="other")
    assert said == ["error no-queue /0/metadata/labels: batch/Job ns/x: there is no queue 'other'; there are 'leaf'"]
    _, said = planned("kai", job())
    assert said == [
        "error no-queue /0/metadata/labels: batch/Job ns/x: no label 'kai.scheduler/queue', and there is no queue "
        "'default-queue'; there are 'leaf'"
    ]


def test_an_unknown_class_of_kai_is_the_kinds_usual_one() -> None:
    found, said = planned("kai", job(KAI, pod(priorityClassName="urgent")))
    assert asked(found) == [("ns/x-0", "leaf", 50, {"cpu": 1})]
    assert "warning unknown-name /0/spec: priority class 'urgent' is not known here: planned as 'train'" in said
    found, said = planned("kai", job(KAI, pod(priorityClassName="build")))
    assert (asked(found)[0][2], found[0].asks[0].preemptible, said) == (100, False, [])
    found, _ = planned(
        "kai", job(KAI | {"kai.scheduler/preemptibility": "preemptible"}, pod(priorityClassName="build"))
    )
    assert found[0].asks[0].preemptible


def test_work_of_kai_waits_before_it_makes_others_go_where_it_says_so() -> None:
    delay = "kai.scheduler/preemption-delay"
    found, said = planned("kai", job(KAI, annotations={delay: "5m"}))
    assert ([ask.preemption_delay for one in found for ask in one.asks], said) == (["5m"], [])
    found, said = planned("kai", job(KAI, annotations={delay: "soon"}))
    assert [ask.preemption_delay for one in found for ask in one.asks] == [None]
    assert [one[: one.index(": ")] for one in said] == [
        "error bad-value /0/metadata/annotations/kai.scheduler~1preemption-delay"
    ]


def test_a_local_queue_leads_to_a_cluster_queue() -> None:
    found, said = planned("kueue", job({QUEUE: "mine"}), local={"ns/mine": "gone", "ns/good": "leaf"})
    assert asked(found) == []
    assert said == [
        "error no-queue /0/metadata/labels: batch/Job ns/x: LocalQueue 'ns/mine' leads to 'gone', which is no "
        "ClusterQueue here"
    ]
    _, said = planned("kueue", job({QUEUE: "other"}), local={"ns/good": "leaf"})
    assert said == [
        "error no-queue /0/metadata/labels/kueue.x-k8s.io~1queue-name: batch/Job ns/x: no LocalQueue 'ns/other'; there "
        "are LocalQueues 'ns/good'"
    ]
    _, said = planned("kueue", job({QUEUE: "other"}))
    assert said[0].endswith("no LocalQueue 'ns/other'; there are no LocalQueues; ClusterQueues are 'leaf'")
    found, said = planned("kueue", job({QUEUE: "leaf"}))
    assert asked(found) == [("ns/x", "leaf", 0, {"cpu": 1})]
    assert said == [
        "info assumed-queue /0/metadata/labels/kueue.x-k8s.io~1queue-name: no LocalQueues are known: 'leaf' is taken "
        "for the ClusterQueue of that name"
    ]
    found, said = planned("kueue", job(), queue="top")
    assert (asked(found), said) == ([("ns/x", "top", 0, {"cpu": 1})], [])


@pytest.mark.parametrize(("given", "least"), [("1", 1), ("3", 3), ("0", None), ("4", None), ("x", None), ("٣", None)])
def test_partial_admission_asks_for_a_count_of_its_own(given: str, least: int | None) -> None:
    found, said = planned(
        "kueue", job(annotations={"kueue.x-k8s.io/job-min-parallelism": given}, parallelism=3), queue="leaf"
    )
    assert [ask.tasks[0].min_count for one in found for ask in one.asks] == [least]
    at = "/0/metadata/annotations/kueue.x-k8s.io~1job-min-parallelism"
    assert said == ([] if least else [f"error bad-value {at}: {given!r} is no count from 1 to 3"])


def test_topology_of_kueue_is_planned_without() -> None:
    annotations = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    _, said = planned("kueue", job(template=pod(annotations=annotations)), queue="leaf")
    assert said == [
        "error not-carried /0/spec/template/metadata/annotations/kueue.x-k8s.io~1podset-required-topology: "
        "topology-aware scheduling is decided where the source has the Topology and the cluster's Nodes: "
        "planned without it"
    ]


def test_the_priority_under_kueue_is_the_labels_then_the_pods_then_nothing() -> None:
    found, said = planned("kueue", job({"kueue.x-k8s.io/priority-class": "gone"}), queue="leaf")
    assert (asked(found)[0][2], len(said)) == (0, 1)
    assert said[0].startswith("warning unknown-name /0/metadata/labels/kueue.x-k8s.io~1priority-class: ")
    found, said = planned("kueue", job(template=pod(priority=7)), queue="leaf")
    assert (asked(found)[0][2], said) == (7, [])
    found, said = planned("kueue", job(template=pod(priority=7, priorityClassName="gone")), queue="leaf")
    assert (asked(found)[0][2], said) == (
        0, ["warning unknown-name /0/spec: priority class 'gone' is not known here: planned with priority 0"],
    )  # fmt: skip


def test_more_workloads_than_a_plan_takes() -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    few, said = planned("kueue", deployment | {"spec": {"replicas": 5000, "template": pod()}}, queue="leaf")
    assert (len(few[0].asks), said) == (5000, [])
    many, said = planned("kueue", deployment | {"spec": {"replicas": 5001, "template": pod()}}, queue="leaf")
    assert (many[0].asks, said) == (
        [], ["error too-many /0: apps/Deployment ns/d: 5001 Workloads are more than the 5000 of one plan"],
    )  # fmt: skip


def test_a_queue_of_yunikorn_is_a_leaf() -> None:
    queues = [{"name": "root", "yunikorn": {"parent": True}}, {"name": "root.a", "parent": "root"}]
    top = pod(labels={"applicationId": "app", "queue": "root"})
    found, said = planned("yunikorn", job(template=top), queues=queues)
    assert (asked(found), said) == (
        [],
        [
            "error no-queue /0/metadata/labels: application 'app' is rejected: it names 'root', which is a parent "
            "queue, no placement rule finds one, and there is no leaf queue 'root.default'; its pods are left out"
        ],
    )


def test_yunikorn_asks_by_the_names_that_the_cluster_counts_by() -> None:
    queues = [{"name": "root"}, {"name": "root.a", "parent": "root"}]
    template = pod({"cpu": 2, "nvidia.com/gpu": 1}, labels={"applicationId": "app", "queue": "root.a"})

    def asks(*counted: str) -> Json:
        found, _ = planned("yunikorn", job(template=template), queues=queues, counted=set(counted))
        return asked(found)[0][3]

    assert asks("vcore", "pods") == {"vcore": 2, "nvidia.com/gpu": 1, "pods": 1}
    assert asks("vcore", "cpu") == {"vcore": 2, "nvidia.com/gpu": 1}
    assert asks("cpu") == {"cpu": 2, "nvidia.com/gpu": 1}
    assert asks() == {"vcore": 2, "nvidia.com/gpu": 1}
    assert asks("vcore", "gpu") == {"vcore": 2, "gpu": 1}
    assert asks("vcore", "gpu", "nvidia.com/gpu") == {"vcore": 2, "nvidia.com/gpu": 1}


def test_an_unknown_class_of_pods_has_priority_0() -> None:
    template = pod(labels={"applicationId": "app"}, priorityClassName="gone")
    found, said = planned(
        "yunikorn", job(template=template), queues=[{"name": "root"}, {"name": "root.default", "parent": "root"}]
    )
    assert said == [
        "warning unknown-name /0/spec/template/spec/priorityClassName: priority class 'gone' is not known here: "
        "planned with priority 0"
    ]
    assert asked(found)[0][2] == 0


def operations(*specs: Json, **cluster: Any) -> tuple[list[Planned], list[str]]:
    findings = Findings()
    configuration = msgspec.convert({"engine": "ytsaurus", "queues": [{"name": "p"}]}, Configuration)
    here = Cluster(configuration, Beside(), findings, NOW, **cluster)
    found = plan_operations([((i,), one) for i, one in enumerate(specs)], here)
    return found, [f"{one.severity} {one.rule} {one.pointer}: {one.detail}" for one in findings.all()]


def test_an_operation_that_starts_no_jobs() -> None:
    for spec in ({"pool": "p"}, {"pool": "p", "tasks": {"t": {"job_count": 0}}}):
        found, said = operations(spec)
        assert (found, said) == (
            [], ["error no-pods /0: operation 'operation' starts no user jobs: 'tasks', 'mapper', 'reducer', "
                 "'reduce_combiner', 'joiner' are looked for"],
        )  # fmt: skip


def test_an_operation_says_what_the_scheduler_reads() -> None:
    spec = {
        "pool": "p", "title": "sort", "tasks": {"t": {"job_count": 2, "cpu_limit": 3}}, "is_gang": "yes",
        "weight": 2, "starvation": "starving", "resource_limits": {"cpu": 5},
    }  # fmt: skip
    found, said = operations(spec, counted={"user_slots"})
    (ask,) = found[0].asks
    assert (found[0].title, ask.id, ask.weight, ask.limit) == ("operation sort", "sort", 2, {"cpu": 5})
    assert ask.ytsaurus is not None
    assert (ask.ytsaurus.is_gang, ask.ytsaurus.resource_limits) == (False, {"cpu": 5})
    assert [(t.name, t.count, t.requests) for t in ask.tasks] == [
        ("t", 2, {"user_slots": 1, "cpu": 3, "memory": 512 << 20})
    ]
    assert said == ["error wrong-type /0/is_gang: Expected `bool`, got `str`"]
    found, said = operations(spec | {"is_gang": True})
    kept = found[0].asks[0].ytsaurus
    assert kept is not None
    assert (kept.is_gang, kept.starvation, said) == (True, None, [])


def wrapped(*components: Json) -> Json:
    version = "workload.codeflare.dev/v1beta2"
    return {
        "apiVersion": version,
        "kind": "AppWrapper",
        "metadata": {"name": "w"},
        "spec": {"components": list(components)},
    }


def test_a_component_says_where_its_pods_are() -> None:
    other = {"apiVersion": "x/v1", "kind": "Other", "inner": pod()}
    for path in (None, "inner"):
        one = {"template": other, "podSets": [{"replicas": 2} | ({"path": path} if path else {})]}
        found, said = planned("kueue", wrapped(one), queue="leaf")
        assert found == []
        at = "/0/spec/components/0/podSets/0/path"
        assert f"error missing-field {at}: a path that starts with 'template.' is expected" in said
    good = {"template": other, "podSets": [{"replicas": 2, "path": "template.inner"}]}
    found, said = planned("kueue", wrapped(good), queue="leaf")
    assert [(t.name, t.count) for t in found[0].asks[0].tasks] == [("w-0", 2)]


def test_pod_sets_have_names_of_their_own() -> None:
    replicated = [{"name": name, "template": {"spec": {"template": pod()}}} for name in ("a", "a")]
    job_set = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "s"}}
    _, said = planned("kueue", job_set | {"spec": {"replicatedJobs": replicated}}, queue="leaf")
    assert "error duplicate /0/spec/replicatedJobs/1/template/spec/template: a second pod set 'a'" in said
    del replicated[1]["name"]
    found, said = planned("kueue", job_set | {"spec": {"replicatedJobs": replicated}}, queue="leaf")
    assert "error missing-field /0/spec/replicatedJobs/1/name: a pod set needs a name" in said
    assert [t.name for t in found[0].asks[0].tasks] == ["a"]


def test_a_pod_set_has_so_many_pods() -> None:
    def of(replicas: int) -> Json:
        inner = {
            "replicas": replicas,
            "template": {"spec": {"parallelism": 2**20, "completions": 2**20, "template": pod()}},
        }
        spec = {"replicatedJobs": [inner | {"name": "a"}]}
        return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "s"}, "spec": spec}

    found, said = planned("kueue", of(2**11), queue="leaf")
    assert [t.count for t in found[0].asks[0].tasks] == [MOST_PODS]
    found, said = planned("kueue", of(2**11 + 1), queue="leaf")
    assert found == []
    assert f"error bad-value /0/spec/replicatedJobs/0: {(2**11 + 1) * 2**20} pods are too many" in said


def spark(**spec: Any) -> Json:
    body = {"driver": {"cores": 1, "memory": "1g"}, "executor": {"cores": 2, "memory": "2g"}, **spec}
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "s"},
        "spec": body,
    }


@pytest.mark.parametrize(
    ("more", "executors"),
    [
        ({}, 2), ({"dynamicAllocation": {"enabled": True, "minExecutors": 3}}, 3),
        ({"dynamicAllocation": {"enabled": True, "initialExecutors": 4, "minExecutors": 3}}, 4),
        ({"dynamicAllocation": {"enabled": False, "minExecutors": 3}}, 2),
        ({"dynamicAllocation": {"enabled": True, "initialExecutors": 0, "minExecutors": 3}}, 0),
        ({"executor": {"instances": 5}, "dynamicAllocation": {"enabled": True, "minExecutors": 3}}, 5),
    ],
)  # fmt: skip
def test_how_many_executors_spark_starts(more: Json, executors: int) -> None:
    found, said = planned("kueue", spark(**more), queue="leaf")
    counts = {t.name: t.count for t in found[0].asks[0].tasks}
    assert counts == {"driver": 1} | ({"executor": executors} if executors else {})
    assumed = executors == 2
    assert any("no number of executors: Spark starts" in one for one in said) == assumed


@pytest.mark.parametrize(
    ("factor", "fine"), [("0", True), ("1000", True), ("1000.1", False), ("-0.1", False), ("x", False)]
)
def test_the_memory_that_spark_adds_is_a_factor(factor: str, fine: bool) -> None:
    _, said = planned("kueue", spark(memoryOverheadFactor=factor), queue="leaf")
    words = "error bad-value /0/spec/memoryOverheadFactor: a number from 0 to 1000 is expected"
    assert (words in said) is not fine


def test_limits_of_others_than_containers_fill_in_nothing_and_what_is_shared_stays_shared() -> None:
    limits = {
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "ns"},
        "spec": {
            "limits": [
                {"type": "Pod", "default": {"cpu": 9}}, {"type": "Container", "defaultRequest": {"memory": 5}},
            ]
        },
    }  # fmt: skip
    found, _ = planned("kueue", limits, job(), queue="leaf")
    assert asked(found)[0][3] == {"cpu": 1, "memory": 5}
    shared, listed = {"a": 1}, [1]
    root = Reader({"one": shared, "two": shared, "three": listed, "four": [listed]}, (), Findings())
    made = Admission().admitted(root, "ns", exists=False).value
    assert made == root.value
    assert made["one"] is made["two"]
    assert made["three"] is made["four"][0]
    assert made["one"] is not shared
