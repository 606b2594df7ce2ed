"""What API servers say of small clusters in which things happen, as a recording has it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from app.following.simulating import Recorded
from app.simulations.schemas import SimulationRequest
from app.solver.model.configuration import EngineName
from tests.cluster.recorded.made import SPACE, Item, event, node, pod

BEGIN = datetime(2026, 11, 22, 9, tzinfo=UTC)
ENGINES: tuple[EngineName, ...] = ("kai", "yunikorn", "kube-scheduler")
SCHEDULERS = {"kai": "kai-scheduler", "yunikorn": "yunikorn", "kube-scheduler": "default-scheduler"}


class Cluster:
    """What an API server says of a cluster in which things happen."""

    def __init__(self, engine: EngineName) -> None:
        self.engine: EngineName = engine
        self.now = 0.0
        self.lines: list[Item] = []
        self._there: dict[tuple[str, str], Item] = {}
        self._version = 10

    def at(self, seconds: float) -> None:
        self.now = seconds

    def time(self) -> str:
        return (BEGIN + timedelta(seconds=self.now)).isoformat()

    def listed(self, *kinds: str, items: tuple[Item, ...] = ()) -> None:
        """All of these kinds, as a follower lists them when it begins."""
        for kind in kinds:
            found = [item for item in items if item["kind"] == kind]
            for item in found:
                self._there[kind, item["metadata"]["name"]] = item
                self._say(kind, "ITEM", object=item)
            self._say(kind, "LISTED", count=len(found), resource_version=str(self._version), api_version="v1")

    def put(self, item: Item) -> None:
        key = item["kind"], item["metadata"]["name"]
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        self._say(item["kind"], "MODIFIED" if key in self._there else "ADDED", object=item)
        self._there[key] = item

    def gone(self, kind: str, name: str) -> None:
        self._version += 1
        item = self._there.pop((kind, name))
        item["metadata"]["resourceVersion"] = str(self._version)
        self._say(kind, "DELETED", object=item)

    def pod(self, name: str, cpu: int, on: str | None = None, *, phase: str = "Running", **metadata: Any) -> None:
        """It is there, bound, or done."""
        made = pod(name, SCHEDULERS[self.engine], {"cpu": str(cpu)}, self.time(), on, phase=phase, **metadata)
        if (known := self._there.get(("Pod", name))) is not None:
            made["metadata"] = {**made["metadata"], **known["metadata"]}
        if on is not None:
            made["status"]["startTime"] = self.time()
        self.put(made)

    def _say(self, kind: str, word: str, **more: Any) -> None:
        self.lines.append(json.loads(json.dumps({"at": self.time(), "kind": kind, "type": word, **more})))

    def simulation(self) -> tuple[SimulationRequest, Recorded]:
        course = Recorded(self.engine)
        made = course.simulation(iter(json.loads(json.dumps(self.lines))))
        return msgspec.json.decode(msgspec.json.encode(made), type=SimulationRequest), course


def quotas(engine: EngineName, most: int) -> list[Item]:
    """Queues a and b, of which b has at most ``most`` cpu."""
    if engine == "yunikorn":
        leaf = [{"name": "a"}, {"name": "b", "resources": {"max": {"vcore": str(most)}}}]
        text = json.dumps({"partitions": [{"name": "default", "queues": [{"name": "root", "queues": leaf}]}]})
        metadata = {"name": "yunikorn-configs", "namespace": "yunikorn"}
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"queues.yaml": text}}]
    if engine == "kai":
        return [kai_queue("a", 8, 8), kai_queue("b", most)]
    return []


def kai_queue(name: str, most: int, own: int = 1) -> Item:
    amounts = {kind: {"quota": 0, "limit": -1, "overQuotaWeight": 1} for kind in ("gpu", "memory")}
    cpu = {"quota": 1000 * own, "limit": 1000 * most, "overQuotaWeight": 1}
    return {
        "apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name},
        "spec": {"resources": {**amounts, "cpu": cpu}},
    }  # fmt: skip


def about(engine: EngineName, queue: str, group: str, owner: str = "") -> Item:
    """What the metadata of a pod says of where it belongs."""
    owners = (
        {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner}]} if owner else {}
    )
    if engine == "kai":
        return {"annotations": {"pod-group-name": group}, **owners}
    return {"labels": {"applicationId": group, "queue": f"root.{queue}"}, **owners}


def began(engine: EngineName) -> Cluster:
    """One node of 8 cpu, queues, and nothing that runs."""
    cluster = Cluster(engine)
    kinds = {"kai": ("Queue", "PodGroup"), "yunikorn": ("ConfigMap",), "kube-scheduler": ("Namespace",)}[engine]
    there = [*quotas(engine, 8), node({"name": "n1"}, {"cpu": "8"})]
    cluster.listed("Pod", *kinds, "PriorityClass", "Node", items=tuple(there))
    return cluster


def group(cluster: Cluster, name: str, queue: str, least: int = 1) -> None:
    if cluster.engine == "kai":
        spec = {"queue": queue, "minMember": least, "preemptibility": "preemptible"}
        metadata = {"name": name, "namespace": SPACE, "uid": f"u-{name}", "creationTimestamp": cluster.time()}
        cluster.put(
            {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}
        )


def course(engine: EngineName) -> Cluster:
    """`one` runs for 60 s; `two` is evicted for it, and what stands in for it runs for 90 s; `late` runs on."""
    cluster = began(engine)
    group(cluster, "two", "b")
    cluster.pod("two-0", 6, **about(engine, "b", "two", "two"))
    cluster.at(2)
    cluster.pod("two-0", 6, "n1")
    cluster.at(10)
    group(cluster, "one", "a")
    cluster.pod("one-0", 6, **about(engine, "a", "one", "one"))
    cluster.at(12)
    cluster.put(evicted(engine, "two-0", "one", cluster.time()))
    cluster.gone("Pod", "two-0")
    cluster.pod("two-1", 6, **about(engine, "b", "two", "two"))
    cluster.at(13)
    cluster.pod("one-0", 6, "n1")
    cluster.at(40)
    cluster.put(node({"name": "n2"}, {"cpu": "4"}))
    cluster.at(50)
    for item in quotas(engine, 7):
        cluster.put(item)
    cluster.at(73)
    cluster.pod("one-0", 6, "n1", phase="Succeeded")
    cluster.at(75)
    cluster.pod("two-1", 6, "n1")
    cluster.at(165)
    cluster.pod("two-1", 6, "n1", phase="Succeeded")
    group(cluster, "late", "a")
    cluster.pod("late-0", 1, **about(engine, "a", "late", "late"))
    group(cluster, "never", "a")
    cluster.pod("never-0", 100, **about(engine, "a", "never", "never"))
    cluster.at(170)
    cluster.pod("late-0", 1, "n1")
    cluster.at(180)
    cluster.put(node({"name": "n2"}, {"cpu": "5"}))
    return cluster


def evicted(engine: EngineName, victim: str, by: str, at: str) -> Item:
    victim_pod: Item = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": victim}}
    if engine == "kai":
        message = f"Pod {SPACE}/{victim} was preempted by workload {SPACE}/{by}."
        return event({**victim_pod, "kind": "PodGroup"}, "Evict", message, at)
    if engine == "yunikorn":
        return event(victim_pod, "Informational", f"Preempted by uid-{by}-0 from application {by} in root.a", at)
    return event(victim_pod, "Preempted", f"Preempted by pod uid-{by}-0 on node n1", at)
