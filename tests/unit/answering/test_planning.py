"""Plans under Kueue: from the manifest of work to what becomes of it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from app.answering.plan import plan
from app.answering.sources import nothing_stored
from app.base.documents import read
from app.formats.reader import Findings, Reader
from app.formats.work.read import Admission
from app.solver.model.problems import InvalidInput
from tests.support import released

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def queue(name: str, cpu: int, **more: Any) -> dict[str, Any]:
    preemption = {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}
    return {
        "name": name, "parent": "all", "quota": {"cpu": {"guaranteed": cpu}},
        "kueue": {"preemption": preemption, **more},
    }  # fmt: skip


def job(name: str = "train", cpu: int = 1, queue: str = "team", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
    labels = {"kueue.x-k8s.io/queue-name": queue}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels},
        "spec": {"template": template, **spec},
    }  # fmt: skip


def running(name: str, queue: str, cpu: int, priority: int = 0) -> dict[str, Any]:
    tasks = [{"name": "main", "requests": {"cpu": cpu}, "flavors": {"cpu": "default"}}]
    return {"id": name, "queue": queue, "priority": priority, "created_at": "2026-03-01T00:00:00Z", "tasks": tasks}


def planned(manifest: Any, queues: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    document = {
        "engine": "kueue",
        "configuration": {"queues": [{"name": "all"}, *(queues or [queue("team", 4), queue("other", 4)])]},
        "manifest": manifest,
        **more,
    }
    return json.loads(plan(json.dumps(document).encode(), NOW, nothing_stored()))


def test_a_plan_is_made_under_another_release_than_the_cluster_s() -> None:
    def asked(**more: Any) -> dict[str, Any]:
        document = {"engine": "kai", "configuration": released.configuration("0.13"), "state": released.STATE,
                    "work": [released.WAITS], **more}  # fmt: skip
        return json.loads(plan(json.dumps(document).encode(), NOW, nothing_stored()))

    answers = [asked(), asked(release="0.17"), asked(release="0.13")]
    assert [(answer["release"], bool(answer["plan"]["placements"])) for answer in answers] == [
        ("0.13", True), ("0.17", False), ("0.13", True),
    ]  # fmt: skip
    with pytest.raises(InvalidInput) as wrong:
        asked(release="0.16")
    assert [(problem.pointer, problem.detail) for problem in wrong.value.problems] == [
        ("/release", "KAI Scheduler is known here as 0.13, 0.17"),
    ]  # fmt: skip


def test_work_is_given_as_asks_too() -> None:
    task = {"name": "main", "count": 2, "requests": {"cpu": 1}}
    answer = planned(None, work=[{"id": "mine", "queue": "team", "priority": 3, "tasks": [task]}])
    (work,) = answer["work"]
    assert (work["object"], work["outcome"], work["pods"], work["requests"]) == ("ask mine", "admit", 2, {"cpu": 2})
    assert used(answer, "team") == (0, 2)
    wrong = refused(None, work=[{"id": "mine", "queue": "nowhere", "tasks": [task]}])
    assert list(wrong) == ["/work/0/queue"]
    state = {"workloads": [running("mine", "team", 1)]}
    assert list(refused(None, state=state, work=[{"id": "mine", "queue": "team", "tasks": [task]}])) == ["/work/0/id"]
    assert (
        list(refused(None))
        == list(refused(job(), work=[{"id": "x", "queue": "team", "tasks": [task]}]))
        == ["/manifest"]
    )


def refused(manifest: Any, **more: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        planned(manifest, **more)
    return {problem.pointer: problem.detail for problem in caught.value.problems}


def used(answer: dict[str, Any], name: str) -> tuple[float, float]:
    (found,) = (of["resources"]["cpu"] for of in answer["queues"] if of["queue"] == name)
    return found["used_before"], found["used_after"]


def test_a_job_that_fits_runs_and_the_queue_uses_more() -> None:
    answer = planned(job(parallelism=3))
    assert answer["outcome"] == "admit"
    assert answer["work"] == [
        {
            "object": "batch/Job default/train", "queue": "team", "priority": 0, "pods": 3, "requests": {"cpu": 3},
            "outcome": "admit", "asks": ["default/train"],
        }
    ]  # fmt: skip
    assert used(answer, "team") == (0, 3)
    assert used(answer, "all") == (0, 3)


def test_who_would_stop() -> None:
    state = {"workloads": [running("greedy", "other", 6)]}
    answer = planned(job(parallelism=4), state=state)
    assert answer["outcome"] == "preempt"
    assert [eviction["workload"] for eviction in answer["plan"]["evictions"]] == ["greedy"]
    assert (used(answer, "team"), used(answer, "other")) == ((0, 4), (6, 0))


def test_each_pod_of_a_deployment_is_decided_by_itself() -> None:
    manifest = job("web", replicas=11)
    manifest |= {"apiVersion": "apps/v1", "kind": "Deployment"}
    answer = planned(manifest)
    assert [decision["outcome"] for decision in answer["decisions"]] == ["admit"] * 8 + ["wait"] * 3
    assert answer["outcome"] == "wait"
    assert used(answer, "team") == (0, 8)
    assert "smallest_change" in answer["decisions"][8]["explanation"]


def test_what_waits_already_goes_first_and_a_strict_queue_lets_nobody_pass() -> None:
    ahead = {"id": "ahead", "queue": "team", "priority": 9, "tasks": [{"name": "main", "requests": {"cpu": 20}}]}
    passed = planned({"kind": "List", "items": [job()]}, asks=[ahead])
    assert [d["outcome"] for d in (*passed["waiting"], *passed["decisions"])] == ["infeasible", "admit"]
    strict = [queue("team", 4, queueing_strategy="StrictFIFO"), queue("other", 4)]
    held = {**ahead, "tasks": [{"name": "main", "requests": {"cpu": 5}}]}
    state = {"workloads": [running("busy", "team", 4, priority=10), running("calm", "other", 2, priority=10)]}
    blocked = planned({"kind": "List", "items": [job()]}, strict, asks=[held], state=state)
    assert [d["outcome"] for d in (*blocked["waiting"], *blocked["decisions"])] == ["wait", "wait"]
    assert "ahead" in blocked["decisions"][0]["conditions"][0]["message"]


def in_group(*pods: tuple[str, int], total: int | None, fast: bool = False, queues: str = "team") -> dict[str, Any]:
    """Pods of the group ``g``: name and cpu. ``queues``: of each in turn."""
    items: list[dict[str, Any]] = []
    named = queues.split()
    for i, (name, cpu) in enumerate(pods):
        labels = {"kueue.x-k8s.io/queue-name": named[i % len(named)], "kueue.x-k8s.io/pod-group-name": "g"}
        annotations = {} if total is None else {"kueue.x-k8s.io/pod-group-total-count": str(total)}
        annotations |= {"kueue.x-k8s.io/pod-group-fast-admission": "true"} if fast else {}
        metadata = {"name": name, "labels": labels, "annotations": annotations}
        containers = [{"name": "m", "resources": {"requests": {"cpu": cpu}}}]
        items.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}})
    return {"kind": "List", "items": items}


def test_a_group_of_pods_is_one_workload_with_a_pod_set_for_each_role() -> None:
    answer = planned(in_group(("a", 1), ("b", 2), ("c", 1), total=3))
    (ask,) = answer["asks"]
    assert ask["id"] == "default/g"
    assert [(t["name"], t.get("count", 1), t["requests"]["cpu"]) for t in ask["tasks"]] == [
        ("role-0", 2, 1), ("role-1", 1, 2),
    ]  # fmt: skip
    assert [f["rule"] for f in answer["findings"] if "hash" in f["detail"]] == ["assumed-order"]
    assert planned(in_group(("a", 3), ("b", 3), total=2))["outcome"] == "admit", "4 of its own and 2 borrowed"
    assert planned(in_group(("a", 3), ("b", 3), ("c", 3), total=3))["outcome"] in ("wait", "infeasible")
    (all_of_it,) = planned(in_group(("a", 3), total=2, fast=True))["asks"]
    assert [(t["name"], t["count"]) for t in all_of_it["tasks"]] == [("main", 2)]
    more = planned(in_group(("a", 1), ("b", 1), total=1))
    assert more["work"][0]["pods"] == 1
    assert [(f["rule"], f["pointer"]) for f in more["findings"] if f["severity"] == "warning"] == [
        ("excess-pods", "/manifest/items/1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("manifest", "pointer", "detail"),
    [
        (in_group(("a", 1), total=None), "/0/metadata/annotations", "says in 'kueue.x-k8s.io/pod-group-total-count'"),
        (in_group(("a", 1), ("b", 1), total=3), "/0/metadata/annotations", "2 of its 3 pods are here"),
        (in_group(("a", 1), ("b", 1), total=2, queues="team other"), "/1/metadata/labels", "waits in 'team'"),
    ],
)
def test_a_group_that_kueue_makes_no_workload_of_is_an_error(manifest: Any, pointer: str, detail: str) -> None:
    ((at, why),) = refused(manifest).items()
    assert at.startswith(f"/manifest/items{pointer}")
    assert detail in why


def test_the_job_of_a_cron_job_has_the_labels_of_its_template() -> None:
    template = job(parallelism=2)
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}}
    spec = {"jobTemplate": {"metadata": template["metadata"], "spec": template["spec"]}}
    answer = planned({**cron, "spec": spec})
    assert [(work["object"], work["queue"], work["pods"]) for work in answer["work"]] == [
        ("batch/CronJob default/nightly", "team", 2),
    ]  # fmt: skip
    unlabelled = {**cron, "metadata": {"name": "nightly", "labels": template["metadata"]["labels"]}}
    ((at, why),) = refused({**unlabelled, "spec": {"jobTemplate": {"spec": template["spec"]}}}).items()
    assert (at, "would start at once" in why) == ("/manifest/spec/jobTemplate/metadata/labels", True)
    both = planned({**unlabelled, "spec": spec})
    assert [f["rule"] for f in both["findings"] if f["severity"] == "warning"] == []


def test_who_goes_before_it_is_said_in_the_order_of_the_engine() -> None:
    tasks = [{"name": "main", "requests": {"cpu": 3}}]
    waiting = [
        {"id": "late", "queue": "team", "created_at": "2026-03-02T09:00:00Z", "tasks": tasks},
        {"id": "early", "queue": "team", "created_at": "2026-03-02T08:00:00Z", "tasks": tasks},
        {"id": "behind", "queue": "team", "priority": -1, "tasks": tasks},
    ]
    answer = planned(job(cpu=3), asks=waiting)
    assert answer["work"][0]["behind"] == ["early", "late"]
    assert {d["ask"]: d["outcome"] for d in answer["waiting"]} == {"late": "admit", "early": "admit", "behind": "wait"}
    assert answer["outcome"] == "wait"
    assert planned(job(cpu=3), asks=waiting, waited="3h")["work"][0].get("behind", []) == []


def test_a_local_queue_leads_to_its_cluster_queue() -> None:
    answer = planned(job(queue="mine"), local_queues={"default/mine": "other"})
    assert answer["work"][0]["queue"] == "other"
    wrong = refused(job(queue="yours"), local_queues={"default/mine": "other"})
    assert wrong == {
        "/manifest/metadata/labels/kueue.x-k8s.io~1queue-name":
            "batch/Job default/train: no LocalQueue 'default/yours'; there are LocalQueues 'default/mine'",
    }  # fmt: skip


def test_a_job_that_kueue_would_leave_alone_is_said_to_start_at_once() -> None:
    manifest = job()
    del manifest["metadata"]["labels"]
    (detail,) = refused(manifest).values()
    assert "Kueue leaves it alone, and it would start at once" in detail


def test_priorities_come_from_classes_and_an_unknown_one_is_a_finding() -> None:
    manifest = job()
    manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "urgent"
    assert planned(manifest, priority_classes={"urgent": 7})["work"][0]["priority"] == 7
    both = {"priority_classes": {"urgent": 7}, "workload_priority_classes": {"urgent": 9}}
    assert planned(manifest, **both)["work"][0]["priority"] == 9, "Kueue's own label names Kueue's own class"
    del manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"]
    manifest["spec"]["template"]["spec"]["priorityClassName"] = "urgent"
    assert planned(manifest, **both)["work"][0]["priority"] == 7
    manifest = job()
    manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "urgent"
    answer = planned(manifest)
    assert answer["work"][0]["priority"] == 0
    assert "priority class 'urgent' is not known here" in answer["findings"][-1]["detail"]


def test_a_job_may_start_smaller_where_it_says_so() -> None:
    manifest = job(parallelism=10, completions=20)
    manifest["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "2"}
    answer = planned(manifest)
    assert answer["decisions"][0]["outcome"] == "admit"
    assert answer["decisions"][0]["counts"] == {"main": 8}
    assert used(answer, "team") == (0, 8)


def test_gpus_are_counted_by_the_name_that_the_queues_use() -> None:
    manifest = job()
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": 2}
    queues = [{"name": "team", "quota": {"cpu": {"guaranteed": 8}, "gpu": {"guaranteed": 4}}}]
    answer = planned(manifest, queues)
    assert answer["asks"][0]["tasks"][0]["requests"] == {"cpu": 1, "gpu": 2}


def test_a_name_that_runs_already_gets_another_id() -> None:
    answer = planned(job(), state={"workloads": [running("default/train", "team", 1)]})
    assert answer["work"][0]["asks"] == ["default/train-2"]


@pytest.mark.parametrize(
    ("manifest", "pointer", "detail"),
    [
        ("kind: [", "/manifest", "neither JSON nor YAML"),
        ("", "/manifest", "there is nothing in it that starts pods"),
        ({**job(), "spec": {}}, "/manifest/spec", "no pod template"),
        ({**job(), "metadata": {}}, "/manifest/metadata", "without a name or generateName"),
        ({**job(), "spec": {"template": {"spec": {}}}}, "/manifest/spec/template/spec", "a pod needs a container"),
        (job(parallelism=0), "/manifest", "starts no pods"),
        (job(parallelism="many"), "/manifest/spec/parallelism", "a whole number of 32 bits is expected"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_manifest_is_said_where_it_is(manifest: Any, pointer: str, detail: str) -> None:
    try:
        answer = planned(manifest)
        found = {one["pointer"]: one["detail"] for one in answer["findings"]}
    except InvalidInput as invalid:
        found = {problem.pointer: problem.detail for problem in invalid.problems}
    assert any(where.startswith(pointer) and detail in said for where, said in found.items()), found


def test_a_misspelt_count_is_noticed() -> None:
    answer = planned(job(paralelism=3))
    assert ("/manifest/spec/paralelism", "no field of this name; did you mean 'parallelism'?") in {
        (one["pointer"], one["detail"]) for one in answer["findings"]
    }


@pytest.mark.parametrize("waited", ["soon", -1, 1e18])
def test_waited_is_a_time(waited: Any) -> None:
    assert list(refused(job(), waited=waited)) == ["/waited"]


def test_the_cluster_must_be_given() -> None:
    with pytest.raises(InvalidInput, match="what cluster"):
        plan(json.dumps({"manifest": job()}).encode(), NOW, nothing_stored())


LIMITS = {
    "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "defaults", "namespace": "default"},
    "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "2"}, "max": {"nvidia.com/gpu": "1"}}]},
}  # fmt: skip
SANDBOX = {
    "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "gvisor"}, "handler": "runsc",
    "overhead": {"podFixed": {"cpu": "500m"}}, "scheduling": {"nodeSelector": {"sandbox": "yes"}},
}  # fmt: skip


def in_a_cluster(kind: str, *beside: dict[str, Any], in_cluster: bool = False) -> dict[str, Any]:
    """A plan of two pods in a sandbox, one container with a limit of cpu, one that asks for nothing, under KAI."""
    containers = [{"name": "a", "resources": {"limits": {"cpu": 3}}}, {"name": "b"}]
    template = {"spec": {"containers": containers, "runtimeClassName": "gvisor", "schedulerName": "kai-scheduler"}}
    labels = {"kai.scheduler/queue": "lab", "kueue.x-k8s.io/queue-name": "lab"}
    work = {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x", "labels": labels},
        "spec": {"parallelism": 2, "template": template},
    }  # fmt: skip
    quota = {"cpu": {"nominalQuota": 64}, "nvidia.com/gpu": {"nominalQuota": 64}}
    flavor = {"name": "any", "resources": [{"name": name, **of} for name, of in quota.items()]}
    groups = [{"coveredResources": list(quota), "flavors": [flavor]}]
    cluster: list[dict[str, Any]] = {
        "kai": [
            {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "lab"},
             "spec": {"resources": {name: {"quota": -1, "limit": -1} for name in ("cpu", "memory", "gpu")}}},
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"sandbox": "yes"}},
             "status": {"allocatable": {"cpu": 64, "nvidia.com/gpu": 8}}},
        ],
        "kueue": [
            {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor", "metadata": {"name": "any"}},
            {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "lab"},
             "spec": {"resourceGroups": groups, "namespaceSelector": {}}},
        ],
    }[kind]  # fmt: skip
    manifest = [work, *(() if in_cluster else beside)]
    text = json.dumps([*cluster, *(beside if in_cluster else ())])
    document = {"cluster": text, "manifest": {"kind": "List", "items": manifest}}
    return json.loads(plan(json.dumps(document).encode(), NOW, nothing_stored()))


@pytest.mark.parametrize("in_cluster", [False, True])
@pytest.mark.parametrize(("kind", "cpu"), [("kai", "5500m"), ("kueue", "4500m")])
def test_what_the_cluster_fills_in_of_pods_counts(kind: str, cpu: str, in_cluster: bool) -> None:
    """The API server takes a limit for a missing request before the LimitRange's default; Kueue the default first. The
    most that a container may have is its default limit, and so its default request."""
    answer = in_a_cluster(kind, LIMITS, SANDBOX, in_cluster=in_cluster)
    assert answer["outcome"] == "admit"
    (task, *_) = answer["asks"][0]["tasks"]
    assert task["requests"] == {"cpu": cpu, "nvidia.com/gpu": 2}
    assert task.get("node_selector") == ({"sandbox": "yes"} if kind == "kai" else None)
    assert [f for f in answer["findings"] if f["severity"] != "info"] == []


@pytest.mark.parametrize(
    ("bounds", "by_kueue", "told"),
    [
        ({"type": "Container", "max": {"cpu": 2}}, "containers[0]: cpu: requests must not be above", "not 3"),
        ({"type": "Container", "min": {"cpu": 4}}, "containers[0]: cpu: requests must not exceed", "not 3"),
        ({"type": "Pod", "max": {"cpu": "3400m"}}, "spec: cpu: requests must not be above", "there is no limit"),
        ({"type": "Pod", "min": {"cpu": 9}}, "spec: cpu: requests must not be below", "none is asked for"),
        ({"type": "Container", "maxLimitRequestRatio": {"cpu": 2}}, None, "both must be there"),
        ({"type": "PersistentVolumeClaim", "max": {"cpu": 1}}, None, None),
    ],
)
@pytest.mark.parametrize("in_cluster", [False, True])
def test_pods_past_a_limit_range_are_not_admitted_and_what_the_api_server_refuses_is_said(
    bounds: dict[str, Any], by_kueue: str | None, told: str | None, in_cluster: bool
) -> None:
    beside = {**LIMITS, "spec": {"limits": [bounds]}}, SANDBOX
    queued, started = (in_a_cluster(kind, *beside, in_cluster=in_cluster) for kind in ("kueue", "kai"))
    assert queued["outcome"] == ("admit" if by_kueue is None else "wait")
    assert (by_kueue or "") in json.dumps(queued)
    for answer, severity in ((queued, "warning"), (started, "error")):
        found = [f for f in answer["findings"] if f["rule"] == "refused"]
        assert {f["severity"] for f in found} == ({severity} if told else set())
        assert any((told or "") in f["detail"] for f in found) == (told is not None)


def test_a_runtime_class_that_nobody_gives_is_said() -> None:
    found = [f for f in in_a_cluster("kai")["findings"] if f["rule"] == "unknown-name"]
    assert found[0]["pointer"] == "/manifest/items/0/spec/template/spec/runtimeClassName"
    assert "counted without its overhead" in found[0]["detail"]
    assert in_a_cluster("kai")["asks"][0]["tasks"][0]["requests"] == {"cpu": 3}


def test_a_limit_range_of_another_namespace_is_nothing_to_it() -> None:
    elsewhere = {**LIMITS, "metadata": {"name": "defaults", "namespace": "sales"}}
    assert in_a_cluster("kai", elsewhere)["asks"][0]["tasks"][0]["requests"] == {"cpu": 3}


@pytest.mark.parametrize(
    "wrong", [{"limits": "all"}, {"limits": [{"type": "Container", "defaultRequest": {"cpu": "x"}}]}]
)
def test_a_limit_range_that_is_wrong_is_a_finding(wrong: Any) -> None:
    findings = in_a_cluster("kai", {**LIMITS, "spec": {"limits": wrong}})["findings"]
    assert any(f["severity"] == "error" and "/items/1/spec/limits" in f["pointer"] for f in findings)


def test_what_aliases_share_is_filled_in_once() -> None:
    """However much aliases of YAML stand for, no copy is made of it."""
    lines = ["a0: &a0 [x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 6))]
    manifest = f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: x, labels: {{kueue.x-k8s.io/queue-name: lab}}}}
spec:
  template: {{spec: {{runtimeClassName: gvisor, containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]}}}}
x-shared: {{{", ".join(lines)}}}
"""
    root = Reader(read(manifest.encode())[0][1], (), Findings())
    filled = Admission().admitted(root, "default", exists=False)
    assert filled.value == root.value
    shared: Any = filled.value["x-shared"]
    assert shared["a2"][0] is shared["a2"][1] is shared["a1"]
