"""Every write leaves a line of the audit log."""

from starlette.testclient import TestClient

from app.clusters.router import EXAMPLE as CLUSTER
from app.decisions.schemas import SITUATION
from app.simulations.router import SIMULATION

LINES = {"Content-Type": "application/x-ndjson"}


def test_traces_simulations_snapshots_and_clusters_leave_lines(service: TestClient) -> None:
    document = {"engine": "kueue", **SITUATION["configuration"]}
    service.put("/v1/traces/t", content=b"", headers=LINES).raise_for_status()
    service.delete("/v1/traces/t").raise_for_status()
    job = service.post("/v1/simulations", json=SIMULATION).raise_for_status().json()["id"]
    service.delete(f"/v1/simulations/{job}").raise_for_status()
    service.delete(f"/v1/simulations/{job}").raise_for_status()
    service.put("/v1/snapshots/s", json={"configuration": document, "state": {}}).raise_for_status()
    service.post("/v1/snapshots/s/deltas", json={"generation": 1}).raise_for_status()
    service.delete("/v1/snapshots/s").raise_for_status()
    for _ in range(2):
        service.put("/v1/clusters/c", json=CLUSTER).raise_for_status()
    service.delete("/v1/clusters/c").raise_for_status()
    lines = service.get("/v1/audit").json()["items"][::-1]
    assert [(line["action"], line["target"]) for line in lines] == [
        ("trace.put", "t"), ("trace.delete", "t"),
        ("simulation.begin", job), ("simulation.cancel", job), ("simulation.delete", job),
        ("snapshot.put", "s"), ("snapshot.change", "s"), ("snapshot.delete", "s"),
        ("cluster.follow", "c"), ("cluster.forget", "c"),
    ]  # fmt: skip
    assert {line["actor"] for line in lines} == {"anonymous"}
