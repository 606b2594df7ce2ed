"""``arbiter plan`` as somebody uses it who is about to submit a job."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from app.cli import run
from tests.support.native_state import ORCHID

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "plan.md").read_text()
CLUSTER = str(ROOT / "examples" / "kueue-cluster.yaml")
JOB = (ROOT / "examples" / "job.yaml").read_text()


LISTED = """apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {{name: f{0}}}
spec: {{nodeLabels: {{a: [{0}]}}}}
"""


def commands() -> list[tuple[str, str]]:
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return [
        pair for block in blocks for pair in re.findall(r"^\$ arbiter (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    ]


@pytest.mark.parametrize(("command", "output"), commands())
def test_the_page_shows_what_the_command_prints(
    command: str, output: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    run(shlex.split(command))
    assert capsys.readouterr().out.rstrip("\n") == output.rstrip("\n")


def planned(folder: Path, manifest: str, *more: str, cluster: str = CLUSTER) -> int:
    file = folder / "job.yaml"
    file.write_text(manifest)
    return run(["plan", str(file), "-f", cluster, *more])


def test_would_my_job_run_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    smaller = JOB.replace("parallelism: 2", "parallelism: 1")
    assert planned(tmp_path, smaller, "--json") == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert answer["outcome"] == "admit"
    assert answer["plan"]["evictions"] == []
    (serving,) = (of for of in answer["queues"] if of["queue"] == "serving")
    gpus = serving["resources"]["nvidia.com/gpu"]
    assert (gpus["used_before"], gpus["used_after"]) == (5, 6)


def test_what_would_let_it_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(tmp_path, JOB.replace("parallelism: 2", "parallelism: 4")) == 2
    assert "would let it in: guaranteed of nvidia.com/gpu in serving (a100) from 8 to 9" in capsys.readouterr().out


def test_a_kind_that_is_not_known_is_named_with_those_that_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = "apiVersion: example.com/v1\nkind: FooJob\nmetadata: {name: x}\n"
    assert planned(tmp_path, other) == 3
    assert "kind 'example.com/FooJob' is not known; known are Pod, " in capsys.readouterr().err
    assert planned(tmp_path, f"{JOB}\n---\n{other}") == 3
    assert "FooJob" in capsys.readouterr().err


def test_the_cluster_may_be_the_body_of_a_decision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gpus = re.sub(r"cpu: \d, memory: \w+, nvid", "nvid", JOB.replace("initContainers", "ephemeralContainers"))
    assert planned(tmp_path, gpus, cluster=str(ROOT / "examples" / "kueue-classic.json")) == 2
    said = capsys.readouterr()
    assert "'serving' is taken for the ClusterQueue of that name" in said.err
    assert "also evicted" in said.out  # for the ask that waited there already, and goes first


def test_without_a_cluster_it_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    assert run(["plan", str(file)]) == 3
    assert "what cluster?" in capsys.readouterr().err


def test_the_queue_can_be_another_than_the_manifest_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(tmp_path, JOB, "--queue", "research") == 1
    assert "default/embeddings  research" in capsys.readouterr().out
    assert planned(tmp_path, JOB, "--queue", "sales") == 3
    assert "there is no queue 'sales'; there are 'research', 'serving'" in capsys.readouterr().err


def test_far_too_many_pods_are_refused_by_the_field_that_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    template = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": 1}}}]}}
    spec = {"parallelism": 2**31 - 1, "completions": 2**31 - 1, "template": template}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "big"}, "spec": spec}
    file = tmp_path / "job.json"
    file.write_text(json.dumps(job))
    cluster = Path(__file__).resolve().parents[2] / "manifests" / "kai-cluster.yaml"
    assert run(["plan", str(file), "-f", str(cluster), "--queue", "team"]) == 3
    assert "  /spec/parallelism: batch/Job default/big: 2147483647 pods" in capsys.readouterr().err


def test_the_file_at_fault_is_named_and_the_place_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong, torn, other = (tmp_path / name for name in ("wrong.yaml", "torn.yaml", "other.yaml"))
    wrong.write_text(f"{LISTED.format('x')}---\n{LISTED.format(4)}")
    torn.write_text("kind: [")
    other.write_text(LISTED.format(4))
    assert planned(tmp_path, JOB, "-f", str(wrong)) == 3
    assert f"{wrong}: error /0/spec/nodeLabels/a: " in capsys.readouterr().err
    assert planned(tmp_path, JOB, "-f", str(torn), "-f", str(wrong)) == 3
    assert f"{torn}: 1 problem\n  (document): neither JSON nor YAML" in capsys.readouterr().err
    assert planned(tmp_path, "kind: [", "-f", str(other)) == 3
    assert f"{tmp_path / 'job.yaml'}: 1 problem\n  (document): neither" in capsys.readouterr().err
    assert planned(tmp_path, JOB, cluster=str(wrong)) == 3
    assert f"{wrong}: 1 problem\n  (document): there are no queues in it" in capsys.readouterr().err


def test_would_it_run_if_the_queue_had_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    four = JOB.replace("parallelism: 2", "parallelism: 4")
    assert planned(tmp_path, four) == 2
    more = "queues.serving.quota.nvidia.com/gpu.guaranteed=9"
    assert planned(tmp_path, four, "--set", more) == 1
    assert "embeddings: preempt" in capsys.readouterr().out
    assert planned(tmp_path, four, "--set", "queues.sales.weight=2") == 3
    assert "/set/queues.sales.weight: queues has no 'sales'" in capsys.readouterr().err
    assert planned(tmp_path, four, "--set", "queues.serving") == 3
    assert "a path, = and a value" in capsys.readouterr().err


def test_a_folder_is_a_cluster_and_what_arbiter_stores_of_queues_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """LocalQueues of the cluster, and of the JSON that `arbiter import` made of it."""
    cluster = tmp_path / "cluster"
    cluster.mkdir()
    for i, part in enumerate(Path(CLUSTER).read_text().split("\n---\n")):
        (cluster / f"{i:02}.yaml").write_text(part)
    assert planned(tmp_path, JOB) == 1
    expected = capsys.readouterr().out
    assert planned(tmp_path, JOB, cluster=str(cluster)) == 1
    assert capsys.readouterr().out == expected
    own = tmp_path / "own.json"
    assert run(["import", CLUSTER]) == 0
    own.write_text(capsys.readouterr().out)
    assert planned(tmp_path, JOB, "--configuration", str(own)) == 1
    assert capsys.readouterr().out == expected


def test_an_operation_is_planned_on_the_orchid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    yson = pytest.importorskip("yt.yson", reason="the extra arbiter-preemption[yson] is not installed")
    orchid = tmp_path / "orchid.yson"
    orchid.write_bytes(yson.dumps(ORCHID, yson_format="binary"))
    (tmp_path / "tree.yson").write_bytes(b'<id="1-2">{prod=<strong_guarantee_resources={cpu=12}>{};lab={}}')
    work = tmp_path / "operation.yson"
    work.write_bytes(b"{pool=prod;title=train;mapper={cpu_limit=4;memory_limit=1000000};job_count=1}")
    assert run(["plan", str(work), "-f", str(orchid), "-f", str(tmp_path / "tree.yson")]) in (1, 2)
    assert "operation train  prod" in capsys.readouterr().out
