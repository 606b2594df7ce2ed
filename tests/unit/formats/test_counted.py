# pyright: reportPrivateUsage=false
"""How many pods of which size: defaults of controllers, what multiplies, and where too many are said to be."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import yaml

from app.base.documents import Unreadable
from app.formats import export
from app.formats.admission import Admission
from app.formats.reader import Findings
from app.formats.work import SPECIAL, pods
from app.formats.work import pods as kai_work
from app.formats.work.read import Beside, Cluster, read_work
from app.formats.ytsaurus import documents
from app.formats.ytsaurus.orchid import _wanted, plan_operations
from app.solver.model.configuration import Configuration
from tests.support.bounds import Bounded
from tests.support.kueue_names import made
from tests.support.left_out import imported
from tests.support.work import of, pod

Json = dict[str, Any]


def works(*manifests: Json, kueue: bool = False, beside: tuple[Json, ...] = ()) -> list[Any]:
    documents: list[Any] = [((i,), one) for i, one in enumerate((*beside, *manifests))]
    with_defaults = Beside(admission=Admission(kueue=kueue))
    return read_work(documents, with_defaults, Findings(), namespace="default", special=SPECIAL)


def spark(conf: Json | None = None, kind: str = "Scala", **executor: Any) -> Any:
    spec: Json = {"type": kind, "driver": {}, "executor": {"instances": 1} | executor, "sparkConf": conf or {}}
    (work,) = works(of("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec))
    return work.pod_sets[-1]


MIB = 2**20


@pytest.mark.parametrize(
    ("conf", "executor", "kind", "mib"),
    [
        ({}, {}, "Scala", 1024 + 384), ({}, {"memory": "8g"}, "Scala", 8192 + 819),
        ({}, {"memory": "8g"}, "R", 8192 + 3276), ({"spark.executor.memory": "2g"}, {}, "Java", 2048 + 384),
        ({"spark.executor.pyspark.memory": "100m"}, {}, "Scala", 1024 + 384 + 100),
        ({"spark.executor.memoryOverhead": "1m"}, {}, "Scala", 1025),
        ({}, {"memoryOverhead": "2g", "memory": "1g"}, "Scala", 3072),
        ({"spark.executor.memoryOverheadFactor": "1", "spark.kubernetes.memoryOverheadFactor": "3"}, {}, "Scala", 2048),
        ({"spark.kubernetes.memoryOverheadFactor": "2"}, {}, "Scala", 3072),
        ({"spark.kubernetes.memoryOverheadFactor": "0"}, {}, "Scala", 1024 + 384),
        ({"spark.kubernetes.memoryOverheadFactor": "1000"}, {"memory": "1m"}, "Scala", 1001),
        ({"spark.kubernetes.memoryOverheadFactor": "1001"}, {}, "Scala", 1024 + 384),
        ({}, {"memory": "2048k"}, "Scala", 2 + 384),
    ],
)  # fmt: skip
def test_memory_of_an_executor_of_spark(conf: Json, executor: Json, kind: str, mib: int) -> None:
    assert spark(conf, kind, **executor).pod.requests["memory"] == mib * MIB


def test_the_driver_has_no_python_beside_it() -> None:
    spec: Json = {"type": "Scala", "driver": {}, "executor": {"instances": 1},
                  "sparkConf": {"spark.executor.pyspark.memory": "100m"}}  # fmt: skip
    (work,) = works(of("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec))
    assert work.pod_sets[0].pod.requests["memory"] == (1024 + 384) * MIB


def test_what_else_a_role_of_spark_says_of_its_pods() -> None:
    template: Json = {
        "spec": {"containers": [{"name": "s", "env": []}, {"name": "t", "resources": {"requests": {"cpu": 1}}}]}
    }
    found = spark(
        nodeSelector={"a": "b"}, tolerations=[{"key": "k", "operator": "Exists"}], priorityClassName="high",
        sidecars=[{"name": "side", "resources": {"requests": {"cpu": 2}}}], template=template, cores=3,
        gpu={"name": "nvidia.com/gpu"}, labels={"l": "m"}, annotations={"n": "o"},
    )  # fmt: skip
    assert found.pod.requests == {"cpu": 6000, "memory": (1024 + 384) * MIB}, "no number of GPUs is none"
    assert (found.pod.node_selector, found.pod.priority_class) == ({"a": "b"}, "high")
    assert [one.key for one in found.pod.tolerations] == ["k"]
    assert (found.labels, found.annotations) == ({"l": "m"}, {"n": "o"})
    assert "nvidia.com/gpu" not in spark(gpu={"quantity": 2}).pod.requests
    assert spark({"spark.kubernetes.executor.request.cores": "250m"}, cores=4).pod.requests["cpu"] == 250
    assert spark({"spark.executor.cores": "5"}).pod.requests["cpu"] == 5000


@pytest.mark.parametrize(
    ("dynamic", "count"),
    [({"enabled": True, "initialExecutors": 4, "minExecutors": 3}, 4), ({"enabled": True, "minExecutors": 3}, 3),
     ({"enabled": False, "initialExecutors": 4}, 2), ({"enabled": True}, 2)],
)  # fmt: skip
def test_how_many_executors_spark_starts(dynamic: Json, count: int) -> None:
    spec: Json = {"type": "Scala", "driver": {}, "executor": {}, "dynamicAllocation": dynamic}
    (work,) = works(of("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec))
    assert [one.count for one in work.pod_sets] == [1, count]


def test_the_fewest_of_a_group_of_workers_counts_its_hosts() -> None:
    group = {"groupName": "g", "replicas": 3, "minReplicas": 2, "maxReplicas": 9, "numOfHosts": 4, "template": pod()}
    plain = {"groupName": "p", "replicas": 3, "minReplicas": 2, "template": pod()}
    spec = {"headGroupSpec": {"template": pod()}, "workerGroupSpecs": [group, plain]}
    (work,) = works(of("ray.io/v1", "RayCluster", spec))
    assert [(one.name, one.count, one.least) for one in work.pod_sets] == [("head", 1, None), ("g", 12, 8), ("p", 3, 2)]


def test_default_requests_of_a_train_job_are_counted_as_by_who_decides() -> None:
    """Its pods are not made yet: under Kueue a default request goes before a limit of their own."""
    node = {"name": "node", "resources": {"limits": {"cpu": 4}}}
    jobs = [{"name": "node", "template": {"spec": {"template": {"spec": {"containers": [node]}}}}}]
    version = "trainer.kubeflow.org/v1alpha1"
    runtime = of(version, "ClusterTrainingRuntime", {"template": {"spec": {"replicatedJobs": jobs}}}, name="torch")
    limits = of("v1", "LimitRange", {"limits": [{"type": "Container", "defaultRequest": {"cpu": 2}}]})
    manifest = of(version, "TrainJob", {"runtimeRef": {"name": "torch"}})
    for kueue, cpu in ((True, 2000), (False, 4000)):
        (work,) = works(manifest, kueue=kueue, beside=(runtime, limits))
        assert [one.pod.requests["cpu"] for one in work.pod_sets] == [cpu]


LEAF = {"labels": {"kai.scheduler/queue": "leaf"}}


@pytest.mark.parametrize(("replicas", "ids"), [(1, ["default/x"]), (2, ["default/x-0", "default/x-1"])])
def test_kai_counts_replicas_where_there_are_several(replicas: int, ids: list[str]) -> None:
    template = {"size": 2, "workerTemplate": pod()}
    spec = {"replicas": replicas, "leaderWorkerTemplate": template}
    version = "leaderworkerset.x-k8s.io/v1"
    configuration = msgspec.convert({"queues": [{"name": "leaf"}]}, Configuration)
    here = Cluster(configuration, Beside(), Findings(), datetime(2026, 11, 22, tzinfo=UTC))
    (found,) = kai_work.plan_kai(works(of(version, "LeaderWorkerSet", spec, **LEAF)), here)
    assert [ask.id for ask in found.asks] == ids


def test_where_too_many_pods_come_from(bounded: Bounded) -> None:
    """The field that counts them, where it is one."""
    bounded(pods, MOST_PODS=5)
    inner = {"replicas": 6, "name": "a", "template": {"spec": {"template": pod()}}}
    roles = {"Master": {"template": pod()}, "Worker": {"replicas": 6, "template": pod()}}
    for manifest, at in (
        (of("apps/v1", "Deployment", {"replicas": 6, "template": pod()}), "/0/spec/replicas"),
        (of("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [inner]}), "/0"),
        (of("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": roles}), "/0"),
        (of("apps/v1", "Deployment", {"replicas": 5, "template": pod()}), None),
    ):
        findings = Findings()
        here = Cluster(Configuration(), Beside(), findings, datetime(2026, 11, 22, tzinfo=UTC))
        assert pods.too_many(works(manifest), here) is (at is not None)
        assert [(one.rule, one.pointer) for one in findings.all()] == ([] if at is None else [("too-many", at)])


def operation(**spec: Any) -> Any:
    configuration = msgspec.convert({"engine": "ytsaurus", "queues": [{"name": "p"}, {"name": "q"}]}, Configuration)
    here = Cluster(configuration, Beside(), Findings(), datetime(2026, 11, 22, tzinfo=UTC))
    found = plan_operations([((0,), {"mapper": {}} | spec)], here)
    return found[0].asks[0] if found else None


def test_the_pool_of_an_operation_is_its_own_or_that_of_a_tree() -> None:
    trees = {"a": {"weight": 1}, "b": {"pool": "q"}, "c": {"pool": "p"}}
    assert operation(scheduling_options_per_pool_tree=trees).queue == "q"
    assert operation(pool="p", scheduling_options_per_pool_tree=trees).queue == "p"
    assert operation(scheduling_options_per_pool_tree={"a": {}}) is None


def test_a_job_of_ytsaurus_has_its_defaults() -> None:
    """One cpu, 512 MiB, no GPU; one job where nobody says how many."""
    (task,) = operation(pool="p").tasks
    assert (task.name, task.count, task.requests) == ("mapper", 1, {"cpu": 1, "memory": 512 * MIB})
    (task,) = operation(pool="p", mapper={"cpu_limit": 0.5, "gpu_limit": 2, "memory_limit": 7}, job_count=3).tasks
    assert (task.count, task.requests) == (3, {"cpu": 0.5, "memory": 7, "gpu": 2})


@pytest.mark.parametrize(
    ("more", "each", "count", "wanted"),
    [
        ({}, {"cpu": 2}, 0, {}), ({"cpu": 0, "memory": -1}, {}, 0, {}),
        ({"cpu": 7, "memory": 40}, {"cpu": 2, "memory": 10}, 3, {"cpu": 2, "memory": 10}),
        ({"cpu": 7}, {"cpu": 2, "memory": 10, "gpu": 0}, 3, {"cpu": 2, "memory": 10, "gpu": 0}),
        ({"cpu": 7}, {"gpu": 1}, 0, {"gpu": 1}),
        ({"user_slots": 3, "cpu": 7}, {}, 3, {"user_slots": 1, "cpu": 3}), ({"cpu": 7}, {}, 1, {"cpu": 7}),
    ],
)  # fmt: skip
def test_how_many_jobs_more_an_operation_wants(more: Any, each: Any, count: int, wanted: Any) -> None:
    assert _wanted(more, each) == (count, wanted)


def test_what_a_document_of_yson_may_have(monkeypatch: pytest.MonkeyPatch, bounded: Bounded) -> None:
    class Node(dict[bytes, Any]):
        attributes: Any = {b"id": 1}

    document = {b"a": [1, {b"b": Node({b"c": True})}]}
    expected = {"a": [1, {"b": {"$attributes": {"id": 1}, "$value": {"c": True}}}]}
    bounded(documents, MAX_VALUES=8, MAX_DEPTH=6)
    assert documents._plain(document) == expected
    for name, most, detail in (
        ("MAX_VALUES", 7, "more than 7 values"),
        ("MAX_DEPTH", 5, "nested deeper than 5 levels"),
    ):
        with monkeypatch.context() as patched:
            Bounded(patched)(documents, **{name: most})
            if name == "MAX_DEPTH":
                assert documents._plain([[[[1]]]]) == [[[[1]]]]
                with pytest.raises(Unreadable, match=detail):
                    documents._plain({b"a": {b"b": {b"c": {b"d": {b"e": 1}}}}})
                continue
            with pytest.raises(Unreadable, match=detail):
                documents._plain(document)


def test_brackets_of_yson_are_counted_as_they_open_and_close() -> None:
    documents._refuse_depth(b"{" + b'a=[<x="[[">{}];' * 500 + b"}")
    documents._refuse_depth(b"[" * 400 + b"]" * 400)
    documents._refuse_depth(b"\x01" + b"[" * 401)
    with pytest.raises(Unreadable, match="nested deeper than 200 levels"):
        documents._refuse_depth(b"[]" + b"[" * 401)


def test_a_quota_of_kueue_is_none_unless_it_is_said() -> None:
    quota = {"cpu": {"borrowing_limit": 3}, "memory": {"guaranteed": 0}, "gpu": {"guaranteed": "unlimited"}}
    found = export(
        msgspec.convert({"engine": "kueue", "queues": [{"name": "q", "quota": quota}]}, Configuration), "kueue"
    )
    (document,) = yaml.safe_load_all(found.text)
    ((flavor,),) = [group["flavors"] for group in document["spec"]["resourceGroups"]]
    assert flavor["resources"] == [
        {"name": "cpu", "nominalQuota": 0, "borrowingLimit": 3}, {"name": "memory", "nominalQuota": 0},
        {"name": "gpu", "nominalQuota": 0},
    ]  # fmt: skip


def test_pools_beside_one_that_is_too_deep_are_read() -> None:
    deep: Json = {}
    for i in range(202, 0, -1):
        deep = {"pools": {f"p{i}": deep}}
    found = imported("ytsaurus", {"pools": {"a": {}, **deep["pools"], "z": {}}})
    names = [queue.name for queue in found.configuration.queues]
    assert (names[0], names[-1]) == ("a", "z")
    assert sum(one.detail.startswith("pools nested deeper") for one in found.findings) == 1


def test_a_cohort_with_the_name_of_a_cluster_queue_takes_nobody_elses() -> None:
    found = imported("kueue", made("ClusterQueue", "a"), made("ClusterQueue", "a.cohort"), made("Cohort", "a.cohort"))
    assert [queue.name for queue in found.configuration.queues] == ["a", "a.cohort", "a.cohort.cohort"]


def workload(count: int | None, usage: Json, name: str = "main", *, of_spec: int = 3, done: int = 0) -> Any:
    given = {} if count is None else {"count": count}
    assignment = {"name": name, "resourceUsage": usage, **given}
    spec: Json = {"podSets": [{"name": "main", "count": of_spec, "template": {"spec": {}}}]}
    reclaimable = [{"name": "main", "count": done}]
    status = {"admission": {"clusterQueue": "q", "podSetAssignments": [assignment]}, "reclaimablePods": reclaimable}
    document = of("kueue.x-k8s.io/v1beta2", "Workload", spec) | {"status": status}
    (task,) = imported("kueue", document).state.workloads[0].tasks
    return task.count, task.requests


def test_what_is_admitted_is_counted_by_pod_where_it_divides() -> None:
    assert workload(2, {"cpu": 4}) == (2, {"cpu": 2})
    assert workload(None, {"cpu": 6}) == (3, {"cpu": 2})
    assert workload(None, {"cpu": 6}, "other") == (1, {"cpu": 6})
    assert workload(1000, {"cpu": "1001m"}, of_spec=1000) == (1, {"cpu": "1001m"}), "as a whole where it does not"
    assert workload(0, {"cpu": 4}) == (0, {"cpu": 4})


def test_of_what_is_admitted_those_pods_count_that_are_not_done() -> None:
    """The fewer of those admitted and those of the spec that are left."""
    assert workload(10, {"cpu": 10}, of_spec=10, done=4) == (6, {"cpu": 1})
    assert workload(5, {"cpu": 5}, of_spec=10, done=4) == (5, {"cpu": 1}), "admitted in part"
    assert workload(5, {"cpu": 5}, of_spec=10, done=8) == (2, {"cpu": 1})
    assert workload(3, {"cpu": "10m"}, of_spec=3, done=1) == (2, {"cpu": "3m"}), "whole thousandths a pod"
    assert workload(3, {"cpu": 3}, of_spec=3, done=9) == (0, {"cpu": 1})


def test_strategies_are_written_beside_a_switch_that_is_off() -> None:
    """As v1beta1 has it; v1beta2 has no switch, and no place for them."""
    made_of = {"settings": {"kueue": {"preemption_strategies": ["LessThanInitialShare"]}}}
    for version, there in (("v1beta1", True), ("v1beta2", False)):
        native = {"kueue": {"apiVersion": f"config.kueue.x-k8s.io/{version}"}}
        found = export(msgspec.convert(made_of | {"native": native}, Configuration), "kueue")
        assert ("enable: false" in found.text and "LessThanInitialShare" in found.text) is there
        assert ("/settings/kueue/preemption_strategies" in [one.pointer for one in found.findings]) is not there


def test_yunikorn_reads_names_in_lower_case() -> None:
    queues = [{"name": "root"}, {"name": "root.A", "parent": "root"}, {"name": "root.b", "parent": "root"}]
    found = export(msgspec.convert({"queues": queues}, Configuration), "yunikorn").findings
    assert [(one.pointer, one.detail) for one in found] == [
        ("/queues/1/name", "YuniKorn reads queue names in lower case"),
    ]


def test_what_a_pool_tree_keeps_stands_where_it_stood() -> None:
    people = {"acl": [1], "owner": "me", "abc": {"id": 3}}
    tree: Json = {"nodes_filter": "a", "odd": 7, **people, "pools": {"p": {}, "": {}, "q": {}}}
    found = imported("ytsaurus", tree)
    assert [queue.name for queue in found.configuration.queues] == ["p", "q"]
    assert found.configuration.native is not None
    assert found.configuration.native.ytsaurus == {"nodes_filter": "a", **people, "config": {"odd": 7}}
    (odd,) = [one for one in found.findings if one.pointer == "/odd"]
    assert (odd.rule, odd.severity) == ("not-decided", "warning")
    without = imported("ytsaurus", {"owner": "me", "pools": {"p": {}}}).configuration.native
    assert without is not None
    assert without.ytsaurus == {"owner": "me"}
    lost = export(msgspec.convert({"native": {"objects": [{"kind": "X"}]}}, Configuration), "ytsaurus").findings
    assert [(one.pointer, one.detail) for one in lost] == [("/native/objects/0", "X means nothing to ytsaurus")]


@pytest.mark.parametrize(
    ("version", "kind", "severity"),
    [("v1", "Service", "info"), ("apps/v1", "Deployment", "info"), ("kai.scheduler/v1", "Surprise", "warning"),
     ("scheduling.run.ai/v2", "Surprise", "warning"), ("kueue.x-k8s.io/v1beta2", "Surprise", "warning"),
     ("kubescheduler.config.k8s.io/v1", "Surprise", "warning")],
)  # fmt: skip
def test_what_else_a_cluster_has_is_in_no_answer(version: str, kind: str, severity: str) -> None:
    source = (of(version, kind, {}), of("scheduling.run.ai/v2", "Queue", {}))
    found = imported("kueue" if version.startswith("kueue") else "kai", *source)
    told = [one.severity for one in found.findings if one.rule == "unknown-kind"]
    assert told == [severity]
    assert any(one.rule == "unknown-kind" for one in found.configuration.findings) == (severity == "warning")


def test_only_kais_own_objects_are_kais() -> None:
    for version, kind, known in (
        ("kai.scheduler/v1", "Topology", True), ("kai.scheduler/v1", "Surprise", False),
        ("other.example/v1", "Topology", False), ("other.example/v1", "Config", False),
    ):  # fmt: skip
        said = [
            one.rule for one in imported("kai", of(version, kind, {}), of("scheduling.run.ai/v2", "Queue", {})).findings
        ]
        assert ("unknown-kind" not in said) is known, (version, kind, said)
