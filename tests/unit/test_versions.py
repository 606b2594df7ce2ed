"""The lock of the interface: a released version means one document and one set of clients."""

import json
from pathlib import Path

import pytest

from openapi import refresh
from openapi.refresh import fingerprint, objections, released, written

UNRELEASED = "# Changelog\n\n## Unreleased\n"
RELEASED = "# Changelog\n\n## Unreleased\n\n## 1.0.0 - 2027-01-01\n"
DOCUMENT = json.dumps({"info": {"title": "Arbiter", "version": "1.0.0"}, "paths": {}})
FOUND = {"document": "sha256:a", "python": "sha256:b", "generated_in_ci": "sha256:c"}
OTHER = {**FOUND, "python": "sha256:d"}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small checkout that the module takes for its own, with a document and a client that are quickly made."""
    for recipe in refresh.RECIPES:
        (tmp_path / "clients" / recipe).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "clients" / recipe).write_text(recipe)
    (tmp_path / "CHANGELOG.md").write_text(UNRELEASED)
    places = {"DOCUMENT": "openapi.json", "LOCK": "VERSION.lock", "CHANGELOG": "CHANGELOG.md"}
    for name, place in (places | {"CLIENTS": "clients", "PYTHON": "clients/python"}).items():
        monkeypatch.setattr(refresh, name, tmp_path / place)
    monkeypatch.setattr(refresh, "text", lambda: DOCUMENT)

    def generate(document: Path, target: Path) -> None:
        target.mkdir()
        (target / "client.py").write_text(document.read_text())

    monkeypatch.setattr(refresh, "generate", generate)
    assert refresh.refresh() == []
    assert refresh.check() == []
    return tmp_path


def change(monkeypatch: pytest.MonkeyPatch, version: str = "1.0.0") -> None:
    """The interface gets a field."""
    changed = {"info": {"title": "Arbiter", "version": version}, "paths": {"/new": {}}}
    monkeypatch.setattr(refresh, "VERSION", version)
    monkeypatch.setattr(refresh, "text", lambda: json.dumps(changed))


def test_a_heading_releases_a_version() -> None:
    assert released("1.0.0", RELEASED)
    assert released("1.0.0", "## [1.0.0] - 2027-01-01\n")
    assert released("1.0.0", "# Changelog\n## v1.0.0\n")
    assert not released("1.0.0", UNRELEASED)
    assert not released("1.0.0", "## 1.0.01\n## 11.0.0\n### 1.0.0\nsince 1.0.0\n")


def test_what_is_not_released_may_change() -> None:
    assert objections(written("1.0.0", FOUND), "1.0.0", OTHER, UNRELEASED) == []
    assert objections("", "1.0.0", OTHER, RELEASED) == []


def test_what_is_released_may_not() -> None:
    assert objections(written("1.0.0", FOUND), "1.0.0", FOUND, RELEASED) == []
    (objection,) = objections(written("1.0.0", FOUND), "1.0.0", OTHER, RELEASED)
    assert objection.startswith("python changed, and 1.0.0 is released")


def test_another_version_may_differ_and_an_old_one_does_not_come_back() -> None:
    assert objections(written("1.0.0", FOUND), "1.1.0", OTHER, RELEASED) == []
    (objection,) = objections(written("1.1.0", FOUND), "1.0.0", OTHER, RELEASED)
    assert "1.0.0 was released before 1.1.0" in objection


def test_the_version_itself_is_no_change(tmp_path: Path) -> None:
    for recipe in refresh.RECIPES:
        (tmp_path / recipe).parent.mkdir(exist_ok=True)
        (tmp_path / recipe).write_text("")
    client = tmp_path / "python"
    client.mkdir()
    (client / "pyproject.toml").write_text('name = "c"\nversion = "1.0.0"\n')
    before = fingerprint(DOCUMENT, client, tmp_path)
    (client / "pyproject.toml").write_text('name = "c"\nversion = "1.1.0"\n')
    assert fingerprint(DOCUMENT.replace("1.0.0", "1.1.0"), client, tmp_path) == before
    (client / "pyproject.toml").write_text('name = "d"\nversion = "1.1.0"\n')
    assert fingerprint(DOCUMENT, client, tmp_path) != before


def test_before_the_release_refreshing_is_enough(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(monkeypatch)
    assert "run `make openapi`" in refresh.check()[0]
    assert refresh.refresh() == []
    assert refresh.check() == []
    assert json.loads((checkout / "openapi.json").read_text())["paths"] == {"/new": {}}


def test_after_the_release_the_version_must_rise(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / "CHANGELOG.md").write_text(RELEASED)
    before = (checkout / "VERSION.lock").read_text()
    change(monkeypatch)
    assert "is released: raise VERSION" in refresh.refresh()[0]
    assert (checkout / "VERSION.lock").read_text() == before
    assert (checkout / "openapi.json").read_text() == DOCUMENT
    (checkout / "openapi.json").write_text(refresh.text())
    assert "is released: raise VERSION" in refresh.check()[0]
    change(monkeypatch, "1.1.0")
    assert refresh.refresh() == []
    assert refresh.check() == []


def test_a_recipe_that_changes_is_noticed(checkout: Path) -> None:
    recipe = checkout / "clients" / refresh.RECIPES[0]
    recipe.write_text("another generator")
    assert "VERSION.lock says otherwise" in refresh.check()[0]
    (checkout / "CHANGELOG.md").write_text(RELEASED)
    assert "generated_in_ci changed" in refresh.check()[0]


def test_a_client_edited_by_hand_is_noticed(checkout: Path) -> None:
    (checkout / "clients" / "python" / "client.py").write_text("mended")
    assert "VERSION.lock says otherwise" in refresh.check()[0]
