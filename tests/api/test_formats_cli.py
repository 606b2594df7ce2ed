"""``arbiter import --store`` and ``arbiter export --stored`` against a service that runs."""

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from app.cli import run
from app.formats.ytsaurus.documents import read_yson
from tests.support.instead import Machine
from tests.support.live import ROOT, serving
from tests.support.native_state import ORCHID

MANIFESTS = ROOT / "tests" / "manifests"
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
    assert list(read_yson(capsys.readouterr().out.encode())[0][1]["$value"]) == ["root"]


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


PRINTED = {
    "kubectl get workloads": "kueue.yaml", "kubectl get pods": "pods.json", "yt get": "orchid.yson",
}  # fmt: skip
"""What stands in for programs that ask a cluster: what they would print."""


@pytest.mark.slow
def test_the_commands_of_the_page_do_what_they_say(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    yson = pytest.importorskip("yt.yson", reason="the extra arbiter-preemption[yson] is not installed")
    cluster = yaml.safe_load((MANIFESTS / "yunikorn-cluster.yaml").read_text())
    pods = {**cluster, "items": [item for item in cluster["items"] if item["kind"] != "ConfigMap"]}
    files = {
        "queues.yaml": b"partitions:\n- name: default\n  placementrules: [{name: provided, create: true}]\n"
        b"  queues: [{name: prod}, {name: default}, {name: dev, queues: [{name: team}]}]\n",
        "cluster.yaml": (ROOT / "examples" / "kueue-cluster.yaml").read_bytes(),
        "kueue.yaml": (ROOT / "examples" / "kueue-cluster.yaml").read_bytes(),
        "pods.json": json.dumps(pods).encode(),
        "orchid.yson": yson.dumps(ORCHID),
        "tree.yson": b'<id="1-2">{prod=<strong_guarantee_resources={cpu=12}>{};lab=<mode=fifo>{nlp={}}}',
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARBITER_URL", address)
    page = (ROOT / "docs" / "formats.md").read_text()
    lines = re.findall(r"```\n(arbiter import.*?)```", page, re.DOTALL)[0].splitlines()
    assert len(lines) == 7
    for line in lines:
        *before, command = line.partition("#")[0].split("|")
        if before or not command.startswith("arbiter"):
            printed = next(name for start, name in PRINTED.items() if line.startswith(start))
            machine.reads((tmp_path / printed).read_bytes())
        if command.strip().startswith("arbiter"):
            assert run(shlex.split(command)[1:]) in (0, 1, 2), (line, capsys.readouterr().err)
            assert capsys.readouterr().out != "", line
