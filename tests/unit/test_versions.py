"""The lock of the interface: a version means one document and one way to make clients."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from openapi import refresh
from openapi.refresh import earlier, fingerprint, objections, written
from tests.support.instead import Instead

DOCUMENT = json.dumps({"info": {"title": "Arbiter", "version": "1.0.0"}, "paths": {}})
FOUND = {"document": "sha256:a", "recipes": "sha256:b"}
OTHER = {**FOUND, "recipes": "sha256:d"}
NOBODY = {f"GIT_{who}_{what}": "nobody@example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.fixture
def folder(tmp_path: Path, instead: Instead) -> Path:
    """What the module takes for its own: a document that is quickly made, as of version 1.0.0."""
    for recipe in refresh.RECIPES:
        (tmp_path / "clients" / recipe).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "clients" / recipe).write_text(recipe)
    places = {
        "DOCUMENT": "openapi.json",
        "LOCK": "VERSION.lock",
        "CLIENTS": "clients",
        "RULES": "rules.md",
    }
    instead(refresh, **{name: tmp_path / place for name, place in places.items()})
    instead(refresh, VERSION="1.0.0", text=lambda: DOCUMENT)
    instead(refresh.chart, files=dict)

    assert refresh.refresh() == []
    assert refresh.check() == []
    return tmp_path


@pytest.fixture
def checkout(folder: Path) -> Path:
    """The same, committed."""
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


def git(folder: Path, *command: str) -> None:
    environment = {**os.environ, **NOBODY, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *command], cwd=folder, env=environment, check=True)


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "a change")


def change(monkeypatch: pytest.MonkeyPatch, path: str, version: str = "1.0.0") -> None:
    """The interface is another one: it has ``path``."""
    changed: dict[str, object] = {"info": {"title": "Arbiter", "version": version}, "paths": {path: {}}}
    Instead(monkeypatch)(refresh, VERSION=version, text=lambda: json.dumps(changed))


def test_a_version_means_one_thing() -> None:
    assert objections(written("1.0.0", FOUND), "1.0.0", FOUND) == []
    (objection,) = objections(written("1.0.0", FOUND), "1.0.0", OTHER)
    assert objection.startswith("recipes changed, and 1.0.0 means what it was before: raise VERSION")


def test_a_higher_version_may_differ_and_a_lower_one_does_not_come_back() -> None:
    assert objections("", "1.0.0", OTHER) == []
    assert objections(written("1.9.0", FOUND), "1.10.0", OTHER) == []
    (objection,) = objections(written("1.10.0", FOUND), "1.9.0", FOUND)
    assert "1.9.0 came before 1.10.0" in objection


def test_the_version_itself_is_no_change(folder: Path) -> None:
    before = fingerprint(DOCUMENT, refresh.CLIENTS)
    assert fingerprint(DOCUMENT.replace("1.0.0", "1.1.0"), refresh.CLIENTS) == before
    assert fingerprint(DOCUMENT.replace("Arbiter", "Other"), refresh.CLIENTS) != before
    (folder / "clients" / refresh.RECIPES[0]).write_text("another")
    assert fingerprint(DOCUMENT, refresh.CLIENTS) != before


def test_a_change_needs_a_version(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (checkout / "VERSION.lock").read_text()
    change(monkeypatch, "/new")
    assert "run `make openapi`" in refresh.check()[0]
    assert "raise VERSION" in refresh.refresh()[0]
    assert (checkout / "VERSION.lock").read_text() == before
    assert (checkout / "openapi.json").read_text() == DOCUMENT
    (checkout / "openapi.json").write_text(refresh.text())
    assert "document changed, and 1.0.0 means what it was before" in refresh.check()[0]


def test_one_version_is_enough_on_the_way_to_a_commit(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("/new", "/newer"):
        change(monkeypatch, path, "1.1.0")
        assert refresh.refresh() == []
        assert refresh.check() == []
    commit(checkout)
    assert refresh.check() == []
    change(monkeypatch, "/newest", "1.1.0")
    assert "raise VERSION" in refresh.refresh()[0]
    change(monkeypatch, "/newest", "1.0.9")
    assert "1.0.9 came before 1.1.0" in refresh.refresh()[0]


def test_a_lock_written_by_hand_is_noticed_when_it_is_committed_too(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(monkeypatch, "/new", "1.1.0")
    assert refresh.refresh() == []
    change(monkeypatch, "/new")
    found = fingerprint(refresh.text(), refresh.CLIENTS)
    (checkout / "openapi.json").write_text(refresh.text())
    (checkout / "VERSION.lock").write_text(written("1.0.0", found))
    assert "raise VERSION" in refresh.check()[0]
    commit(checkout)
    assert "raise VERSION" in refresh.check()[0]


def test_without_history_the_lock_itself_tells(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))
    assert earlier(refresh.LOCK) == [refresh.LOCK.read_text()]
    change(monkeypatch, "/new")
    assert "raise VERSION" in refresh.refresh()[0]
    change(monkeypatch, "/new", "1.1.0")
    assert refresh.refresh() == []
    assert refresh.check() == []


def test_a_recipe_that_changes_is_noticed(checkout: Path) -> None:
    (checkout / "clients" / refresh.RECIPES[0]).write_text("another generator")
    assert "recipes changed" in refresh.check()[0]
    assert "recipes changed" in refresh.refresh()[0]
