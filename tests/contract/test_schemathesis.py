"""Thousands of generated requests against a live service: what the document says is what it does."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.auth.audit import Caller
from app.auth.router import Sessions
from app.auth.tokens import Tokens
from app.base.settings import Settings
from app.clusters.router import EXAMPLE as CLUSTER
from app.clusters.shadow import EXAMPLE as PREEMPTION
from app.db.database import Database
from app.decisions.schemas import DECISION, SITUATION
from app.simulations.router import SIMULATION
from app.studies.backtesting import BACKTEST
from app.studies.exposure_schemas import EXPOSURE
from app.studies.forecasting import FORECAST
from app.studies.sweep_jobs import SWEEP
from tests.support.document import document
from tests.support.live import ROOT, environment_of, serving
from tests.support.schemathesis import closed

CONFIGURATION = Path(__file__).parent / "schemathesis.toml"
ENOUGH = 2000
PARTS = 7
ADMIN: dict[str, str] = {}
"""Who asks, of the service that is asked."""
SERVICE = {
    "ARBITER_AUTHENTICATION": "required",
    "WORKERS": "0",
    "ARBITER_LOG_LEVEL": "warning",
    "ARBITER_SIMULATION_WORKER": "beside",
}
TRACE = "".join(json.dumps(job) + "\n" for job in SIMULATION["trace"]["jobs"])
LINES = {"Content-Type": "application/x-ndjson", "If-None-Match": "*"}
SELDOM = {
    "PUT /v1/configurations/{name}/labels/{label}", "DELETE /v1/configurations/{name}/labels/{label}",
    "DELETE /v1/configurations/{name}", "DELETE /v1/configurations/{name}/queues/{queue}",
    "POST /v1/configurations/{name}/revisions/{number}:restore",
    "POST /v1/snapshots/{name}/apply", "POST /v1/snapshots/{name}/deltas",
}  # fmt: skip
"""What needs the right version of a thing as well: a matter of luck, and test_examples.py asks for it exactly."""


@pytest.fixture
def address(migrated_database: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    url = migrated_database()
    with closing(Database(url, Settings(database_url=url))) as database:
        secret, _ = Tokens(database).create("contract", ["admin"], None)
        for number in range(9):
            Sessions(database, Tokens(database), None, 3600).with_caller(Caller(f"oidc:{number}", frozenset({"read"})))
    monkeypatch.setitem(ADMIN, "Authorization", f"Bearer {secret}")
    with serving(url, tmp_path, **SERVICE) as (found, _):
        yield found


@pytest.fixture
def ids(address: str) -> dict[str, str]:
    """Ids of a service that has something under the names that are asked for."""
    snapshot = {name: SITUATION[name] for name in ("configuration", "state")}
    first = {"If-None-Match": "*"}
    with httpx2.Client(base_url=address, headers=ADMIN, timeout=60) as service:  # it has just begun, beside others
        for name in ("kept", "production"):
            path = f"/v1/configurations/{name}"
            service.put(path, json=SITUATION["configuration"], headers=first).raise_for_status()
            service.put(f"{path}/labels/stable", json={"revision": 1}, headers=first).raise_for_status()
            service.put(f"/v1/snapshots/{name}", json=snapshot).raise_for_status()
            service.put(f"/v1/clusters/{name}", json=CLUSTER).raise_for_status()
            service.put(f"/v1/traces/{name}", content=TRACE, headers=LINES).raise_for_status()
        found = {"DECISION": service.post("/v1/decisions", json=DECISION).raise_for_status().json()["id"]}
        found["PREEMPTION"] = service.post("/v1/shadow", json=PREEMPTION).raise_for_status().json()["id"]
        token = {"name": "kept", "scopes": ["read"]}
        found["TOKEN"] = service.post("/v1/tokens", json=token).raise_for_status().json()["id"]
        found["SESSION"] = service.get("/v1/sessions").raise_for_status().json()["items"][0]["id"]
        found["FORECAST"] = service.post("/v1/forecasts", json=FORECAST).raise_for_status().json()["id"]
        found["BACKTEST"] = service.post("/v1/backtests", json=BACKTEST).raise_for_status().json()["id"]
        service.put(f"/v1/traces/{SWEEP['trace']}", content=TRACE, headers=LINES).raise_for_status()
        found["SWEEP"] = service.post("/v1/sweeps", json=SWEEP).raise_for_status().json()["id"]
        found["EXPOSURE"] = service.post("/v1/exposures", json=EXPOSURE).raise_for_status().json()["id"]
        for name in ("SIMULATION", "STOPPED"):
            found[name] = service.post("/v1/simulations", json=SIMULATION).raise_for_status().json()["id"]
        while (status := service.get(f"/v1/simulations/{found['STOPPED']}").json()["status"]) != "done":
            assert status in ("queued", "running")
            time.sleep(0.1)
        return found


def operations(document: dict[str, Any]) -> int:
    """How many it has."""
    return sum(len(item) for item in document["paths"].values())


def part_of(document: dict[str, Any], part: int) -> dict[str, Any]:
    """The document with every third path, beginning with ``part``: parts can be asked beside one another."""
    dealt = dict(list(document["paths"].items())[part::PARTS])
    return document | {"paths": dealt}


def question(
    document: dict[str, Any], address: str, folder: Path, *arguments: str, ids: Mapping[str, str] | None = None
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run schemathesis, as it is configured; its report too."""
    source, config, report = (folder / name for name in ("openapi.json", "schemathesis.toml", "report.json"))
    source.write_text(json.dumps(document))
    settings = CONFIGURATION.read_text()
    for name, value in (ids or {}).items():
        settings = settings.replace(f'"{name}"', f'"{value}"')
    config.write_text(settings)
    command = [
        str(Path(sys.executable).parent / "schemathesis"), "--config-file", str(config), "run", str(source),
        "--url", address, "--report", "json", "--report-json-path", str(report), *arguments,
        *(word for name, value in ADMIN.items() for word in ("--header", f"{name}: {value}")),
    ]  # fmt: skip
    environment = environment_of({"PYTHONPATH": str(ROOT)})
    done = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)
    return done, json.loads(report.read_text())


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_undocumented_happens(part: int, address: str, ids: dict[str, str], tmp_path: Path) -> None:
    whole = document()
    asked = part_of(closed(whole), part)
    done, found = question(asked, address, tmp_path, ids=ids)
    _, _, failures = done.stdout.partition("FAILURES")
    assert done.returncode == 0, (failures or done.stdout)[-8000:] + done.stderr[-2000:]
    assert found["operations"]["tested"] == found["operations"]["total"] == operations(asked) > 0
    assert {name: phase["status"] for name, phase in found["phases"].items() if name != "stateful"} == {
        "examples": "success", "coverage": "success", "fuzzing": "success",
    }  # fmt: skip
    assert found["test_cases"]["generated"] >= ENOUGH * operations(asked) / operations(whole)
    assert found["test_cases"]["without_checks"] == 0
    accepted = {
        operation: sum(phase["accepted"] for phase in phases.values())
        for operation, phases in found["valid_rates"].items()
    }
    assert len(accepted) == found["operations"]["total"]
    assert {operation for operation, times in accepted.items() if not times} <= SELDOM


def failed(found: dict[str, Any]) -> set[tuple[str, str]]:
    """Each operation with what is wrong with it."""
    return {(operation, failure["type"]) for failure in found["failures"] for operation in failure["operations"]}


def test_what_the_document_does_not_say_is_found(address: str, tmp_path: Path) -> None:
    changed = document()
    operations = {way["operationId"]: way for item in changed["paths"].values() for way in item.values()}
    del operations["list_tokens"]["responses"]["200"]
    operations["list_tokens"]["responses"]["418"] = {"description": "What it never answers"}
    answer = operations["get_health"]["responses"]["200"]["content"]
    answer["application/json"]["schema"] = {"type": "array"}
    listed = operations["list_audit"]["responses"]["200"]["content"]
    listed["application/xml"] = listed.pop("application/json")
    (limit,) = (part for part in operations["list_decisions"]["parameters"] if part.get("name") == "limit")
    limit["schema"]["maximum"] = 3
    chosen = "^(list_tokens|get_health|list_audit|list_decisions)$"
    done, found = question(changed, address, tmp_path, "--include-operation-id-regex", chosen)
    assert done.returncode == 1
    assert failed(found) == {
        ("GET /v1/tokens", "UndefinedStatusCode"),
        ("GET /healthz", "JsonSchemaError"),
        ("GET /v1/audit", "UndefinedContentType"),
        ("GET /v1/decisions", "AcceptedNegativeData"),
    }


def test_a_service_that_breaks_is_found(tmp_path: Path) -> None:
    class Broken(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(503)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Broken) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        done, found = question(document(), address, tmp_path, "--include-operation-id-regex", "^get_health$")
        server.shutdown()
    assert done.returncode == 1
    assert ("GET /healthz", "ServerError") in failed(found)
