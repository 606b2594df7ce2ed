"""``arbiter import --store`` and ``arbiter export --stored`` against a service that runs."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from app.cli import run
from tests.live import serving

MANIFEST = Path(__file__).parents[1] / "manifests" / "yunikorn-queues.yaml"


@pytest.fixture(scope="module")
def address(migrated_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(migrated_database(), tmp_path_factory.mktemp("data")) as (found, _):
        yield found


def test_from_one_system_to_another(
    address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARBITER_URL", address)
    assert run(["import", str(MANIFEST), "--format", "yunikorn", "--store", "moved"]) == 0
    assert capsys.readouterr().out == "moved: revision 1\n"
    assert run(["import", str(MANIFEST), "--format", "yunikorn", "--store", "moved"]) == 0
    assert capsys.readouterr().out == "moved: unchanged at revision 1\n"
    assert run(["export", "moved", "--stored"]) == 0
    assert list(yaml.safe_load(capsys.readouterr().out)) == ["partitions"]
    assert run(["export", "moved@1", "--stored", "--format", "ytsaurus"]) == 0
    assert list(yaml.safe_load(capsys.readouterr().out)["pools"]) == ["root"]


def test_what_the_service_does_not_have_or_refuses(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARBITER_URL", address)
    assert run(["export", "nothing", "--stored"]) == 3
    assert "nothing" in capsys.readouterr().err
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({"pools": {"a": {"weight": -1}}}))
    assert run(["import", str(bad), "--format", "ytsaurus", "--store", "bad"]) == 3
    assert "/queues/0/weight" in capsys.readouterr().err
