"""A real kube-scheduler that preempts by itself, with the shadow beside it."""

from typing import Any

import httpx2

from tests.cluster import pods
from tests.cluster.following import eventually, following, kept, nodes
from tests.cluster.server import Cluster
from tests.support.shadow import records

Item = dict[str, Any]
NAME = "preemption"
CLASSES = {"preemption-low": 1, "preemption-middle": 5, "preemption-high": 1000}


def of_class(pod: Item, name: str) -> Item:
    """``pod`` in a priority class; on no node it waits for kube-scheduler."""
    return {**pod, "spec": {**pod["spec"], "priorityClassName": f"preemption-{name}"}}


def test_what_kube_scheduler_does_is_what_arbiter_says(kubernetes: Cluster, arbiter: httpx2.Client) -> None:
    """One node is left by the lowest priority, one by the fewest violations of a budget, and ties may be drawn."""
    nodes(kubernetes, "node-a", "node-b", "node-c")  # 4 CPUs each
    kubernetes.apply(*(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in CLASSES.items()
    ))  # fmt: skip
    running = [
        of_class(pods.pod(f"{name}-{node}", "default-scheduler", 2, f"node-{node}", labels={"app": name}), name)
        for node in "abc"
        for name in ("low", "middle")
    ]
    kubernetes.apply(*running)
    budget: Item = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "kept", "namespace": pods.SPACE},
        "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "low"}}},
    }  # fmt: skip
    kubernetes.apply(budget)
    process = kubernetes.start_scheduler()
    try:
        with following(kubernetes, arbiter, "kube-scheduler", NAME, shadow=True):
            eventually(lambda: len(kept(arbiter, NAME).get("workloads", {})) == len(running))
            asks = [("one", 2), ("two", 4)]
            for number, (ask, cpu) in enumerate(asks, start=1):
                kubernetes.apply(of_class(pods.pod(ask, "default-scheduler", cpu), "high"))
                eventually(lambda number=number: records(arbiter, NAME, number))
            found = {one["ask"]: one for one in records(arbiter, NAME, len(asks)) or []}
    finally:
        process.kill()
        process.wait()
        for name in CLASSES:
            kubernetes.call("DELETE", f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")
    outcomes = {ask: one["outcome"].removesuffix("_earlier") for ask, one in found.items()}
    assert outcomes == {f"{pods.SPACE}/one": "agreed", f"{pods.SPACE}/two": "agreed"}, found
    (first,) = found[f"{pods.SPACE}/one"]["observed"]
    # No pod of the budget may go without a violation, so that one of the middle goes, though it is more important.
    assert first["workload"].startswith(f"{pods.SPACE}/middle-")
    assert len(found[f"{pods.SPACE}/two"]["observed"]) == 2
    assert 'engine="kube-scheduler",outcome="agreed' in arbiter.get("/metrics").text
