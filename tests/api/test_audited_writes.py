"""Every write leaves a line of the audit log."""

import pytest
from starlette.testclient import TestClient

from app.clusters.router import EVICTION
from app.clusters.router import EXAMPLE as CLUSTER
from app.clusters.shadow import EXAMPLE as SHADOW
from app.decisions.schemas import SITUATION
from app.simulations.router import SIMULATION
from app.studies.exposure_schemas import EXPOSURE

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


def test_reports_and_exposures_leave_lines(service: TestClient) -> None:
    service.put("/v1/configurations/c", json={"engine": "kueue", **SITUATION["configuration"]}).raise_for_status()
    job = service.post("/v1/exposures", json=EXPOSURE).raise_for_status().json()["id"]
    service.delete(f"/v1/exposures/{job}").raise_for_status()
    for _ in range(2):  # of one kind a line a minute
        service.post("/v1/clusters/c/evictions", json={"engine": "kueue", "evictions": [EVICTION]}).raise_for_status()
        service.post("/v1/shadow", json=SHADOW).raise_for_status()
    lines = service.get("/v1/audit").json()["items"][::-1]
    assert [(line["action"], line["target"]) for line in lines[1:]] == [
        ("exposure.begin", job), ("exposure.cancel", job), ("cluster.evictions", "c"),
        ("shadow.report", SHADOW["cluster"]),
    ]  # fmt: skip


@pytest.mark.parametrize(("at", "others"), [("0001-01-01T00:00:00Z", set[str]()), ("9999-12-31T23:59:59Z", {"other"})])
def test_a_report_of_another_time_makes_nothing_old(service: TestClient, at: str, others: set[str]) -> None:
    """Whoever reports has a clock of its own. What is past retention is forgotten, and nothing else."""
    for one in (EVICTION, {**EVICTION, "at": at, "workload": "other"}, {**EVICTION, "workload": "third"}):
        service.post("/v1/clusters/c/evictions", json={"engine": "kueue", "evictions": [one]}).raise_for_status()
    found = service.get("/v1/clusters/c/evictions").json()["items"]
    assert {one["workload"] for one in found} == {EVICTION["workload"], "third"} | others
    times = [one["at"] for one in found]
    assert times == sorted(times, reverse=True), "ids are those of the times that are reported"
