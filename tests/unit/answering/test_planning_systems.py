"""Plans under YuniKorn, KAI Scheduler, YTsaurus and kube-scheduler: what a manifest becomes, and what becomes of it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from app.answering.plan import plan
from app.answering.sources import nothing_stored
from app.solver.model.problems import InvalidInput

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
CLUSTERS: dict[str, dict[str, Any]] = {
    "yunikorn": {
        "configuration": {
            "engine": "yunikorn",
            "queues": [
                {"name": "root", "yunikorn": {"parent": True}},
                {"name": "root.etl", "parent": "root", "quota": {"vcore": {"guaranteed": 4}}},
            ],
            "native": {
                "yunikorn": {
                    "placementrules": [
                        {"name": "provided", "create": True},
                        {"name": "fixed", "value": "root.default", "create": True},
                    ]
                }
            },
        },
        "state": {"nodes": [{"name": "n1", "capacity": {"vcore": 8, "memory": "32Gi", "pods": 110}}]},
    },
    "kai": {
        "configuration": {
            "engine": "kai",
            "queues": [
                {"name": "org", "quota": {"gpu": {"guaranteed": 8}}},
                {"name": "lab", "parent": "org", "quota": {"gpu": {"guaranteed": 8}}},
            ],
        },
        "state": {"nodes": [{"name": "n1", "capacity": {"gpu": 8, "cpu": 64, "memory": "512Gi"}}]},
    },
    "ytsaurus": {
        "configuration": {"engine": "ytsaurus", "queues": [{"name": "research"}, {"name": "prod"}]},
        "state": {"nodes": [{"name": "e1", "capacity": {"user_slots": 8, "cpu": 8, "memory": "32Gi"}}]},
    },
}


def planned(system: str, manifest: Any, **more: Any) -> dict[str, Any]:
    document = {**CLUSTERS[system], "manifest": manifest, **more}
    return json.loads(plan(json.dumps(document).encode(), NOW, nothing_stored()))


def pod(labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **requests: Any) -> Any:
    metadata = {"labels": labels or {}, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "m", "resources": {"requests": requests}}]}}


def of(version: str, kind: str, spec: dict[str, Any], **labels: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "labels": labels}, "spec": spec}


ETL = {"applicationId": "etl-1", "queue": "root.etl"}


def test_under_yunikorn_each_pod_asks() -> None:
    answer = planned("yunikorn", of("batch/v1", "Job", {"parallelism": 3, "template": pod(ETL, cpu=3)}))
    assert [(d["ask"], d["outcome"]) for d in answer["decisions"]] == [
        ("default/x-0", "admit"), ("default/x-1", "admit"), ("default/x-2", "wait"),
    ]  # fmt: skip
    assert answer["asks"][0]["tasks"][0]["requests"] == {"vcore": 3, "pods": 1}
    assert [ask.get("originator", False) for ask in answer["asks"]] == [True, False, False]
    (queue,) = (q for q in answer["queues"] if q["queue"] == "root.etl")
    vcore = queue["resources"]["vcore"]
    assert (vcore["guaranteed"], vcore["used_before"], vcore["used_after"]) == (4, 0, 6)


def test_pods_of_an_application_that_runs_already_join_it() -> None:
    state = {**CLUSTERS["yunikorn"]["state"], "workloads": [{"id": "etl-1", "queue": "root.etl", "tasks": []}]}
    answer = planned("yunikorn", of("v1", "Pod", pod(cpu=1)["spec"], **ETL), state=state)
    assert answer["asks"][0]["workload"] == "etl-1"


def test_task_groups_ask_for_placeholders_first() -> None:
    groups = [
        {"name": "driver", "minMember": 1, "minResource": {"cpu": 1}},
        {"name": "executor", "minMember": 2, "minResource": {"cpu": 2, "memory": "1Gi"}},
    ]
    annotations = {
        "yunikorn.apache.org/task-groups": json.dumps(groups), "yunikorn.apache.org/task-group-name": "driver",
    }  # fmt: skip
    answer = planned("yunikorn", of("batch/v1", "Job", {"parallelism": 2, "template": pod(ETL, annotations, cpu=1)}))
    assert [(ask["id"], ask["tasks"][0].get("placeholder", False)) for ask in answer["asks"]] == [
        ("default/tg-x-driver-0", True), ("default/tg-x-executor-0", True), ("default/tg-x-executor-1", True),
        ("default/x-1", False),
    ]  # fmt: skip
    assert answer["asks"][1]["tasks"][0]["requests"] == {"vcore": 2, "memory": 2**30, "pods": 1}


def test_a_placeholder_goes_where_its_group_may_and_not_where_its_pods_may() -> None:
    """The pods tolerate a taint that their group does not; the group wants a label."""
    toleration = {"key": "spot", "operator": "Exists"}
    group: dict[str, Any] = {"name": "a", "minMember": 1, "minResource": {"cpu": 1}, "topologySpreadConstraints": [{}]}
    template = pod(ETL, cpu=1)
    template["spec"] |= {"tolerations": [toleration], "nodeSelector": {"zone": "x"}}
    for own, expected in (
        ({}, {}),
        (
            {"tolerations": [toleration], "nodeSelector": {"zone": "y"}},
            {"tolerations": [{"key": "spot", "operator": "Exists"}], "node_selector": {"zone": "y"}},
        ),
    ):
        template["metadata"]["annotations"] = {"yunikorn.apache.org/task-groups": json.dumps([group | own | {"x": 1}])}
        answer = planned("yunikorn", of("batch/v1", "Job", {"template": template}))
        holder, beyond = (ask["tasks"][0] for ask in answer["asks"])
        assert {key: holder[key] for key in ("tolerations", "node_selector") if key in holder} == expected
        assert beyond["node_selector"] == {"zone": "x"}
        at = "/manifest/metadata/annotations/yunikorn.apache.org~1task-groups/0"
        assert [f["pointer"] for f in answer["findings"]] == [f"{at}/topologySpreadConstraints", f"{at}/x"]


def test_a_task_group_without_name_or_size_is_an_error_and_left_out() -> None:
    groups: list[Any] = [
        {"name": "a"},
        {"minMember": 1},
        {"name": "b", "minMember": 1},
        {"name": "c", "minMember": 4000},
    ]
    for definition, ids, wrong in (
        (groups, ["default/tg-x-b-0", "default/x-0"], ["/0", "/1", "/3"]),
        ({"name": "a"}, ["default/x-0"], [""]),
    ):
        annotations = {"yunikorn.apache.org/task-groups": json.dumps(definition)}
        answer = planned("yunikorn", of("batch/v1", "Job", {"template": pod(ETL, annotations, cpu=1)}))
        assert [ask["id"] for ask in answer["asks"]] == ids
        at = "/manifest/metadata/annotations/yunikorn.apache.org~1task-groups"
        assert [(f["severity"], f["pointer"]) for f in answer["findings"]] == [("error", at + i) for i in wrong]


def test_pods_are_named_after_replica_and_pod_set_where_there_are_several() -> None:
    both = {"size": 2, "leaderTemplate": pod(ETL, cpu=1), "workerTemplate": pod(ETL, cpu=1)}
    for replicas, names in (
        (1, ["leader-0", "worker-0"]),
        (2, ["0-leader-0", "0-worker-0", "1-leader-0", "1-worker-0"]),
    ):
        spec = {"replicas": replicas, "leaderWorkerTemplate": both}
        answer = planned("yunikorn", of("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec))
        assert [ask["id"] for ask in answer["asks"]] == [f"default/x-{name}" for name in names]
    assert planned("yunikorn", of("v1", "Pod", pod(cpu=1)["spec"], **ETL))["asks"][0]["id"] == "default/x"


def test_a_queue_that_placement_would_make_is_made() -> None:
    labels = {**ETL, "queue": "root.users.ann"}
    answer = planned("yunikorn", of("batch/v1", "Job", {"template": pod(labels, cpu=3)}))
    assert (answer["outcome"], answer["work"][0]["queue"]) == ("admit", "root.users.ann")
    assert {q["queue"] for q in answer["queues"]} == {"root", "root.users", "root.users.ann"}


def test_labels_that_do_not_reach_the_pods_are_a_finding() -> None:
    answer = planned("yunikorn", of("batch/v1", "Job", {"template": pod(cpu=1)}, queue="root.etl"))
    assert "put YuniKorn's labels into the pod template" in answer["findings"][0]["detail"]
    ray = {"headGroupSpec": {"template": pod(cpu=1)}}
    assert planned("yunikorn", of("ray.io/v1", "RayCluster", ray, queue="root.etl"))["work"][0]["queue"] == "root.etl"


KAI = {"kai.scheduler/queue": "lab"}
GPU = {"nvidia.com/gpu": 1}


def job_set(**spec: Any) -> dict[str, Any]:
    """One pod of a driver, and two jobs of two workers."""
    return of("jobset.x-k8s.io/v1alpha2", "JobSet", {**spec, "replicatedJobs": [
        {"name": "driver", "template": {"spec": {"template": pod(**GPU)}}},
        {"name": "worker", "replicas": 2, "template": {"spec": {"parallelism": 2, "template": pod(**GPU)}}},
    ]}, **KAI)  # fmt: skip


def grouped(*pods: tuple[str, str], **spec: Any) -> list[dict[str, Any]]:
    """A PodGroup ``g`` and pods of one GPU each: their names, and the group that each names."""
    made = [of("scheduling.run.ai/v2alpha2", "PodGroup", {"queue": "lab", **spec})]
    made[0]["metadata"] = {"name": "g"}
    for name, group in pods:
        one = of("v1", "Pod", pod(**GPU)["spec"])
        one["metadata"] = {"name": name, "annotations": {"pod-group-name": group}}
        made.append(one)
    return made


def test_pods_that_name_a_pod_group_beside_them_are_decided_with_it() -> None:
    nine = grouped(*((f"p{i}", "g") for i in range(9)), minMember=9, priorityClassName="build")
    for count, outcome in ((8, "admit"), (9, "infeasible")):
        documents = [{**nine[0], "spec": {**nine[0]["spec"], "minMember": count}}, *nine[1 : count + 1]]
        answer = planned("kai", {"kind": "List", "items": documents})
        (ask,) = answer["asks"]
        assert (ask["id"], len(ask["tasks"]), ask["min_available"], ask["priority"]) == (
            "default/g", count, count, 100,
        )  # fmt: skip
        assert (answer["work"][0]["object"], answer["outcome"]) == ("PodGroup default/g", outcome)


def test_a_pod_group_of_kai_is_there_and_in_a_leaf() -> None:
    with pytest.raises(InvalidInput) as refused:
        planned("kai", {"kind": "List", "items": grouped(("p", "other"))})
    (problem,) = refused.value.problems
    assert problem.pointer == "/manifest/items/1/metadata/annotations/pod-group-name"
    assert "there is no PodGroup 'default/other' beside it" in problem.detail
    with pytest.raises(InvalidInput, match="'org' is a parent queue"):
        planned("kai", {"kind": "List", "items": grouped(("p", "g"), queue="org")})
    answer = planned("kai", {"kind": "List", "items": grouped(("p", "g"), queue="ghost")}, queue="lab")
    assert answer["asks"][0]["queue"] == "lab"


@pytest.mark.parametrize(
    ("manifest", "groups"),
    [
        (of("batch/v1", "Job", {"parallelism": 2, "template": pod(**GPU)}, **KAI), [(1, 1, 50), (1, 1, 50)]),
        (of("apps/v1", "Deployment", {"replicas": 2, "template": pod(**GPU)}, **KAI), [(1, 1, 125), (1, 1, 125)]),
        (of("apps/v1", "StatefulSet", {"replicas": 2, "template": pod(KAI, **GPU)}), [(2, 1, 50)]),
        (of("v1", "Pod", pod(**GPU)["spec"], **KAI, priorityClassName="build"), [(1, 1, 100)]),
        (
            of("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {
                "Master": {"template": pod(**GPU)}, "Worker": {"replicas": 3, "template": pod(**GPU)}}}, **KAI),
            [(4, 4, 50)],
        ),
        (
            of("kubeflow.org/v1", "PyTorchJob", {"elasticPolicy": {"minReplicas": 2}, "pytorchReplicaSpecs": {
                "Worker": {"replicas": 3, "template": pod(**GPU)}}}, **KAI),
            [(3, 2, 50)],
        ),
        (
            of("ray.io/v1", "RayCluster", {
                "headGroupSpec": {"template": pod(cpu=1)},
                "workerGroupSpecs": [{"groupName": "w", "replicas": 4, "minReplicas": 2, "template": pod(**GPU)}],
            }, **KAI),
            [(5, 3, 50)],
        ),
        (
            of("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {
                "replicas": 2, "leaderWorkerTemplate": {"size": 3, "workerTemplate": pod(**GPU)}}, **KAI),
            [(3, 3, 50), (3, 3, 50)],
        ),
        (job_set(), [(1, 1, 50), (4, 4, 50)]),
        (job_set(startupPolicy={"startupPolicyOrder": "InOrder"}), [(1, 1, 50), (4, 4, 50)]),
        (job_set(startupPolicy={"startupPolicyOrder": "AnyOrder"}), [(5, 5, 50)]),
        (
            of("batch/v1", "CronJob", {"jobTemplate": {
                "metadata": {"labels": {**KAI, "priorityClassName": "build"}},
                "spec": {"parallelism": 3, "template": pod(**GPU)}}}),
            [(3, 1, 100)],
        ),
    ],
)  # fmt: skip
def test_kai_groups_pods_as_its_pod_grouper_does(manifest: Any, groups: list[tuple[int, int, int]]) -> None:
    """Pods, how many of them must start together, and the priority, of each pod group."""
    answer = planned("kai", manifest)
    assert [(len(a["tasks"]), a["min_available"], a["priority"]) for a in answer["asks"]] == groups
    assert answer["outcome"] == "admit"
    assert [ask.get("preemptible") for ask in answer["asks"]] == [p < 100 for _, _, p in groups]


def test_a_share_of_a_gpu_counts_under_kai() -> None:
    manifest = of("v1", "Pod", pod(cpu=1)["spec"], **KAI)
    manifest["metadata"]["annotations"] = {"gpu-fraction": "0.5"}
    answer = planned("kai", manifest)
    assert answer["work"][0]["requests"] == {"cpu": 1, "nvidia.com/gpu": 0.5}
    (queue,) = (q for q in answer["queues"] if q["queue"] == "lab")
    assert queue["resources"]["gpu"]["used_after"] == 0.5


def test_kai_names_the_queues_that_there_are() -> None:
    with pytest.raises(InvalidInput, match="there is no queue 'default-queue'; there are 'lab'"):
        planned("kai", of("batch/v1", "Job", {"template": pod(**GPU)}))


def test_an_operation_of_ytsaurus_is_one_ask() -> None:
    spec = {"pool": "prod", "title": "train", "weight": 2, "tasks": {"a": {"job_count": 3, "cpu_limit": 2}}}
    answer = planned("ytsaurus", {"operation_type": "vanilla", "spec": spec})
    assert answer["asks"] == [
        {
            "id": "train", "queue": "prod", "created_at": "2026-03-02T09:30:00Z", "weight": 2.0,
            "tasks": [{"name": "a", "count": 3, "requests": {"user_slots": 1, "cpu": 2, "memory": 512 << 20}}],
        }
    ]  # fmt: skip
    assert answer["outcome"] == "admit"
    (pool,) = (q for q in answer["queues"] if q["queue"] == "prod")
    assert (pool["resources"]["cpu"]["used_before"], pool["resources"]["cpu"]["used_after"]) == (0, 6)
    with pytest.raises(InvalidInput, match="there is no pool 'sales'; there are 'research', 'prod'"):
        planned("ytsaurus", {**spec, "pool": "sales"})
    counted = planned("ytsaurus", {"pool": "prod", "mapper": {"memory_limit": 2**30}})
    assert "say job_count" in counted["findings"][0]["detail"]


KUBE_SCHEDULER: Any = {
    "configuration": {"engine": "kube-scheduler", "queues": [{"name": "ml"}]},
    "state": {
        "nodes": [
            {"name": name, "capacity": {"cpu": 4, "memory": "8Gi", "pods": 10}, "labels": {"zone": name}}
            for name in ("n1", "n2")
        ],
        "workloads": [
            {"id": f"ml/low-{node}", "queue": "ml", "priority": 1,
             "tasks": [{"name": f"low-{node}", "node": node, "requests": {"cpu": 4}}]}
            for node in ("n1", "n2")
        ],
    },
    "priority_classes": {"high": 10},
}  # fmt: skip


def under_kube_scheduler(spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": 2}}}], **spec}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": spec}
    job = of("batch/v1", "Job", {"parallelism": 2, "template": template})
    return json.loads(plan(json.dumps({**KUBE_SCHEDULER, "manifest": job, **more}).encode(), NOW, nothing_stored()))


def test_under_kube_scheduler_each_pod_asks_in_its_namespace() -> None:
    answer = under_kube_scheduler({"priorityClassName": "high"})
    assert [(ask["id"], ask["queue"], ask["priority"]) for ask in answer["asks"]] == [
        ("default/x-0", "default", 10), ("default/x-1", "default", 10),
    ]  # fmt: skip
    # The second one's node is a tie: the first is taken, and who terminates there is named again.
    victims = [[victim["workload"] for victim in decision["victims"]] for decision in answer["decisions"]]
    assert victims == [["ml/low-n1"], ["ml/low-n1"]]
    assert [(queue["queue"], queue["resources"]["cpu"]["used_after"]) for queue in answer["queues"]] == [
        ("ml", 4), ("default", 4),
    ]  # fmt: skip
    assert under_kube_scheduler({})["outcome"] == "wait"
    assert under_kube_scheduler({"priorityClassName": "high", "preemptionPolicy": "Never"})["outcome"] == "wait"


def test_under_kube_scheduler_what_pods_say_of_each_other_counts() -> None:
    apart = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    answer = under_kube_scheduler({"priorityClassName": "high", "affinity": affinity})
    assert sorted(decision["node"] for decision in answer["decisions"]) == ["n1", "n2"]
    assert answer["findings"] == []
    spark = of("sparkoperator.k8s.io/v1beta2", "SparkApplication", {"executor": {"affinity": affinity, "instances": 2}})
    body = {**KUBE_SCHEDULER, "manifest": spark}
    asks = json.loads(plan(json.dumps(body).encode(), NOW, nothing_stored()))["asks"]
    assert [bool(ask["tasks"][0].get("pod_anti_affinity")) for ask in asks] == [False, True, True]


def test_a_volume_that_a_filter_would_look_at_is_an_error_of_the_plan() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "t", "emptyDir": {}}]
    found = under_kube_scheduler({"volumes": volumes})["findings"]
    assert [(one["severity"], one["pointer"]) for one in found] == [
        ("error", "/manifest/spec/template/spec/volumes/0/persistentVolumeClaim")
    ]


def test_a_cluster_of_nodes_alone_has_every_namespace() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8"}}}
    body = {"engine": "kube-scheduler", "cluster": json.dumps(node), "manifest": of("v1", "Pod", pod(cpu=1)["spec"])}
    answer = json.loads(plan(json.dumps(body).encode(), NOW, nothing_stored()))
    assert (answer["outcome"], answer["asks"][0]["queue"]) == ("admit", "default")
