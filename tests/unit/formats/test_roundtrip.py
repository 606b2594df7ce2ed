"""What an administrator imports comes out again: nothing that their cluster needs is lost."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from app.formats import export, import_configuration
from app.formats.ytsaurus.documents import read_any
from app.solver.model.configuration import Configuration
from tests.support.roundtrip import differences, plain_tree

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests" / "roundtrip"


@pytest.mark.parametrize("path", sorted(MANIFESTS.iterdir()), ids=lambda path: path.stem)
def test_what_was_imported_is_exported_again(path: Path) -> None:
    assert differences(path.read_bytes(), path.stem) == []


@pytest.mark.parametrize("path", sorted(MANIFESTS.iterdir()), ids=lambda path: path.stem)
def test_another_system_is_told_what_it_does_not_get(path: Path) -> None:
    """Each kept field is named, in the findings and in the file."""
    found = import_configuration(path.read_bytes(), path.stem).configuration
    other = "kai" if path.stem != "kai" else "yunikorn"
    made = export(found, other)
    named = {finding.pointer for finding in made.findings}
    for i, queue in enumerate(found.queues):
        for key, value in getattr(queue.native, path.stem, {}).items():
            inner = value if key in ("metadata", "spec") else {"": None}
            for field in inner:
                pointer = "/".join(filter(None, (f"/queues/{i}/native/{path.stem}/{key}", field)))
                assert pointer in named
                assert f"# not carried over: {pointer}: " in made.text


def cluster_queue(**spec: Any) -> bytes:
    return json.dumps(
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": spec}
    ).encode()


@pytest.mark.parametrize("selector", [{}, {"matchLabels": {"team": "a"}}])
def test_an_applied_export_admits_from_the_same_namespaces(selector: dict[str, Any]) -> None:
    """Without its selector a ClusterQueue admits from no namespace; an empty one means all of them."""
    made = export(import_configuration(cluster_queue(namespaceSelector=selector), "kueue").configuration, "kueue")
    assert yaml.safe_load(made.text)["spec"]["namespaceSelector"] == selector


def test_a_cluster_queue_that_admits_from_nowhere_stays_so_and_the_file_says_it() -> None:
    made = export(import_configuration(cluster_queue(), "kueue").configuration, "kueue")
    assert yaml.safe_load(made.text)["spec"].get("namespaceSelector") is None
    assert [(f.rule, f.severity, f.pointer) for f in made.findings] == [("no-namespaces", "info", "/queues/0")]
    assert "# ClusterQueue" in made.text


def test_the_configurations_own_value_holds_against_a_kept_one() -> None:
    native: dict[str, Any] = {"kueue": {"spec": {"cohortName": "old", "namespaceSelector": {}}}}
    document: dict[str, Any] = {"engine": "kueue", "queues": [{"name": "q", "parent": "new", "native": native}]}
    made = export(msgspec.convert(document, Configuration), "kueue")
    assert yaml.safe_load(made.text)["spec"] == {"cohortName": "new", "namespaceSelector": {}}
    assert [f.pointer for f in made.findings] == ["/queues/0/native/kueue/spec/cohortName"]


@pytest.mark.parametrize(
    ("source", "system", "target", "resources"),
    [
        ({"cpu": 4, "memory": "1Gi", "nvidia.com/gpu": 2}, "kueue", "yunikorn",
         {"vcore": 4, "memory": "1Gi", "nvidia.com/gpu": 2}),
        ({"vcore": "1500m", "memory": "1Gi"}, "yunikorn", "kueue", {"cpu": "1500m", "memory": "1Gi"}),
        ({"cpu": 1.5, "memory": 1000, "gpu": 2}, "ytsaurus", "yunikorn",
         {"vcore": "1500m", "memory": 1000, "nvidia.com/gpu": 2}),
        ({"vcore": "500m", "memory": "1Ki", "nvidia.com/gpu": 1}, "yunikorn", "ytsaurus",
         {"cpu": 0.5, "memory": 1024, "gpu": 1}),
    ],
)  # fmt: skip
def test_units_are_those_of_the_other_system(
    source: dict[str, Any], system: str, target: str, resources: dict[str, Any]
) -> None:
    queue = {"name": "root.a", "parent": "root", "quota": {name: {"guaranteed": v} for name, v in source.items()}}
    document = {"engine": system, "queues": [{"name": "root"}, queue]}
    made = read_any(export(msgspec.convert(document, Configuration), target).text.encode())
    assert amounts([one for _, one in made], target) == resources


def amounts(documents: list[Any], system: str) -> dict[str, Any]:
    """The guaranteed amounts of the queue ``root.a``."""
    if system == "kueue":
        spec = next(d["spec"] for d in documents if d["kind"] == "ClusterQueue")
        return {r["name"]: r["nominalQuota"] for r in spec["resourceGroups"][0]["flavors"][0]["resources"]}
    if system == "yunikorn":
        return documents[0]["partitions"][0]["queues"][0]["queues"][0]["resources"]["guaranteed"]
    return plain_tree(documents[0])["pools"]["root"]["pools"]["root.a"]["strong_guarantee_resources"]
