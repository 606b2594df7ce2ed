"""Thousands of generated requests against a live service: what the document says is what it does."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.document import text
from tests.live import ROOT, environment_of, serving

HERE = Path(__file__).parent
ENOUGH = 2000
SERVICE = {"WORKERS": "0", "ARBITER_LOG_LEVEL": "warning"}


def closed(document: dict[str, Any]) -> dict[str, Any]:
    """The document without the promise that answers may grow: a field that it does not know is a fault today."""
    for schema in document["components"]["schemas"].values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return document


def test_nothing_undocumented_happens(new_database: Callable[[], str], tmp_path: Path) -> None:
    document, report = tmp_path / "openapi.json", tmp_path / "report.json"
    document.write_text(json.dumps(closed(json.loads(text()))))
    with serving(new_database(), tmp_path, **SERVICE) as (address, _):
        command = [
            str(Path(sys.executable).parent / "schemathesis"), "--config-file", str(HERE / "schemathesis.toml"),
            "run", str(document), "--url", address, "--report", "json", "--report-json-path", str(report),
        ]  # fmt: skip
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment_of({"PYTHONPATH": str(ROOT)}),
            check=False,
            capture_output=True,
            text=True,
        )
    _, _, failures = done.stdout.partition("FAILURES")
    assert done.returncode == 0, (failures or done.stdout)[-8000:] + done.stderr[-2000:]
    found = json.loads(report.read_text())
    assert found["operations"]["tested"] == found["operations"]["total"] > 0
    assert {name: phase["status"] for name, phase in found["phases"].items() if name != "stateful"} == {
        "examples": "success", "coverage": "success", "fuzzing": "success",
    }  # fmt: skip
    assert found["test_cases"]["generated"] >= ENOUGH
