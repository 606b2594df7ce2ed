"""Kueue, followed on a real API server."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from app.cli import run
from app.cli.output import BAD_INPUT
from tests.cluster import kueue
from tests.cluster.following import eventually, following, fresh, kept
from tests.cluster.server import Cluster
from tests.support.live import running


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
    kubernetes: Cluster, arbiter: httpx2.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
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
        _ask_about_it(str(arbiter.base_url), tmp_path, capsys)
        (follower,) = found["followers"]
        assert follower["writer"]
        spaces = len(kubernetes.call("GET", "/api/v1/namespaces")["items"])
        assert {kind["kind"]: kind["objects"] for kind in follower["kinds"]} == {
            "ClusterQueue": 2, "Cohort": 0, "LocalQueue": 2, "ResourceFlavor": 1, "Workload": 201,
            "WorkloadPriorityClass": 1, "AdmissionCheck": 0, "ConfigMap": 0, "LimitRange": 0, "Namespace": spaces,
            "PriorityClass": 2, "RuntimeClass": 0,
        }  # fmt: skip
        assert follower["local_queues"] == {"default/a": "team-a", "default/b": "team-b"}
        assert follower["workload_priority_classes"] == {"high": 1000}
        assert follower["priority_classes"].keys() == {"system-cluster-critical", "system-node-critical"}


def _following(arbiter: httpx2.Client, name: str) -> dict[str, Any] | None:
    found = arbiter.get(f"/v1/clusters/{name}").json()
    whole = found["followers"][0]["stage"] == "following" and found["followers"][0]["counts"].get("asks") == 1
    return found if whole else None


JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: small, labels: {kueue.x-k8s.io/queue-name: b, kueue.x-k8s.io/priority-class: high}}
spec:
  template:
    spec:
      containers: [{name: c, resources: {requests: {cpu: 1}}}]
"""


def _ask_about_it(url: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same cluster at the command line."""
    at = ["--cluster", "first", "--url", url]
    assert run(["why", "urgent", *at]) == 2
    assert "default/urgent: wait" in capsys.readouterr().out
    assert run(["why", "default/run-007", *at]) == 0
    assert "default/run-007: runs in team-a" in capsys.readouterr().out
    assert run(["why", "nothing", *at]) == 3
    assert "no such workload" in capsys.readouterr().err
    job = folder / "job.yaml"
    job.write_text(JOB)
    assert run(["plan", str(job), *at, "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert [(one["queue"], one["priority"], one["outcome"]) for one in told["work"]] == [("team-b", 1000, "wait")]
    assert [one["ask"] for one in told["waiting"]] == ["default/urgent"]
    assert run(["plan", str(job), "--cluster", "nowhere", "--url", url]) == 3
    assert "no follower reports" in capsys.readouterr().err


def test_a_service_follows_by_itself_and_its_follower_ends_with_it(
    kubernetes: Cluster, migrated_database: Callable[[], str], tmp_path: Path
) -> None:
    kubernetes.apply(kueue.flavor(), kueue.cluster_queue("q", 4), kueue.local_queue("l", "q"))
    kubernetes.apply(kueue.workload("waits", "l", 1))
    environment = {"KUBECONFIG": str(kubernetes.kubeconfig()), "ARBITER_SIMULATION_WORKER": "elsewhere"}
    with running(migrated_database(), tmp_path, "--follow", "kueue:own", **environment) as live:
        with httpx2.Client(base_url=live.address, timeout=60) as client:
            eventually(lambda: kept(client, "own").get("asks", {}).keys() == {"default/waits"})
            (follower,) = client.get("/v1/clusters/own").json()["followers"]
        number = int(follower["follower"].rpartition("-")[2])
        assert there(number)
        live.process.kill()
        eventually(lambda: not there(number))


def there(number: int) -> bool:
    """Whether that process runs; what waits for somebody to ask how it ended does not."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(number)], capture_output=True, text=True, check=False)
    return found.stdout.strip()[:1] not in ("", "Z")


@pytest.mark.parametrize("given", ["kueue", "slurm:prod", "kueue:", "kueue:a/b"])
def test_what_can_t_be_followed_is_said_before_anything_starts(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--follow", given]) == BAD_INPUT
    assert f"--follow {given}: ENGINE:NAME" in capsys.readouterr().err
