"""A cluster of 5,000 nodes and 50,000 pods: a pattern of each kind as the API server keeps it, and all made of it."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from app.solver.model.configuration import EngineName
from benchmarks.etcd import Etcd, Put
from tests.cluster import kueue, pods
from tests.cluster.server import Cluster, followed_definitions

NODES, PODS, GROUPS = 5_000, 50_000, 500
CHURN = 20_000
"""Of the pods, those that change; a quarter of them is not there at any time."""
_AT = "2026-11-22T08:00:00Z"
Item = dict[str, Any]


@dataclass(frozen=True)
class Pattern:
    """One object in all states in which it is written: waiting, running, done; ``uid`` is its own."""

    key: bytes
    states: list[bytes]
    uid: bytes

    def put(self, number: int, state: int, *names: tuple[bytes, bytes]) -> Put:
        """Another such object in that state; one that there is no more, for one state past the last."""
        changes = [*names, (self.uid, str(uuid.UUID(int=number)).encode())]
        value = self.states[state] if state < len(self.states) else None
        key = self.key
        for old, new in changes:
            if len(old) != len(new):
                raise ValueError(f"{old!r} and {new!r} are not of the same length")
            key = key.replace(old, new)
            value = value.replace(old, new) if value is not None else None
        return Put(key, value)


class Crowd:
    """What is in the cluster of one engine."""

    def __init__(self, engine: EngineName, node: Pattern | None, work: Pattern, group: Pattern | None) -> None:
        self._engine = engine
        self._node, self._work, self._group = node, work, group
        self._choose = Random(1)
        self._nodes = [number % NODES for number in range(PODS + CHURN // 4)]
        self._states = [number % 4 if number < CHURN else 1 for number in range(PODS + CHURN // 4)]

    def all(self) -> Iterator[Put]:
        """Everything."""
        for number in range(NODES if self._node else 0):
            yield self._node.put(number, 0, (b"node-0000", b"node-%04d" % number))  # pyright: ignore
        for number in range(GROUPS if self._group else 0):
            yield self._group.put(number, 0, (b"app-000", b"app-%03d" % number))  # pyright: ignore
        for number, state in enumerate(self._states):
            if state < 3:
                yield self._put(number, state)

    def change(self) -> Put:
        """One pod comes to be, begins to run, ends, or goes."""
        number = self._choose.randrange(CHURN)
        state = self._states[number] = (self._states[number] + 1) % 4
        if state == 1:
            self._nodes[number] = self._choose.randrange(NODES)
        return self._put(number, state)

    def _put(self, number: int, state: int) -> Put:
        return self._work.put(
            number, state, (b"pod-00000", b"pod-%05d" % number), (b"app-000", b"app-%03d" % (number % GROUPS)),
            (b"node-0000", b"node-%04d" % self._nodes[number]),
        )  # fmt: skip


def crowd(cluster: Cluster, engine: EngineName) -> Crowd:
    """Make one object of each kind through the API server, and all that all others need."""
    etcd = Etcd(cluster.etcd_port)
    if engine == "kueue":
        return Crowd(engine, None, _kueue(cluster, etcd), None)
    node, group = _node(cluster, etcd), None
    if engine == "kai":
        for defined in followed_definitions("kai"):
            cluster.define(defined)
        cluster.apply(pods.kai_queue("parent", 400_000), pods.kai_queue("leaf", 200_000, "parent"))
        cluster.apply(pods.pod_group("app-000", "leaf"))
        key = b"/registry/scheduling.run.ai/podgroups/default/app-000"
        group = _pattern(cluster, etcd, key, "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups/app-000")
    else:
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "yunikorn"}})
        cluster.apply(pods.yunikorn_queues(200_000))
    return Crowd(engine, node, _pod(cluster, etcd, engine), group)


def _pattern(cluster: Cluster, etcd: Etcd, key: bytes, path: str) -> Pattern:
    return Pattern(key, [etcd.get(key)], cluster.call("GET", path)["metadata"]["uid"].encode())


def _node(cluster: Cluster, etcd: Etcd) -> Pattern:
    made = pods.node("node-0000", 64)
    cluster.apply(made)
    cluster.call("PATCH", "/api/v1/nodes/node-0000", {"spec": {"taints": []}})
    return _pattern(cluster, etcd, b"/registry/minions/node-0000", "/api/v1/nodes/node-0000")


def _pod(cluster: Cluster, etcd: Etcd, engine: EngineName) -> Pattern:
    """With what a pod of a real cluster has that no scheduler reads."""
    made = (
        pods.kai_pod("pod-00000", "app-000")
        if engine == "kai"
        else pods.yunikorn_pod("pod-00000", "app-000", "root.prod")
    )
    key, at = b"/registry/pods/default/pod-00000", "/api/v1/namespaces/default/pods/pod-00000"
    made["metadata"].setdefault("labels", {}).update({f"example.com/label-{i}": f"value-{i}" for i in range(5)})
    container = made["spec"]["containers"][0]
    container |= {
        "env": [{"name": f"VARIABLE_{i}", "value": f"the value of variable {i}"} for i in range(12)],
        "volumeMounts": [{"name": f"volume-{i}", "mountPath": f"/mnt/{i}"} for i in range(3)],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
    }
    made["spec"]["volumes"] = [{"name": f"volume-{i}", "configMap": {"name": f"settings-{i}"}} for i in range(3)]
    cluster.call("POST", "/api/v1/namespaces/default/pods", made)
    states = [etcd.get(key)]
    target = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "pod-00000"},
              "target": {"apiVersion": "v1", "kind": "Node", "name": "node-0000"}}  # fmt: skip
    cluster.call("POST", at + "/binding", target)
    for phase in ("Running", "Succeeded"):
        cluster.call("PATCH", at + "/status", {"status": _status(phase)})
        states.append(etcd.get(key))
    return Pattern(key, states, cluster.call("GET", at)["metadata"]["uid"].encode())


def _status(phase: str) -> Item:
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": _AT}
                  for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")]  # fmt: skip
    container = {"name": "c", "image": "none", "imageID": "sha256:" + "0" * 64, "ready": True, "restartCount": 0,
                 "containerID": "containerd://" + "0" * 64, "state": {"running": {"startedAt": _AT}}}  # fmt: skip
    return {"phase": phase, "conditions": conditions, "containerStatuses": [container], "startTime": _AT}


def _kueue(cluster: Cluster, etcd: Etcd) -> Pattern:
    """Workloads, one a pod: in 500 ClusterQueues of 50 cohorts, with a LocalQueue each."""
    for defined in followed_definitions("kueue"):
        cluster.define(defined)
    cluster.apply(kueue.flavor())
    for number in range(GROUPS):
        name = f"app-{number:03}"
        cluster.apply(kueue.cluster_queue(name, 1000, f"cohort-{number % 50}"), kueue.local_queue(name, name))
    made = kueue.workload("pod-00000", "app-000", 1)
    key = b"/registry/kueue.x-k8s.io/workloads/default/pod-00000"
    at = "/apis/kueue.x-k8s.io/v1beta1/namespaces/default/workloads/pod-00000"
    cluster.apply(made)
    states = [etcd.get(key)]
    running = kueue.admission("app-000", 1)
    done = {"type": "Finished", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": _AT}
    for status in (running, {**running, "conditions": [*running["conditions"], done]}):
        cluster.call("PATCH", at, {"status": status})
        states.append(etcd.get(key))
    return Pattern(key, states, cluster.call("GET", at)["metadata"]["uid"].encode())
