"""An engine is added by a file and a line: everything else learns of it from its record."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ADDED = "from app.solver.engines import ENGINES; ENGINES['toy'] = 'tests.support.toy'\n"
"""The line of ``app/solver/engines/__init__.py``, before anything else of Arbiter is imported."""
REQUEST: dict[str, Any] = {
    "now": "2026-01-01T00:00:00Z", "configuration": {"engine": "toy", "queues": [{"name": "q"}]},
    "state": {"workloads": [{"id": "old", "queue": "q", "priority": 1}, {"id": "new", "queue": "q", "priority": 1}]},
    "asks": [{"id": "ask", "queue": "q", "priority": 2, "tasks": [{"name": "t"}]}],
}  # fmt: skip
SERVICE = """
import json, sys
from starlette.testclient import TestClient
from app.base import logs
from app.base.settings import Settings
from app.service.main import create_app

request = json.loads(sys.argv[2])
settings = Settings(
    database_url=sys.argv[1], allowed_hosts="testserver", log_level="error", decision_log="sync", workers=0
)
logs.configure(settings)
with TestClient(create_app(settings)) as client:
    told = {}
    for name in ("decisions", "effective-settings", "shares", "preemptibility"):
        body = request if name == "decisions" else {k: request[k] for k in ("configuration", "state")}
        reply = client.post(f"/v1/{name}", json=body)
        told[name] = (reply.status_code, reply.json())
    compared = {**request, "variants": [{"name": "kueue", "engine": "kueue"}]}
    told["comparisons"] = (client.post("/v1/comparisons", json=compared).status_code, None)
    told["rules"] = client.get("/v1/rules", params={"engine": "toy"}).json()
    told["log"] = client.get("/v1/decisions", params={"engine": "toy"}).json()
    told["metrics"] = client.get("/metrics").text
    told["page"] = client.get("/ask").text
    recorded = told["decisions"][1]["id"]
    told["decision"] = client.get(f"/decisions/{recorded}").text
    told["replay"] = client.post(f"/v1/decisions/{recorded}/replay").json()
    told["changed"] = client.post("/v1/decisions", json={**request, "configuration": {"engine": "tay"}}).json()
    text = "lines: [q, r]\\n"
    sent = {"content": text, "headers": {"content-type": "application/yaml"}}
    for name in ("toy", "kubernetes"):
        read = client.post("/v1/configurations:import", params={"format": name}, **sent)
        told[f"{name} documents"] = (read.status_code, read.json())
    client.put("/v1/configurations/toys", json=told["toy documents"][1]["configuration"])
    told["written"] = client.get("/v1/configurations/toys:export").text
    told["document"] = client.get("/openapi.json").json()
print(json.dumps(told))
"""


def run(code: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", ADDED + code, *arguments]
    return subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_service_decides_by_it_logs_it_counts_it_shows_it_and_documents_it(database_url: str) -> None:
    """And says what it can't do."""
    done = run(SERVICE, database_url, json.dumps(REQUEST))
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    status, answer = told["decisions"]
    assert (status, answer["engine"]) == (200, "toy")
    victim = {"workload": "new", "queue": "q", "reason": "Weaker", "message": "it is weaker"}
    assert answer["decisions"] == [
        {"ask": "ask", "outcome": "preempt", "victims": [{**victim, "conditions": [], "freed": {}}], "conditions": []}
    ]
    assert [eviction["workload"] for eviction in answer["plan"]["evictions"]] == ["new"]
    assert told["replay"]["identical"] is True
    assert "toy" in told["changed"]["errors"][0]["detail"], "whoever misspells an engine reads its name"
    assert told["comparisons"][0] == 200, "a situation of it is told in the words of others"
    assert [one["rule"] for one in told["rules"]["rules"]] == ["weaker"]
    assert [one["engine"] for one in told["log"]["items"]] == ["toy"]
    assert 'arbiter_decisions_total{engine="toy",outcome="preempt",reason=""} 1.0' in told["metrics"]
    for measured in ("compile", "solve", "encode"):
        assert f'arbiter_decision_{measured}_seconds_count{{engine="toy"}} 1.0' in told["metrics"]
    assert "<option>toy</option>" in told["page"]
    for shown in ("<dt>Rules of</dt><dd>toy", '<td class="text">Weaker<br><span class="hint">it is weaker</span>'):
        assert shown in told["decision"], "a decision of it has a page"
    operation = told["document"]["paths"]["/v1/configurations:import"]["post"]
    schemas = told["document"]["components"]["schemas"]
    for listed in (
        schemas["EngineName"], schemas["ImportedManifest"]["properties"]["format"],
        next(one["schema"] for one in operation["parameters"] if one["name"] == "format"),
    ):  # fmt: skip
        assert "toy" in listed["enum"]
    for question in ("shares", "preemptibility"):
        status, problem = told[question]
        assert (status, problem["errors"][0]["pointer"]) == (422, "/engine")
    assert told["effective-settings"][0] == 200
    for name in ("toy", "kubernetes"):
        status, found = told[f"{name} documents"]
        assert (status, found["findings"]) == (200, [])
        assert [queue["name"] for queue in found["configuration"]["queues"]] == ["q", "r"]
    assert told["written"].split() == ["---", "lines:", "-", "q", "-", "r"]


def arbiter(*arguments: str, text: str) -> str:
    """What the command line prints."""
    done = run("import sys; from app.cli import run; sys.exit(run(sys.argv[1:]))", *arguments, text=text)
    assert not done.stderr
    return done.stdout


def test_the_command_line_decides_by_it_and_reads_and_writes_its_documents() -> None:
    answer = json.loads(arbiter("decide", "-", "--json", text=json.dumps(REQUEST)))
    assert answer["decisions"][0]["victims"][0]["workload"] == "new"
    assert "it is weaker" in arbiter("explain", "-", text=json.dumps(REQUEST))
    read = json.loads(arbiter("import", "-", "--format", "toy", text="lines: [q, r]"))
    assert [queue["name"] for queue in read["queues"]] == ["q", "r"]
    assert arbiter("export", "-", "--format", "toy", text=json.dumps(read)).split() == [
        "---",
        "lines:",
        "-",
        "q",
        "-",
        "r",
    ]
