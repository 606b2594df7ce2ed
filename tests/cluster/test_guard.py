"""A real kube-scheduler that wants to preempt, with Arbiter as its extender."""

import re
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from tests.cluster import kueue, pods
from tests.cluster.following import eventually, following, kept, nodes
from tests.cluster.server import Cluster

Item = dict[str, Any]
LONG_AGO = "2026-01-01T00:00:00Z"
AHEAD = "2999-01-01T00:00:00Z"
SCHEDULER = "default-scheduler"
CLASSES = {"guard-low": -10, "guard-middle": 10, "guard-high": 1000}


@contextmanager
def scheduling(
    cluster: Cluster, arbiter: httpx2.Client, name: str, *, at: str | None = None, patience: str = "30s"
) -> Generator[None]:
    """kube-scheduler, asking the guard ``name``, ``at`` another address; and priority classes, the lowest of which it
    evicts first. ``patience``: how long it waits for an answer."""
    for made, value in CLASSES.items():
        cluster.apply(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": made}, "value": value}
        )
    process = cluster.start_scheduler(
        {
            "urlPrefix": f"{at or str(arbiter.base_url).rstrip('/')}/v1/extenders/{name}", "preemptVerb": "preempt",
            "nodeCacheCapable": False, "ignorable": True, "httpTimeout": patience,
        }
    )  # fmt: skip
    try:
        yield
    finally:
        process.kill()
        process.wait()
        for made in CLASSES:
            cluster.call("DELETE", f"/apis/scheduling.k8s.io/v1/priorityclasses/{made}")


def with_class(pod: Item, name: str) -> Item:
    """``pod`` in a priority class."""
    return {**pod, "spec": {**pod["spec"], "priorityClassName": name}}


def there(cluster: Cluster) -> set[str]:
    """The pods that nobody has told to end."""
    found = cluster.call("GET", "/api/v1/namespaces/default/pods")["items"]
    return {one["metadata"]["name"] for one in found if "deletionTimestamp" not in one["metadata"]}


def refusals(arbiter: httpx2.Client, ask: str) -> set[tuple[str, str]]:
    """Whom the log says may not be evicted for ``ask``, and by which rule."""
    found: set[tuple[str, str]] = set()
    for entry in arbiter.get("/v1/decisions", params={"ask": ask}).json()["items"]:
        for verdict in arbiter.get(f"/v1/decisions/{entry['id']}").json()["answer"]["proposals"]:
            found |= {(one.get("task", one["workload"]), one["rule"]) for one in verdict.get("refusals", ())}
    return found


def chosen(arbiter: httpx2.Client, ask: str) -> set[tuple[str, str]]:
    """Which nodes kube-scheduler would have taken without the guard, and took with it."""
    return {
        (what, verdict["node"])
        for entry in arbiter.get("/v1/decisions", params={"ask": ask}).json()["items"]
        for verdict in arbiter.get(f"/v1/decisions/{entry['id']}").json()["answer"]["proposals"]
        for what in ("preferred", "taken")
        if verdict.get(what)
    }


def counted(arbiter: httpx2.Client, outcome: str) -> float:
    """How many questions of extenders ended so."""
    found = re.search(rf'arbiter_extender_requests_total{{outcome="{outcome}"}} (\S+)', arbiter.get("/metrics").text)
    return float(found[1]) if found else 0.0


def test_within_its_minimum_runtime_nobody_is_evicted_and_without_a_snapshot_the_scheduler_goes_on(
    kubernetes: Cluster, arbiter: httpx2.Client
) -> None:
    nodes(kubernetes, "node-young", "node-old")
    queue = pods.kai_queue("guard-a", 4, "guard-top")
    queue["spec"]["reclaimMinRuntime"] = "10m"
    groups = [pods.pod_group("young", "guard-a"), pods.pod_group("old", "guard-a"), pods.pod_group("serve", "guard-b")]
    for group, started in zip(groups, (AHEAD, LONG_AGO), strict=False):
        group["metadata"]["annotations"] = {"kai.scheduler/last-start-timestamp": started}
    kubernetes.apply(pods.kai_queue("guard-top", 8), queue, pods.kai_queue("guard-b", 4, "guard-top"), *groups)

    def pod(name: str, group: str, priority: str, on: str | None = None) -> Item:
        labels = {"kai.scheduler/queue": "guard-b" if group == "serve" else "guard-a"}
        made = pods.pod(name, SCHEDULER, 4, on, annotations={"pod-group-name": group}, labels=labels)
        return with_class(made, priority)

    with scheduling(kubernetes, arbiter, "guard-kai"):
        kubernetes.apply(  # by priority alone the young one would go
            pod("young-0", "young", "guard-low", "node-young"), pod("old-0", "old", "guard-middle", "node-old")
        )
        with following(kubernetes, arbiter, "kai", "guard-kai"):
            eventually(
                lambda: {"default/young", "default/old"} == kept(arbiter, "guard-kai").get("workloads", {}).keys()
            )
            kubernetes.apply(pod("serve-0", "serve", "guard-high"))
            eventually(lambda: "old-0" not in there(kubernetes))
        assert "young-0" in there(kubernetes)
        assert ("young-0", "reclaim-min-runtime") in refusals(arbiter, "default/serve-0")
        assert chosen(arbiter, "default/serve-0") == {("preferred", "node-young"), ("taken", "node-old")}
        before = counted(arbiter, "not_found")
        arbiter.delete("/v1/snapshots/guard-kai")
        kubernetes.apply(pod("again-0", "serve", "guard-high"))
        eventually(lambda: "young-0" not in there(kubernetes))
        assert counted(arbiter, "not_found") > before


QUEUES = """\
partitions:
  - name: default
    queues:
      - {name: prod, resources: {guaranteed: {vcore: 4}}}
      - {name: dev}
      - {name: web, resources: {guaranteed: {vcore: 8}}}
      - name: fenced
        parent: true
        properties: {preemption.policy: fence}
        queues: [{name: inner, resources: {guaranteed: {vcore: 4}}}]
"""


def test_nobody_goes_out_of_a_queue_at_its_guarantee_or_across_a_fence(
    kubernetes: Cluster, arbiter: httpx2.Client
) -> None:
    nodes(kubernetes, "node-prod", "node-dev")
    kubernetes.apply(
        {**pods.yunikorn_queues(0), "data": {"queues.yaml": QUEUES}},
    )

    def pod(name: str, queue: str, priority: str, on: str | None = None) -> Item:
        labels = {"applicationId": f"app-{name}", "queue": f"root.{queue}"}
        return with_class(pods.pod(name, SCHEDULER, 4, on, labels=labels), priority)

    with scheduling(kubernetes, arbiter, "guard-yunikorn"):
        kubernetes.apply(  # by priority alone the one in the guaranteed queue would go
            pod("prod-0", "prod", "guard-low", "node-prod"), pod("dev-0", "dev", "guard-middle", "node-dev")
        )
        with following(kubernetes, arbiter, "yunikorn", "guard-yunikorn"):
            eventually(
                lambda: {"app-prod-0", "app-dev-0"} == kept(arbiter, "guard-yunikorn").get("workloads", {}).keys()
            )
            kubernetes.apply(pod("web-0", "web", "guard-high"))
            eventually(lambda: "dev-0" not in there(kubernetes))
            assert ("default/prod-0", "within-guarantee") in refusals(arbiter, "default/web-0")
            kubernetes.apply(pod("inner-0", "fenced.inner", "guard-high"))
            eventually(lambda: ("default/prod-0", "outside-the-fence") in refusals(arbiter, "default/inner-0"))
        assert {"prod-0", "web-0", "inner-0"} <= there(kubernetes)


def owned(item: Item, name: str | None = None) -> Item:
    """``item`` as the Job of that name owns it, or that of its own."""
    job = name or item["metadata"]["name"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"uid-of-{job}", "controller": True}
    return {**item, "metadata": {**item["metadata"], "ownerReferences": [owner]}}


def test_nobody_goes_out_of_a_queue_of_kueue_that_borrows_nothing(kubernetes: Cluster, arbiter: httpx2.Client) -> None:
    nodes(kubernetes, "node-own", "node-borrowed")
    kubernetes.apply(
        kueue.flavor(),
        *(kueue.cluster_queue(name, cpu, "pool", reclaimWithinCohort="Any") for name, cpu in
          (("own", 4), ("lender", 4), ("borrower", 0))),
        *(kueue.local_queue(name, name) for name in ("own", "lender", "borrower")),
        owned(kueue.workload("keeps", "own", 4, admitted="own")),
        owned(kueue.workload("gives", "borrower", 4, admitted="borrower")),
        owned(kueue.workload("claims", "lender", 4)),
    )  # fmt: skip

    def pod(name: str, priority: str, on: str | None = None) -> Item:
        return with_class(owned(pods.pod(f"{name}-0", SCHEDULER, 4, on), name), priority)

    with scheduling(kubernetes, arbiter, "guard-kueue"), following(kubernetes, arbiter, "kueue", "guard-kueue"):
        boasts = pods.pod(
            "boasts-0",
            SCHEDULER,
            1,
            "node-borrowed",
            labels={f"{kueue.GROUP.partition('/')[0]}/pod-group-name": "keeps"},
        )
        kubernetes.apply(  # by priority alone the one in the queue at its guarantee would go
            pod("keeps", "guard-low", "node-own"), pod("gives", "guard-middle", "node-borrowed"),
            with_class(boasts, "guard-middle"),
        )  # fmt: skip
        eventually(
            lambda: {"default/keeps", "default/gives"} == kept(arbiter, "guard-kueue").get("workloads", {}).keys()
        )
        kubernetes.apply(pod("claims", "guard-high"))
        eventually(lambda: not {"gives-0", "boasts-0"} & there(kubernetes))
        assert "keeps-0" in there(kubernetes)
        assert {rule for task, rule in refusals(arbiter, "default/claims") if "keeps" in task} == {"within-nominal"}


@pytest.mark.parametrize("trouble", ["down", "slow"])
def test_without_an_answer_in_time_the_scheduler_goes_on(
    kubernetes: Cluster, arbiter: httpx2.Client, trouble: str
) -> None:
    nodes(kubernetes, "node-one")
    silent = socket.create_server(("127.0.0.1", 0))  # whoever connects hears nothing
    at = f"http://127.0.0.1:{silent.getsockname()[1] if trouble == 'slow' else 1}"
    with silent, scheduling(kubernetes, arbiter, "guard-away", at=at, patience="1s"):
        kubernetes.apply(with_class(pods.pod("low-0", SCHEDULER, 4, "node-one"), "guard-low"))
        kubernetes.apply(with_class(pods.pod("high-0", SCHEDULER, 4), "guard-high"))
        eventually(lambda: "low-0" not in there(kubernetes))
