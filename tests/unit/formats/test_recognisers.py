"""Pods that kube-scheduler names, as each system's workloads and asks: by what imports would call them."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.formats.extender import Around, Recogniser, VictimPod, is_system_critical, read_pod
from app.formats.manifests import system_of
from app.formats.pods import Pod
from app.solver.model.configuration import Configuration
from app.solver.model.kueue import Workload as KueueWorkload
from app.solver.model.request import Eviction
from app.solver.model.state import Ask, Task, Workload

MADE = datetime(2026, 11, 22, tzinfo=UTC)
KUEUE = "kueue.x-k8s.io"
QUEUE = "kueue.x-k8s.io/queue-name"


def around(
    *queues: dict[str, Any], running: list[dict[str, Any]] | None = None, waiting: list[str] | None = None,
    tasks: list[Task] | None = None, uid: str | None = None,
) -> Around:  # fmt: skip
    task = Task(name="t", requests={"cpu": 3})
    works = {
        one["id"]: Workload(uid="uw", priority=5, created_at=MADE, preemptible=False, **{"tasks": [task], **one})
        for one in running or []
    }
    asks = {name: Ask(id=name, queue="waiting", uid=uid, priority=9, tasks=tasks or [task]) for name in waiting or []}
    return Around(msgspec.convert({"queues": list(queues)}, Configuration), works, asks)


def told(engine: str, of: Around) -> Recogniser:
    system = system_of(engine)
    assert system is not None
    assert system.recogniser is not None
    return system.recogniser(of)


def victim(scheduler: str | None = None, **metadata: Any) -> VictimPod:
    body = {"metadata": {"name": "p", "namespace": "ns", "uid": "u"} | metadata, "spec": {"schedulerName": scheduler}}
    return msgspec.convert(body, VictimPod)


def pending(scheduler: str | None = None, *, cpu: str = "2", **metadata: Any) -> Pod:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu, "nvidia.com/gpu": 1}}}]
    spec = {"containers": containers, "schedulerName": scheduler, "priority": 7, "nodeName": "n"}
    found = read_pod({"metadata": {"name": "p", "namespace": "ns", "uid": "u"} | metadata, "spec": spec})
    assert found is not None
    return found


def shown(ask: Ask | None) -> tuple[str, str, str | None, list[str], dict[str, Any]] | None:
    """Id, queue, workload, names of tasks, what the first of them asks for."""
    if ask is None:
        return None
    return ask.id, ask.queue, ask.workload, [t.name for t in ask.tasks], ask.tasks[0].requests


def test_the_pod_without_room_is_pending_wherever_it_is_said_to_be() -> None:
    pod = pending(cpu="1500m")
    assert (pod.phase, pod.priority, pod.node, pod.manifest.id) == ("pending", 7, None, "ns/p")
    assert read_pod({"metadata": {"namespace": "ns"}, "spec": {}}) is None
    assert read_pod({}) is None


def test_priorities_from_two_thousand_millions_on_are_kubernetes_own() -> None:
    pod = pending()
    assert [is_system_critical(with_priority(pod, p)) for p in (1_999_999_999, 2_000_000_000)] == [False, True]


def with_priority(pod: Pod, priority: int) -> Pod:
    return Pod(pod.manifest, pod.spec, pod.phase, pod.node, priority)


@pytest.mark.parametrize(("engine", "there"), [("kai", 1), ("yunikorn", 1), ("kueue", 1), ("ytsaurus", 0)])
def test_which_systems_have_pods(engine: str, there: int) -> None:
    system = system_of(engine)
    assert system is not None
    assert (system.recogniser is not None) == bool(there)
    with pytest.raises(KeyError):
        system_of("x")


def test_kai_knows_its_pods_by_scheduler_and_group_and_names_groups_by_owner() -> None:
    kai = told("kai", around())
    group = {"annotations": {"pod-group-name": "g"}}
    own = "kai-scheduler"
    assert kai.place(victim(**group)) == Eviction(workload="ns/g", task="p")
    assert kai.place(victim(own, **group, namespace="")) == Eviction(workload="g", task="p")
    assert kai.place(victim(own)) == Eviction(workload="ns/pg-p", task="p")
    assert kai.place(victim(own, namespace="")) == Eviction(workload="pg-p", task="p")
    owners = [{"kind": "PyTorchJob", "name": "train"}, {"kind": "Job", "name": "other"}]
    assert kai.place(victim(own, ownerReferences=owners)) == Eviction(workload="ns/pg-train", task="p")
    deployed = victim(own, ownerReferences=[{"kind": "ReplicaSet", "name": "rs"}], labels={"pod-template-hash": "1"})
    assert kai.place(deployed) == Eviction(workload="ns/pg-p", task="p")
    assert kai.place(victim("default-scheduler")) is None


def test_kai_asks_for_one_more_pod_of_what_runs_or_waits_where_the_snapshot_has_it_there_else_for_it_alone() -> None:
    mine = Task(name="p", uid="u", requests={"cpu": 3})
    running = {"id": "ns/g", "queue": "busy", "min_available": 3, "tasks": [mine]}
    kai = told("kai", around({"name": "a"}, running=[running], waiting=["ns/w"], tasks=[mine]))
    asks = {"cpu": 2, "nvidia.com/gpu": 1}
    more = kai.ask(pending(annotations={"pod-group-name": "g"}))
    assert shown(more) == ("ns/g", "busy", "ns/g", ["p"], asks)
    assert more is not None
    assert (more.uid, more.priority, more.created_at, more.preemptible, more.min_available) == ("uw", 5, MADE, False, 1)
    waits = kai.ask(pending(annotations={"pod-group-name": "w"}))
    assert shown(waits) == ("ns/w", "waiting", None, ["p"], asks)
    assert waits is not None
    assert waits.priority == 9
    named: dict[str, Any] = {"labels": {"kai.scheduler/queue": "a"}}
    for joined in ("g", "w"):
        claims: dict[str, Any] = {**named, "annotations": {"pod-group-name": joined}}
        for other in (pending(**claims, uid="another"), pending(**claims, name="another")):
            found = kai.ask(other)
            assert found is not None
            assert (found.id, found.queue, found.workload, found.priority) == (other.manifest.id, "a", None, 50)
    assert shown(kai.ask(pending("kai-scheduler", **named))) == ("ns/p", "a", None, ["p"], asks)
    new = pending(**named, annotations={"pod-group-name": "new", "gpu-fraction": "0.5"})
    assert shown(kai.ask(new)) == ("ns/p", "a", None, ["p"], asks | {"nvidia.com/gpu": "500m"})
    assert kai.ask(pending("kai-scheduler", labels={"kai.scheduler/queue": "b"})) is None
    assert kai.ask(pending("kai-scheduler")) is None
    assert kai.ask(pending(**named)) is None


@pytest.mark.parametrize(("engine", "words", "work", "task"), [
    ("kai", {"annotations": {"pod-group-name": "g"}}, "ns/g", "p"),
    ("yunikorn", {"labels": {"applicationId": "g"}}, "g", "ns/p"),
])  # fmt: skip
def test_a_pod_made_anew_under_a_known_name_is_nobody_that_the_snapshot_has(
    engine: str, words: dict[str, Any], work: str, task: str
) -> None:
    known = told(engine, around(running=[{"id": work, "queue": "q", "tasks": [Task(name=task, uid="u")]}]))
    assert known.place(victim(**words)) == Eviction(workload=work, task=task)
    assert known.place(victim(**words, uid="anew")) == Eviction(workload="anew")


def test_yunikorn_knows_its_pods_by_scheduler_and_application() -> None:
    yunikorn = told("yunikorn", around())
    assert yunikorn.place(victim(labels={"applicationId": "app"})) == Eviction(workload="app", task="ns/p")
    assert yunikorn.place(victim("yunikorn")) == Eviction(workload="yunikorn-ns-autogen", task="ns/p")
    assert yunikorn.place(victim("yunikorn", namespace="")) == Eviction(workload="yunikorn-default-autogen", task="p")
    assert yunikorn.place(victim("other")) is None


def test_yunikorn_asks_pod_by_pod_in_the_queue_of_what_runs_where_the_snapshot_has_it_there() -> None:
    root, leaf = {"name": "root"}, {"name": "root.a", "parent": "root"}
    running = {"id": "app", "queue": "root.other", "tasks": [Task(name="ns/p", uid="u")]}
    yunikorn = told("yunikorn", around(root, leaf, running=[running], waiting=["ns/w"], uid="uw"))
    asks = {"vcore": 2, "nvidia.com/gpu": 1, "pods": 1}
    waits = yunikorn.ask(pending("yunikorn", name="w", uid="uw"))
    assert shown(waits) == ("ns/w", "waiting", None, ["t"], {"cpu": 3})
    labels: dict[str, Any] = {"applicationId": "app", "queue": "a"}
    assert shown(yunikorn.ask(pending(labels=labels))) == ("ns/p", "root.other", "app", ["ns/p"], asks)
    for other in (pending(labels=labels, uid="another"), pending(labels=labels, name="another"),
                  pending(labels=labels, name="w")):  # fmt: skip
        found = yunikorn.ask(other)
        assert found is not None
        assert (found.queue, found.workload) == ("root.a", None)
    labels["applicationId"] = "new"
    assert shown(yunikorn.ask(pending(labels=labels))) == ("ns/p", "root.a", None, ["ns/p"], asks)
    dynamic = pending(labels=labels | {"queue": "root.a.new"})
    assert yunikorn.ask(dynamic) is None
    assert yunikorn.ask(pending(labels=labels | {"queue": "elsewhere"})) is None
    assert yunikorn.ask(pending()) is None
    top = told("yunikorn", around(leaf))
    assert top.ask(pending(labels=labels | {"queue": "b"})) is None


OWNER = [{"kind": "Job", "apiVersion": "batch/v1", "name": "j", "uid": "uo", "controller": True}]
CLAIMS = [
    {"labels": {f"{KUEUE}/prebuilt-workload-name": "runs"}},
    {"labels": {f"{KUEUE}/pod-group-name": "runs"}},
    {"annotations": {f"{KUEUE}/workload": "runs"}},
    {"labels": {f"{KUEUE}/managed": "true", f"{KUEUE}/podset": "main", QUEUE: "leaf"}},
    {"labels": {"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/jobset-uid": "uj"}},
]


def test_kueue_knows_its_pods_by_what_owns_them() -> None:
    owned = {"id": "ns/prebuilt", "queue": "q", "kueue": KueueWorkload(owners=["uo", "u-of-another"])}
    group = {"id": "ns/group", "queue": "q", "kueue": KueueWorkload(owners=["u-1", "u-2"])}
    kueue = told("kueue", around(running=[{"id": "ns/job-j-e9150", "queue": "q"}, group]))
    assert kueue.place(victim(ownerReferences=OWNER)) == Eviction(workload="ns/job-j-e9150")
    assert [kueue.place(victim(uid=uid)) for uid in ("u-1", "u-3")] == [Eviction(workload="ns/group"), None]
    assert kueue.place(victim(uid="u-1", namespace="elsewhere")) is None
    prebuilt = told("kueue", around(running=[owned]))
    assert prebuilt.place(victim(ownerReferences=OWNER)) == Eviction(workload="ns/prebuilt")


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(next(iter(next(iter(claim.values()))))))
def test_what_a_pod_says_of_itself_makes_it_nobody_s_that_kueue_has(claim: dict[str, Any]) -> None:
    names = ("ns/runs", "ns/jobset-train-4801f")
    of = around({"name": "leaf"}, running=[{"id": name, "queue": "q"} for name in names], waiting=list(names))
    kueue = told("kueue", of)
    assert kueue.place(victim(**claim)) is None
    assert kueue.ask(pending(**claim)) is None


def test_kueue_asks_for_what_runs_or_waits() -> None:
    job_set = {"labels": CLAIMS[-1]["labels"], "ownerReferences": [{**OWNER[0], "name": "train-workers-0"}]}
    empty = {"id": "ns/none", "queue": "q", "tasks": [], "kueue": KueueWorkload(owners=["un"])}
    of = around(running=[{"id": "ns/jobset-train-4801f", "queue": "q"}, empty], waiting=["ns/job-j-e9150"])
    kueue = told("kueue", of)
    runs = kueue.ask(pending(**job_set))
    assert shown(runs) == ("ns/jobset-train-4801f", "q", "ns/jobset-train-4801f", ["t"], {"cpu": 3})
    assert kueue.ask(pending(uid="un")) is None
    waits = kueue.ask(pending(ownerReferences=[*OWNER, 3]))
    assert shown(waits) == ("ns/job-j-e9150", "waiting", None, ["t"], {"cpu": 3})
