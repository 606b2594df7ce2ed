"""``python -m benchmarks.guarding``: how long the guard keeps kube-scheduler waiting, at 5,000 nodes and 50,000 pods.

kube-scheduler proposes a tenth of the nodes (its ``minCandidateNodesPercentage``), each with victims that make room.
"""

import json
import statistics
from typing import Any

from benchmarks.inputs import recorded
from benchmarks.service import Client, service

INPUT = "yunikorn-node-5000n-50000a-100q"
CANDIDATES, ROUNDS = 500, 40


def main() -> None:
    """Print the median and the worst of some rounds."""
    item = recorded(INPUT)
    if item is None:
        print(f"{INPUT}: not at hand (../shared/vectors/speed)")
        return
    request = json.loads(item.body)
    with service() as (port, _):
        client = Client(port)
        client.ask("/v1/configurations/guard", json.dumps(request["configuration"]).encode(), "PUT")
        snapshot = {"configuration": "guard", "state": request["state"]}
        client.ask("/v1/snapshots/guard", json.dumps(snapshot).encode(), "PUT")
        body = _question(request)
        answer, _ = client.ask("/v1/extenders/guard/preempt", body)
        seconds = [client.ask("/v1/extenders/guard/preempt", body)[1] for _ in range(ROUNDS)]
    stay, nodes = len(answer["NodeNameToMetaVictims"]), len(request["state"]["nodes"])
    median, worst = statistics.median(seconds) * 1e3, max(seconds) * 1e3
    print(f"{CANDIDATES} of {nodes} nodes proposed, {len(body) >> 10} KB, {stay} stay")
    print(f"median {median:.0f} ms, worst of {ROUNDS} {worst:.0f} ms")


def _question(request: dict[str, Any]) -> bytes:
    """For each of the first candidates all that runs there and may go, as kube-scheduler sends pods."""
    by_node: dict[str, list[dict[str, Any]]] = {}
    for workload in request["state"]["workloads"]:
        for task in workload["tasks"]:
            labels = {"applicationId": workload["id"], "queue": workload["queue"]}
            pod = _pod(task["name"], labels, task.get("priority", 0), task["requests"])
            by_node.setdefault(task["node"], []).append(pod)
    chosen = sorted(by_node)[:: max(1, len(by_node) // CANDIDATES)][:CANDIDATES]
    (ask,) = request["asks"]
    asking = _pod(ask["id"], {"applicationId": ask["workload"], "queue": ask["queue"]}, 10, ask["tasks"][0]["requests"])
    victims = {node: {"Pods": by_node[node][:3], "NumPDBViolations": 0} for node in chosen}
    return json.dumps({"Pod": asking, "NodeNameToVictims": victims, "NodeNameToMetaVictims": None}).encode()


def _pod(name: str, labels: dict[str, str], priority: int, requests: dict[str, Any]) -> dict[str, Any]:
    amounts = {"cpu" if key == "vcore" else key: str(value) for key, value in requests.items()}
    resources = {"requests": amounts, "limits": amounts}
    mounts = [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}]
    container = {"name": "main", "image": "registry/worker:1", "resources": resources, "volumeMounts": mounts}
    metadata = {"name": name, "uid": f"uid-{name}", "labels": labels, "creationTimestamp": "2023-11-14T20:00:00Z"}
    spec = {"schedulerName": "default-scheduler", "priority": priority, "containers": [container]}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


if __name__ == "__main__":
    main()
