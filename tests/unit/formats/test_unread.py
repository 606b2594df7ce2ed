"""What nobody reads is a finding: a key more in any mapping of a manifest is reported, or its mapping has a reason."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from app.base.documents import read
from app.formats import import_configuration
from app.solver.model.problems import Finding, pointer
from tests.support.manifests import FORMATS, MANIFESTS

UNREAD = {
    "metadata": "bookkeeping of the server, but for names, labels and annotations",
    "status": "what the system reports, but for what runs where",
    "template": "the head of a pod template",
    "containers": "how a container runs, but for what it requests",
    "initContainers": "the same", "volumes": "the same, but for which kind they are",
    "health": "how Kueue itself runs", "metrics": "how Kueue itself runs", "webhook": "how Kueue itself runs",
    "leaderElection": "how Kueue itself runs", "controller": "how Kueue itself runs",
    "clientConnection": "how Kueue itself runs", "internalCertManagement": "how Kueue itself runs",
    "placementStrategy": "KAI takes words that it does not know for its default", "plugins": "the same",
}  # fmt: skip
NAMES = ("pools", "$value")
"""Mappings whose keys are names."""
UNREAD_OF = {"AdmissionCheck": "no part of a quota", "Node": "but for taints", "Workload-done": "it has finished"}
STATISTICS = {"yunikorn-dump.json": "a state dump is full of statistics, and versions differ in them"}
Path = tuple[str | int, ...]


def mappings(value: Any, at: Path = ()) -> Iterator[Path]:
    """Where the mappings of a document are."""
    if isinstance(value, dict):
        yield at
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from mappings(inner, (*at, key))


def findings(documents: list[Any], system: str) -> list[Finding]:
    text = "\n---\n".join(json.dumps(document) for document in documents)
    return import_configuration(text.encode(), system).findings


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in STATISTICS])
def test_a_key_that_nobody_reads_is_reported(name: str) -> None:
    documents = [document for _, document in read((MANIFESTS / name).read_bytes())]
    known = {finding.pointer for finding in findings(documents, FORMATS[name])}
    silent: list[str] = []
    for at in mappings(documents):
        changed = json.loads(json.dumps(documents))
        inner = changed
        kinds: set[str] = set()
        for key in at:
            inner = inner[key]
            if "kind" in inner:
                kinds = {inner["kind"], f"{inner['kind']}-{inner['metadata']['name']}" if "metadata" in inner else ""}
        if "kind" in inner or kinds & set(UNREAD_OF) or set(UNREAD) & set(at) or at[-1] in NAMES:
            continue
        inner["neverHeardOf"] = {"a": 1}
        found = {finding.pointer for finding in findings(changed, FORMATS[name])} - known
        above = {pointer(*at[start : i + 1]) for start in (0, 1) for i in range(start, len(at))}
        if not any(one.endswith("/neverHeardOf") for one in found) and not above & known:
            silent.append(pointer(*at))
    assert silent == []
