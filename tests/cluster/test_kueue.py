"""Kueue, followed on a real API server."""

from typing import Any

import httpx2
import msgspec

from tests.cluster import kueue
from tests.cluster.following import eventually, following, fresh, kept
from tests.cluster.server import Cluster


def agrees(cluster: Cluster, arbiter: httpx2.Client, name: str) -> bool:
    """Whether what is kept is what a list gives."""
    found, wanted = kept(arbiter, name), fresh(cluster, "kueue")
    if not found:
        return False
    queues = {queue.name: queue for queue in wanted.configuration.queues}
    return found == msgspec.json.decode(
        msgspec.json.encode(
            {"nodes": wanted.nodes, "workloads": wanted.workloads, "asks": wanted.asks, "queues": queues}
        )
    )


def test_a_cluster_is_followed_from_its_list_through_a_change_to_a_decision(
    kubernetes: Cluster, arbiter: httpx2.Client
) -> None:
    kubernetes.apply(
        kueue.flavor(),
        kueue.cluster_queue("team-a", 100, "all", withinClusterQueue="LowerPriority"),
        kueue.cluster_queue("team-b", 100, "all"),
        kueue.local_queue("a", "team-a"), kueue.local_queue("b", "team-b"), kueue.priority_class("high", 1000),
        *(kueue.workload(f"run-{i:03}", "a", 1, i, admitted="team-a") for i in range(100)),
        *(kueue.workload(f"run-{i:03}", "b", 1, admitted="team-b") for i in range(100, 200)),
    )  # fmt: skip
    with following(kubernetes, arbiter, "kueue", "first"):
        eventually(lambda: agrees(kubernetes, arbiter, "first"))
        kubernetes.apply(kueue.workload("urgent", "a", 2, 500))
        asks = eventually(lambda: arbiter.get("/v1/snapshots/first/asks").json()["items"])
        assert [ask["id"] for ask in asks] == ["default/urgent"]
        body = {"state": {"snapshot": "first"}, "asks": "pending"}
        decided = arbiter.post("/v1/decisions", json=body).json()
        (decision,) = decided["decisions"]
        assert decision["outcome"] == "preempt"
        assert sorted(victim["workload"] for victim in decision["victims"]) == ["default/run-000", "default/run-001"]
        assert decided["state"]["resource_versions"].keys() >= {"Workload", "ClusterQueue"}
        assert decided["configuration"]["name"] == "first"

        kubernetes.call(
            "PATCH",
            "/apis/kueue.x-k8s.io/v1beta1/clusterqueues/team-a",
            {"spec": {"preemption": {"withinClusterQueue": "Never"}}},
        )
        eventually(lambda: arbiter.get("/v1/configurations/first").json()["revision"] == 2)
        revision = arbiter.get("/v1/configurations/first").json()
        assert revision["comment"] == "followed from the cluster: queue team-a changed"
        eventually(lambda: arbiter.post("/v1/decisions", json=body).json()["decisions"][0]["outcome"] == "wait")
        found = eventually(lambda: _following(arbiter, "first"))
        (follower,) = found["followers"]
        assert follower["writer"]
        assert {kind["kind"]: kind["objects"] for kind in follower["kinds"]} == {
            "ClusterQueue": 2, "Cohort": 0, "LocalQueue": 2, "ResourceFlavor": 1, "Workload": 201,
            "WorkloadPriorityClass": 1,
        }  # fmt: skip
        assert follower["local_queues"] == {"default/a": "team-a", "default/b": "team-b"}
        assert follower["priority_classes"] == {"high": 1000}


def _following(arbiter: httpx2.Client, name: str) -> dict[str, Any] | None:
    found = arbiter.get(f"/v1/clusters/{name}").json()
    whole = found["followers"][0]["stage"] == "following" and found["followers"][0]["counts"].get("asks") == 1
    return found if whole else None
