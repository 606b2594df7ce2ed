"""Manifests that use every field, and what each must become: configuration, state, asks, findings."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from app.formats import export, import_configuration
from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding
from tests.support.manifests import FORMATS, MANIFESTS


def shown(name: str) -> dict[str, Any]:
    """What the import of a manifest gives, as its expectation file holds it."""
    found = import_configuration((MANIFESTS / name).read_bytes(), FORMATS[name])
    documents = {"configuration": found.configuration, "state": found.state}
    told = {name: json.loads(msgspec.json.encode(document)) for name, document in documents.items()}
    for name, document in documents.items():
        if document.findings:
            told[name]["findings"] = _lines(document.findings)
    return {**told, "asks": json.loads(msgspec.json.encode(found.asks)), "findings": _lines(found.findings)}


def _lines(findings: list[Finding]) -> list[str]:
    return [f"{f.severity} {f.rule} {f.pointer}" for f in findings]


def test_every_manifest_has_an_expectation() -> None:
    files = {path.name for path in MANIFESTS.iterdir() if path.is_file()}
    assert files == set(FORMATS)
    assert {path.stem for path in (MANIFESTS / "expected").iterdir()} == {Path(name).stem for name in FORMATS}


@pytest.mark.parametrize("name", FORMATS)
def test_a_manifest_becomes_what_it_says(name: str) -> None:
    expected = json.loads((MANIFESTS / "expected" / f"{Path(name).stem}.json").read_text())
    assert shown(name) == expected


@pytest.mark.parametrize("name", FORMATS)
def test_findings_point_at_what_is_there(name: str) -> None:
    found = import_configuration((MANIFESTS / name).read_bytes(), FORMATS[name])
    assert all(f.detail for f in found.findings)
    assert all(f.pointer == "" or f.pointer.startswith("/") for f in found.findings)
    assert len({(f.rule, f.pointer, f.detail) for f in found.findings}) == len(found.findings)


NO_WORDS = {
    "kueue-v1beta1.yaml": [  # designed in KEP-83, never built
        "/queues/2/kueue/preemption/disruption_cost_milestones",
        "/queues/2/kueue/preemption/trigger_after_workload_waiting_seconds",
        "/queues/2/kueue/preemption/workload_sorting",
    ],
    "yunikorn-cluster.yaml": ["/queues/3", "/queues/4"],  # made by placement rules for what runs in them
}
"""What an export has to leave out, by pointer."""


def without(document: Any, pointer: str) -> None:
    """Take what ``pointer`` names out of ``document``; of a list the place stays, empty."""
    *above, last = pointer.split("/")[1:]
    for key in above:
        document = document[int(key) if isinstance(document, list) else key]
    if isinstance(document, list):
        document[int(last)] = None
    else:
        del document[last]


@pytest.mark.parametrize("name", FORMATS)
def test_export_then_import_gives_an_equal_configuration(name: str) -> None:
    found = import_configuration((MANIFESTS / name).read_bytes(), FORMATS[name]).configuration
    assert found.engine is not None
    made = export(found, found.engine)
    lost = [finding for finding in made.findings if finding.severity != "info"]
    assert sorted(finding.pointer for finding in lost) == NO_WORDS.get(name, [])
    back = import_configuration(made.text.encode(), found.engine)
    assert [f for f in back.findings if f.severity != "info" and f.rule != "not-decided"] == []
    expected = json.loads(msgspec.json.encode(replace(found, findings=[])))
    for finding in lost:
        without(expected, finding.pointer)
    expected["queues"] = [queue for queue in expected.get("queues", []) if queue is not None]
    assert {"queues": [], **json.loads(msgspec.json.encode(replace(back.configuration, findings=[])))} == expected


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_imported_is_understood_by_its_engine(name: str) -> None:
    """Only values that the findings call errors may still be refused."""
    found = import_configuration((MANIFESTS / name).read_bytes(), FORMATS[name])
    configuration = msgspec.json.decode(msgspec.json.encode(found.configuration), type=Configuration)
    loaded = solve.load(solve.configure(configuration), found.state)
    assert bool(solve.shares(loaded, found.asks, 0)["queues"]) == bool(configuration.queues)
