"""Whatever happens to a cluster and to whoever is between: in the end the snapshot is what a fresh list gives."""

import random
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, cast
from urllib.error import HTTPError

import httpx2
import pytest

from app.following.objects import manifests
from app.solver.model.configuration import EngineName
from tests.cluster import kueue, pods
from tests.cluster.following import eventually, following, plain, settle
from tests.cluster.server import Cluster
from tests.support.changes import account

ENGINES: tuple[EngineName, ...] = ("kueue", "kai", "yunikorn")
Item = dict[str, Any]


def begin(cluster: Cluster) -> None:
    """Queues, and nodes to run on."""
    cluster.apply(
        *(pods.node(f"node-{i}") for i in range(3)),
        kueue.flavor("default"), kueue.cluster_queue("kq-0", 50, "pool"), kueue.cluster_queue("kq-1", 50, "pool"),
        kueue.local_queue("lq-0", "kq-0"), kueue.local_queue("lq-1", "kq-1"),
        pods.kai_queue("parent", 20), pods.kai_queue("leaf", 10, "parent"), pods.pod_group("pg-0", "leaf"),
        pods.yunikorn_queues(4, "yunikorn-defaults"), pods.yunikorn_queues(8),
    )  # fmt: skip


class Changes:
    """Random changes of one cluster, the same for the same seed."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._random = random.Random(seed)
        self._there: list[Item] = []
        self._made = 0

    def make(self) -> None:
        """One change."""
        choices = [self._create, self._create, self._create, self._delete, self._start, self._edit]
        self._random.choice(choices)()

    def _create(self) -> None:
        self._made += 1
        number, cpu = self._made, self._random.randint(1, 4)
        on = self._random.choice([None, "node-0", "node-1"])
        queue = self._random.randint(0, 1)
        made: Item = self._random.choice([
            kueue.workload(f"w-{number}", f"lq-{queue}", cpu, queue, admitted=f"kq-{queue}" if on else None),
            pods.kai_pod(f"k-{number}", "pg-0", cpu, on),
            pods.yunikorn_pod(f"y-{number}", f"app-{number % 5}", "root.prod", cpu, on),
            pods.pod(f"s-{number}", "default-scheduler", cpu, on),
        ])  # fmt: skip
        self._cluster.apply(made)
        self._there.append(made)

    def _delete(self) -> None:
        if self._there:
            gone = self._there.pop(self._random.randrange(len(self._there)))
            self._cluster.call("DELETE", self._cluster.path(gone, named=True))

    def _start(self) -> None:
        waiting = [item for item in self._there if item["kind"] == "Workload" and "status" not in item]
        if waiting:
            item = self._random.choice(waiting)
            item["status"] = kueue.admission("kq-0", 1)
            self._cluster.call("PATCH", self._cluster.path(item, named=True), {"status": item["status"]})

    def _edit(self) -> None:
        amount = self._random.randint(1, 30)
        edits: list[tuple[Item, Item]] = [
            (
                kueue.cluster_queue("kq-1", amount, "pool"),
                {"spec": kueue.cluster_queue("kq-1", amount, "pool")["spec"]},
            ),
            (pods.kai_queue("leaf", amount, "parent"), {"spec": pods.kai_queue("leaf", amount, "parent")["spec"]}),
            (pods.yunikorn_queues(amount), {"data": pods.yunikorn_queues(amount)["data"]}),
            (pods.node("node-2"), {"spec": {"unschedulable": bool(amount % 2)}}),
        ]
        item, change = self._random.choice(edits)
        self._cluster.call("PATCH", self._cluster.path(item, named=True), change)


def test_after_changes_restarts_and_lost_history_the_snapshot_is_what_a_list_gives(
    kubernetes: Cluster, arbiter: httpx2.Client
) -> None:
    begin(kubernetes)
    tokens = {engine: account(kubernetes, engine) for engine in ENGINES}
    changes = Changes(kubernetes, 20261122)

    def restart() -> None:
        kubernetes.kill_server()
        kubernetes.start_server()

    def lose_history() -> None:
        kubernetes.kill_server()
        kubernetes.start_server()
        for _ in range(5):
            changes.make()
        kubernetes.compact()
        kubernetes.kill_server()
        kubernetes.start_server()

    def there(engine: EngineName) -> bool:
        return arbiter.get(f"/v1/snapshots/random-{engine}").status_code == 200

    def lose_snapshots() -> None:
        """Once nothing is on its way, and until they are there again: a change of queues or a restart would bring them
        back without being missed."""
        for engine in ENGINES:
            settle(kubernetes, arbiter, engine, f"random-{engine}")
            arbiter.delete(f"/v1/snapshots/random-{engine}").raise_for_status()
        for engine in ENGINES:
            eventually(lambda engine=engine: there(engine))

    mishaps: list[Callable[[], None]] = [lose_snapshots, restart, lose_history]
    with ExitStack() as running:
        for engine in ENGINES:
            running.enter_context(following(kubernetes, arbiter, engine, f"random-{engine}", tokens[engine]))
        for mishap in mishaps:
            for _ in range(25):
                changes.make()
            mishap()
        for _ in range(25):
            changes.make()
        kubernetes.apply(
            kueue.workload("last", "lq-0", 1), kueue.workload("runs", "lq-1", 1, admitted="kq-1"),
            pods.kai_pod("last-k", "pg-0"), pods.kai_pod("runs-k", "pg-0", 1, "node-0"),
            pods.yunikorn_pod("last-y", "app", "root.prod"),
            pods.yunikorn_pod("runs-y", "app", "root.prod", 1, "node-0"),
        )  # fmt: skip
        for engine in ENGINES:
            settle(kubernetes, arbiter, engine, f"random-{engine}")
            found = plain(kubernetes, engine)
            assert all(found[part] for part in ("workloads", "asks", "queues")), engine
        lists = arbiter.get("/v1/clusters/random-kueue").json()["followers"][0]["lists"]
        assert lists["snapshot_lost"] >= 1
    for engine in ENGINES:  # a follower that starts anew finds another cluster than the one that it left
        changes.make()
        with following(kubernetes, arbiter, engine, f"random-{engine}", tokens[engine]):
            settle(kubernetes, arbiter, engine, f"random-{engine}")


def test_an_upgrade_of_kai_is_followed(kubernetes: Cluster, arbiter: httpx2.Client) -> None:
    begin(kubernetes)
    kubernetes.apply(pods.kai_pod("waits", "pg-0", 9))
    question = {"state": {"snapshot": "upgraded"}, "asks": "pending", "mode": "cycle", "configuration": "upgraded"}

    def answered() -> tuple[str | None, bool]:
        """The release of an answer, and whether nothing says so."""
        reply = arbiter.post("/v1/decisions", json=question)
        if reply.status_code != 200:
            return None, False
        said: Item = reply.json()
        return said.get("release"), any(finding["rule"] == "release" for finding in said.get("findings", []))

    def scheduler(tag: str) -> Item:
        labels = {"app": "kai-scheduler-default"}
        containers = [{"name": "kai-scheduler-default", "image": f"ghcr.io/nvidia/kai-scheduler/scheduler:{tag}"}]
        return {
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "kai-scheduler-default", "namespace": "kai-scheduler"},
            "spec": {"selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}},
        }  # fmt: skip

    def operator(tag: str) -> Item:
        spec = {"scheduler": {"service": {"image": {"tag": tag}}}}
        return {"apiVersion": "kai.scheduler/v1", "kind": "Config", "metadata": {"name": "kai-config"}, "spec": spec}

    with following(kubernetes, arbiter, "kai", "upgraded", account(kubernetes, "kai", of="upgraded")):
        eventually(lambda: answered() == ("0.17", True))
        kubernetes.apply(operator("v0.13.4"))
        eventually(lambda: answered() == ("0.13", False))
        kubernetes.apply(scheduler("v0.17.1"))
        eventually(lambda: answered() == ("0.17", False))
        changed = {"spec": {"template": scheduler("v0.13.2")["spec"]["template"]}}
        kubernetes.call("PATCH", kubernetes.path(scheduler(""), named=True), changed)
        eventually(lambda: answered() == ("0.13", False))
        comments = [
            one.get("comment", "") for one in arbiter.get("/v1/configurations/upgraded/revisions").json()["items"]
        ]
        assert sum("release 0.13 became 0.17" in comment for comment in comments) == 1
        assert sum("release 0.17 became 0.13" in comment for comment in comments) == 2


def test_without_rights_it_says_so_and_goes_on_once_it_has_them(kubernetes: Cluster, arbiter: httpx2.Client) -> None:
    kubernetes.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "poor", "namespace": "default"}}
    )
    request: Item = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = kubernetes.call("POST", "/api/v1/namespaces/default/serviceaccounts/poor/token", request)["status"]["token"]
    with pytest.raises(HTTPError, match="403"):
        kubernetes.call("GET", "/apis/kueue.x-k8s.io/v1beta1/workloads", token=cast(str, token))
    with following(kubernetes, arbiter, "kueue", "denied", token):
        follower = eventually(lambda: _broken(arbiter))
        assert "403" in follower["error"]
        assert "is forbidden" in follower["error"]
        assert arbiter.get("/v1/snapshots/denied").status_code == 404
        kubernetes.apply(*manifests("kueue", "default", "poor")[1:])
        eventually(lambda: arbiter.get("/v1/snapshots/denied").status_code == 200)


def _broken(arbiter: httpx2.Client) -> dict[str, Any] | None:
    found = arbiter.get("/v1/clusters/denied").json()
    followers: list[dict[str, Any]] = found.get("followers", [])
    return followers[0] if followers and followers[0]["stage"] == "broken" else None
