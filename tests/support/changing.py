"""Clusters that change at random, for what follows them."""

import random
from collections.abc import Callable
from typing import Any

from app.following.mirror import Mirror, View
from app.following.objects import FOLLOWED, Event, Listed, trimmed
from app.solver.model.configuration import EngineName
from tests.cluster import kueue, pods

Item = dict[str, Any]
_CLASS: Item = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
_QUEUES = ["root.prod"] * 4 + ["root.dev.team-a", "root.dev.team-b", "elsewhere.x"]


class World:
    """One cluster, as ``mirror`` hears of it."""

    def __init__(self, engine: EngineName, seed: int) -> None:
        self.engine: EngineName = engine
        self.mirror = Mirror(FOLLOWED[engine])
        self._kinds = {kind.name: kind for kind in FOLLOWED[engine]}
        self._random = random.Random(seed)
        self._changes = 0
        begin = {"kueue": _kueue, "kai": _kai, "yunikorn": _yunikorn, "kube-scheduler": _kube}[engine]()
        for name, kind in self._kinds.items():
            items = [trimmed(name, item) for item in begin if item["kind"] == name]
            self.mirror.listed(kind, kind.api_version(kind.versions[0]), Listed(items, "1"), "test")

    def seen(self, *, again: bool = False) -> View:
        """What there is; ``again``: all of it, as if nobody had looked."""
        if again:
            self.mirror.forget()
        view = self.mirror.view()
        assert view is not None
        return view

    def change(self) -> None:
        """One object is made, changed or deleted."""
        self._changes += 1
        makers: dict[str, list[Callable[[], Item]]] = {
            "kueue": [self._workload] * 4 + [self._stranger, self._placed, self._rack],
            "kai": [self._kai_pod] * 4 + [self._stranger, self._node, self._pod_group],
            "yunikorn": [self._yunikorn_pod] * 5 + [self._stranger, self._node],
            "kube-scheduler": [self._kube_pod] * 5 + [self._stranger, self._node, self._budget],
        }  # fmt: skip
        made = self._random.choice(makers[self.engine])()
        self._send(made, gone=self._random.random() < (0.25 if made["kind"] in ("Pod", "Workload") else 0.1))

    def reconfigure(self) -> None:
        """A queue or a priority class changes: what bears on everything."""
        amount = self._random.randint(1, 50)
        changes = {
            "kueue": [kueue.cluster_queue("q", amount)],
            "kai": [pods.kai_queue("leaf", amount, "parent"), _class("own", amount)],
            "yunikorn": [pods.yunikorn_queues(amount), _class("own", amount)],
            "kube-scheduler": [_class("own", amount), _namespace(f"space-{amount % 4}")],
        }
        self._send(self._random.choice(changes[self.engine]), gone=False)

    def _send(self, item: Item, *, gone: bool) -> None:
        kind = item["kind"]
        self.mirror.apply(self._kinds[kind], Event(gone, trimmed(kind, item), str(self._changes)))

    def _workload(self) -> Item:
        choose = self._random
        queue = choose.choice(["l"] * 9 + ["nowhere"])
        admitted = choose.choice([None, "q", "q", "q", "gone"])
        name = f"w{choose.randrange(80)}"
        return kueue.workload(name, queue, choose.randint(1, 9), choose.randint(0, 5), admitted=admitted)

    def _pod(self, name: str, scheduler: str, **metadata: dict[str, str]) -> Item:
        choose = self._random
        on = choose.choice([None, "node-0", "node-1", "node-2", "node-3"])
        made = pods.pod(name, scheduler, choose.randint(1, 4), on, **metadata)
        made["metadata"]["creationTimestamp"] = f"2026-11-22T09:00:{choose.randrange(60):02}Z"
        made["metadata"]["uid"] = f"uid-{name}"
        made["status"]["phase"] = choose.choice([made["status"]["phase"]] * 5 + ["Succeeded"])
        if choose.random() < 0.2:
            made["spec"]["priorityClassName"] = choose.choice(["own", "unknown"])
        if on is None and choose.random() < 0.1:
            made["spec"]["schedulingGates"] = [{"name": "quota"}]
        if choose.random() < 0.1:
            made["metadata"]["deletionTimestamp"] = "2026-11-22T09:01:00Z"
        return made

    def _stranger(self) -> Item:
        return self._pod(f"s-{self._random.randrange(12)}", "default-scheduler")

    def _placed(self) -> Item:
        annotations = {"kueue.x-k8s.io/podset-required-topology": kueue.RACK}
        return self._pod(f"p-{self._random.randrange(12)}", "default-scheduler", annotations=annotations)

    def _rack(self) -> Item:
        return _in_rack(self._node(), self._random.choice(["a", "b"]))

    def _yunikorn_pod(self) -> Item:
        choose = self._random
        labels = {"applicationId": f"app-{choose.randrange(6)}", "queue": choose.choice(_QUEUES)}
        return self._pod(f"y-{choose.randrange(40)}", "yunikorn", labels=labels if choose.random() < 0.9 else {})

    def _kube_pod(self) -> Item:
        choose = self._random
        made = self._pod(f"p-{choose.randrange(60)}", choose.choice(["default-scheduler"] * 4 + ["another"]))
        made["metadata"]["namespace"] = f"space-{choose.randrange(4)}"
        made["status"]["startTime"] = f"2026-11-22T09:00:{choose.randrange(60):02}Z"
        if choose.random() < 0.3:
            made["status"]["nominatedNodeName"] = f"node-{choose.randrange(4)}"
        if choose.random() < 0.2:
            reason = choose.choice(["PreemptionByScheduler", "EvictionByEvictionAPI"])
            made["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": reason}]
        if choose.random() < 0.2:
            made["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
        return made

    def _budget(self) -> Item:
        name = f"budget-{self._random.randrange(3)}"
        return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": name, "namespace": f"space-{self._random.randrange(5)}"},
                "spec": {"selector": {"matchLabels": {"a": "b"}}},
                "status": {"disruptionsAllowed": self._random.randrange(3)}}  # fmt: skip

    def _kai_pod(self) -> Item:
        choose = self._random
        number = choose.randrange(25)
        annotations = {"pod-group-name": f"pg-{choose.randrange(5)}"} if choose.random() < 0.7 else {}
        if choose.random() < 0.2:
            annotations["gpu-memory"] = str(choose.choice([2000, 9000]))
        made = self._pod(
            f"k-{number}", "kai-scheduler", annotations=annotations, labels={"kai.scheduler/queue": "leaf"}
        )
        if "pod-group-name" not in annotations and number % 2:
            made["metadata"]["ownerReferences"] = [{"kind": "RayJob", "name": f"own-{number % 4}", "uid": "u"}]
        return made

    def _pod_group(self) -> Item:
        number = self._random.randrange(6)
        return pods.pod_group(f"pg-{number}", "leaf", self._random.choice(["train", "build", "own"]))

    def _node(self) -> Item:
        made = pods.node(f"node-{self._random.randrange(4)}", self._random.randint(4, 16))
        size = self._random.choice(["8000", "16000", "16000", None])
        return made if size is None else _labelled(made, size)


def _labelled(node: Item, size: str) -> Item:
    return {**node, "metadata": {**node["metadata"], "labels": {"nvidia.com/gpu.memory": size}}}


def _class(name: str, value: int) -> Item:
    return {**_CLASS, "metadata": {"name": name}, "value": value}


def _kueue() -> list[Item]:
    workloads = [kueue.workload(f"w{i}", "l", 1) for i in range(60)]
    nodes = [_in_rack(node, "a") for node in _nodes()]
    flavor = kueue.flavor()
    flavor["spec"]["topologyName"] = "racks"
    queues = [kueue.cluster_queue("q", 100), kueue.local_queue("l", "q")]
    first = pods.pod("s-0", "default-scheduler", 1, "node-0")
    return [*queues, flavor, kueue.topology("racks"), *nodes, first, *workloads]


def _in_rack(node: Item, rack: str) -> Item:
    name = node["metadata"]["name"]
    labels = {kueue.RACK: rack, "kubernetes.io/hostname": name}
    return {**node, "metadata": {**node["metadata"], "labels": labels}}


def _kai() -> list[Item]:
    groups = [pods.pod_group(f"pg-{i}", "leaf") for i in range(3)]
    return [pods.kai_queue("parent", 20), pods.kai_queue("leaf", 10, "parent"), *groups, _class("own", 7), *_nodes()]


def _yunikorn() -> list[Item]:
    return [pods.yunikorn_queues(4), _class("own", 7), *_nodes()]


def _namespace(name: str) -> Item:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _kube() -> list[Item]:
    return [_namespace("space-0"), _class("own", 7), *_nodes()]


def _nodes() -> list[Item]:
    return [_labelled(pods.node(f"node-{i}"), "16000") for i in range(3)]
