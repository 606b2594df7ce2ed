"""The service as a person starts it: a process, a port, a database of its own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.simulations.router import SIMULATION
from tests.support.live import ADDRESS, ROOT, running, started, welcome

Start = Callable[..., "Serving"]


class Serving:
    """One ``arbiter serve``; its output is complete once the curl line is printed."""

    def __init__(self, data: Path, **environment: str) -> None:
        given = {"DATA_DIR": str(data), "PORT": "0", "ARBITER_WORKERS": "0", "ARBITER_LOG_FORMAT": "json"}
        self.process = started(**(given | environment))
        self.said = "\n".join(welcome(self.process))
        found = ADDRESS.search(self.said)
        self.address = found[0] if found else ""

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.address + path, timeout=60) as response:
            return json.load(response)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        try:
            self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode


@pytest.fixture
def start(open_folder: Path) -> Iterator[Start]:
    """Starts services in one data folder; those still running at the end are stopped."""
    begun: list[Serving] = []

    def starting(**environment: str) -> Serving:
        begun.append(Serving(open_folder / "data", **environment))
        return begun[-1]

    yield starting
    for serving in begun:
        if serving.process.poll() is None:
            serving.stop()
        assert serving.process.stdout is not None
        serving.process.stdout.close()


def database_runs(folder: Path) -> bool:
    return (folder / "data" / "postgres" / "postmaster.pid").exists()


@pytest.mark.slow
def test_it_sets_itself_up_and_leaves_nothing_running(start: Start, open_folder: Path) -> None:
    serving = start()
    assert f"{serving.address}/docs" in serving.said
    assert serving.get("/readyz")["status"] == "ready"
    assert [item["name"] for item in serving.get("/v1/configurations")["items"]] == ["example"]
    assert database_runs(open_folder)
    assert serving.stop() == 0
    assert not database_runs(open_folder)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_printed_line_returns_a_decision_with_victims(data_folder: Path, start: Start) -> None:
    serving = start()
    (line,) = [line for line in serving.said.splitlines() if "curl" in line]
    answer = subprocess.run(line, shell=True, cwd=ROOT, capture_output=True, text=True, check=True)
    decision = json.loads(answer.stdout)["decisions"][0]
    assert decision["outcome"] == "preempt"
    assert decision["victims"]


@pytest.mark.slow
def test_two_services_share_one_data_folder(data_folder: Path, start: Start, open_folder: Path) -> None:
    first, second = start(), start()
    assert first.address != second.address
    assert first.stop() == 0
    assert second.get("/readyz")["status"] == "ready"
    assert second.get("/v1/configurations/example")["revision"] == 1
    assert second.stop() == 0
    assert not database_runs(open_folder)


@pytest.mark.slow
def test_it_starts_again_after_being_killed(data_folder: Path, start: Start, open_folder: Path) -> None:
    killed = start()
    killed.stop(signal.SIGKILL)
    assert database_runs(open_folder)
    again = start()
    assert again.get("/readyz")["status"] == "ready"
    assert again.stop(signal.SIGINT) == 0
    assert not database_runs(open_folder)


@pytest.mark.slow
def test_its_database_is_started_again_when_it_was_killed(data_folder: Path, start: Start, open_folder: Path) -> None:
    serving = start()
    pid = (open_folder / "data" / "postgres" / "postmaster.pid").read_text().splitlines()[0]
    os.kill(int(pid), signal.SIGKILL)
    end = time.monotonic() + 60
    while True:
        try:
            assert serving.get("/v1/configurations/example")["revision"] == 1
            break
        except OSError:
            assert time.monotonic() < end, "it did not come back"
            time.sleep(0.1)
    assert (open_folder / "data" / "postgres" / "postmaster.pid").read_text().splitlines()[0] != pid
    assert serving.stop() == 0
    assert not database_runs(open_folder)


@pytest.mark.slow
def test_a_taken_port_is_said_and_nothing_is_set_up(start: Start, open_folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        serving = start(PORT=str(taken.getsockname()[1]))
        assert serving.process.wait(60) != 0
    assert "PORT" in serving.said
    assert not (open_folder / "data").exists()


@pytest.mark.slow
def test_a_wrong_setting_is_said(start: Start) -> None:
    serving = start(PORT="eighty")
    assert serving.process.wait(60) != 0


@pytest.mark.slow
def test_a_database_that_is_away_at_the_start_costs_only_what_needs_it(start: Start, open_folder: Path) -> None:
    serving = start(DATABASE_URL=f"postgresql://nobody@/none?host={open_folder}")
    assert serving.get("/healthz") == {"status": "ok"}
    body = (ROOT / "examples" / "kueue-classic.json").read_bytes()
    request = urllib.request.Request(serving.address + "/v1/decisions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        assert response.status == 200
    assert not database_runs(open_folder)


@pytest.mark.slow
def test_a_database_of_somebody_else_is_used_as_given(
    start: Start, new_database: Callable[[], str], open_folder: Path
) -> None:
    url = new_database().replace("+psycopg", "", 1)
    serving = start(DATABASE_URL=url)
    assert serving.get("/readyz")["status"] == "ready"
    assert serving.get("/v1/configurations/example")["revision"] == 1
    assert not database_runs(open_folder)
    assert serving.stop() == 0


@pytest.mark.slow
def test_a_folder_with_an_app_package_of_its_own_changes_nothing(database_url: str, tmp_path: Path) -> None:
    """Python would look there first: for solver processes, jobs, pictures, the readers of traces."""
    ran = tmp_path / "ran"
    for package in ("app", "migrations", "examples"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(
            f"open({str(ran)!r}, 'a').write(__name__)\nraise SystemExit(9)\n"
        )
    document = json.loads((ROOT / "examples" / "kueue-classic.json").read_bytes())
    settings = {"ARBITER_WORKERS": "1", "ARBITER_SIMULATION_WORKER": "beside"}
    with (
        running(database_url, tmp_path / "data", cwd=tmp_path, **settings) as live,
        httpx2.Client(base_url=live.address, timeout=60) as client,
    ):
        kept = {"engine": "kueue", "configuration": document["configuration"], "state": document["state"]}
        assert client.put("/v1/snapshots/s", json=kept).status_code in (200, 201)
        asked = {**document, "state": {"snapshot": "s"}}
        assert client.post("/v1/decisions", json=asked).json()["decisions"][0]["outcome"] == "preempt"
        simulation = client.post("/v1/simulations", json=SIMULATION)
        assert simulation.status_code == 202, simulation.text
        end = time.monotonic() + 60
        while (found := client.get(simulation.headers["Location"]).json())["status"] in ("queued", "running"):
            assert time.monotonic() < end, found
            time.sleep(0.1)
        assert found["status"] == "done", found
        assert client.get("/readyz").json()["unable"] == []
    assert not ran.exists(), ran.read_text()
