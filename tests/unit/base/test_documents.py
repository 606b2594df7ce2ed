"""What comes from outside is read by one reader, which nothing hostile stops."""

import ast
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.base.documents import read_one
from app.following.objects import Broken
from app.following.reading import connect
from app.solver.model.problems import InvalidInput
from app.studies.sweeps import read as read_grid
from app.traces.preparing import mapping_of
from tests.support.hostile import HOSTILE

APP = Path(__file__).parents[3] / "app"
JSON_READERS = {
    "base/documents.py",  # the reader
    "base/decoding.py",  # says what is wrong with a body that was refused
    "auth/oidc.py",  # the provider that the operator chose, at most 1 MiB
    "cli/output.py",  # a word of the command line
    "cli/remote.py",  # answers of the service
    "cli/tools.py",  # what the service answers
    "formats/work/pods.py",  # an annotation of a document that was read already
    "service/serve.py",  # our own examples
}
"""Who else calls `json.loads`, and on what."""


def loaders_called(path: Path) -> set[str]:
    """Loaders of YAML, JSON and pickles that the code of ``path`` calls."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if node.value.id in ("yaml", "json", "pickle", "marshal", "tomllib", "plistlib") and "load" in node.attr:
                found.add(name)
            if name == "yaml.parse":
                found.add(name)
    return found


def test_no_other_loader_reads_what_comes_from_outside() -> None:
    called = {str(path.relative_to(APP)): loaders_called(path) for path in APP.rglob("*.py")}
    assert {path for path, names in called.items() if "json.loads" in names} == JSON_READERS
    assert {path for path, names in called.items() if names - {"json.loads"}} == {"base/documents.py"}
    assert called["base/documents.py"] == {"json.loads", "yaml.parse"}


@pytest.mark.parametrize("read", [mapping_of, read_grid, lambda body: read_one(body, "it")])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_and_costs_little(name: str, read: Callable[[bytes], object]) -> None:
    began = time.process_time()
    with pytest.raises(InvalidInput):
        read(HOSTILE[name])
    assert time.process_time() - began < 20  # the text of 431 bytes took longer


@pytest.mark.parametrize("text", ["1:1:1", "0b111", "yes", "2026-01-01", "0o17"])
def test_what_is_a_number_to_other_readers_is_text(text: str) -> None:
    assert read_one(f"a: {text}".encode(), "it") == {"a": text}


@pytest.mark.parametrize("name", [*HOSTILE, "a list", "no clusters", "wrong shapes"])
def test_a_kubeconfig_that_is_none_is_named(name: str, tmp_path: Path) -> None:
    others = {"a list": b"- 1", "no clusters": b"a: 1", "wrong shapes": b"clusters: 1\ncurrent-context: x\ncontexts: y"}
    path = tmp_path / "config"
    path.write_bytes({**HOSTILE, **others}[name])
    with pytest.raises(Broken, match="no cluster to follow"):
        connect(kubeconfig=str(path))
