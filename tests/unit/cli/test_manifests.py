"""Manifests on the command line: in, out, and in the place of a request."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli import run
from app.formats.ytsaurus.documents import read_yson
from tests.support.instead import Machine

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
WORKLOADS = str(MANIFESTS / "kueue-workloads.json")
QUEUES = str(MANIFESTS / "kueue-v1beta2.yaml")


class Fed(io.TextIOWrapper):
    """Standard input with these bytes."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))


def test_a_manifest_is_printed_as_a_configuration_and_its_findings_are_complaints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["import", QUEUES, "--format", "kueue"]) == 0
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert [queue["name"] for queue in document["queues"]][-1] == "team-b"
    assert said.out == json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    assert "warning /0/waitForPodsReady: waiting for pods to be ready is not decided" in said.err


def test_errors_in_a_manifest_are_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", str(MANIFESTS / "ytsaurus-cypress.json"), "--format", "ytsaurus"]) == 3
    said = capsys.readouterr()
    assert "error /$value/research/$value/research" in said.err
    assert json.loads(said.out)["engine"] == "ytsaurus"


@pytest.mark.parametrize("command", ["decide", "import", "export", "compare", "plan", "simulate"])
@pytest.mark.parametrize("body", ['{"a":' + "[" * 200_000, "[" * 200_000, "{a=" * 200_000, "- " * 5000, "\x00\xff"])
def test_no_file_crashes_a_command(command: str, body: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "hostile"
    file.write_bytes(body.encode("latin-1"))
    assert run([command, str(file), *(["-f", str(file)] if command == "plan" else [])]) == 3
    assert "hostile" in capsys.readouterr().err


def test_a_whole_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", WORKLOADS, "--request"]) == 3
    request = json.loads(capsys.readouterr().out)
    assert request["engine"] == "kueue"
    assert [w["id"] for w in request["state"]["workloads"]] == ["ns/running"]
    assert [a["id"] for a in request["asks"]] == ["ns/waiting", "ns/asleep"]


@pytest.mark.parametrize("content", ["a: [", "a: 1\na: 1"])
def test_what_is_no_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(content)
    assert run(["import", str(file)]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "bad.yaml: 1 problem" in said.err
    assert run(["import", str(tmp_path / "ghost")]) == 3
    assert run(["import", str(file), "--format", "slurm"]) == 3


def test_kubectl_pipes_into_decide(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.reads(Fed(Path(WORKLOADS).read_bytes()))
    assert run(["decide", "-"]) == 3
    said = capsys.readouterr()
    assert "ns/waiting: wait" in said.out
    assert "podAntiAffinity" in said.err
    assert run(["explain", WORKLOADS]) == 3
    assert "why" in capsys.readouterr().out


def cluster(*kinds: str) -> dict[str, Any]:
    """The objects of these kinds of the YuniKorn manifest; its node is open to every pod."""
    document = yaml.safe_load((MANIFESTS / "yunikorn-cluster.yaml").read_text())
    for item in document["items"]:
        if item["kind"] == "Node":
            item["spec"].pop("taints", None)
    return {**document, "items": [item for item in document["items"] if item["kind"] in kinds]}


def test_queues_that_are_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pods, queues, own = tmp_path / "pods.json", tmp_path / "queues.yaml", tmp_path / "own.json"
    pods.write_text(json.dumps(cluster("Node", "Pod", "PriorityClass")))
    assert run(["decide", str(pods)]) == 3
    assert "give them with --configuration" in capsys.readouterr().err

    queues.write_text(
        "partitions:\n- name: default\n  placementrules: [{name: provided, create: true}]\n"
        "  queues:\n  - {name: prod}\n  - {name: dev, queues: [{name: team}]}\n  - {name: default}\n"
    )
    assert run(["decide", str(pods), "--configuration", str(queues)]) == 0
    assert "ns/late: admit" in capsys.readouterr().out

    assert run(["import", str(queues)]) == 0
    own.write_text(capsys.readouterr().out)
    assert run(["decide", str(pods), "--configuration", str(own), "--json"]) == 0
    assert [d["ask"] for d in json.loads(capsys.readouterr().out)["decisions"]] == ["ns/late", "ns/daemon"]


def test_what_a_configuration_of_arbiter_says_of_queues_counts_for_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dynamic queue of YuniKorn and a LocalQueue of Kueue: from the JSON that `arbiter import` printed too."""
    pods, queues, own = tmp_path / "pods.json", tmp_path / "queues.yaml", tmp_path / "own.json"
    pods.write_text(json.dumps(cluster("Node", "Pod", "PriorityClass")).replace("root.dev.team", "root.dev.made.later"))
    queues.write_text(
        "partitions:\n- name: default\n  placementrules: [{name: provided, create: true}]\n"
        "  queues: [{name: prod}, {name: dev, parent: true}, {name: default}]\n"
    )
    assert run(["import", str(queues)]) == 0
    own.write_text(capsys.readouterr().out)
    said: list[str] = []
    for given in (queues, own):
        assert run(["decide", str(pods), "--configuration", str(given)]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert run(["import", str(pods), "-f", str(queues), "--request"]) == 0
    names = [queue["name"] for queue in json.loads(capsys.readouterr().out)["configuration"]["queues"]]
    assert "root.dev.made.later" in names

    items = json.loads(Path(WORKLOADS).read_bytes())["items"]
    of_queues = ("LocalQueue", "ClusterQueue", "Cohort", "ResourceFlavor", "WorkloadPriorityClass")
    for file, ours in ((queues, True), (pods, False)):
        file.write_text(yaml.safe_dump_all(item for item in items if (item["kind"] in of_queues) == ours))
    assert run(["import", str(queues)]) == 0
    own.write_text(capsys.readouterr().out)
    assert run(["decide", WORKLOADS]) == 3
    whole = capsys.readouterr().out
    assert run(["decide", str(pods), "--configuration", str(own)]) == 3
    assert capsys.readouterr().out == whole


def test_a_configuration_of_another_system_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "own.json"
    own.write_text(json.dumps({"engine": "ytsaurus", "queues": [{"name": "q"}]}))
    assert run(["decide", WORKLOADS, "--configuration", str(own)]) == 3
    assert (
        "a configuration of ytsaurus does not go with a source of kueue or kai or yunikorn" in capsys.readouterr().err
    )


def test_a_configuration_takes_the_place_of_a_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = EXAMPLES / "kueue-classic.json"
    assert run(["decide", str(request), "--configuration", QUEUES]) == 3
    assert "no queue 'serving'" in capsys.readouterr().err
    own = tmp_path / "own.json"
    own.write_text(json.dumps(json.loads(request.read_bytes())["configuration"]))
    assert run(["decide", str(request)]) == run(["decide", str(request), "--configuration", str(own)])


def decided(capsys: pytest.CaptureFixture[str], *words: str) -> list[Any]:
    assert run(["decide", *words, "--json"]) in (0, 1, 2)
    return json.loads(capsys.readouterr().out)["decisions"]


def test_fields_are_set_and_the_time_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    dump = str(MANIFESTS / "yunikorn-dump.json")
    assert decided(capsys, dump)[0]["outcome"] == "preempt"
    assert decided(capsys, dump, "--now", "2026-03-02T09:29:10Z")[0]["conditions"][0]["message"].startswith(
        "the ask is"
    )
    assert decided(capsys, dump, "--set", "settings.yunikorn.preemption=false")[0]["outcome"] == "wait"
    assert run(["decide", dump, "--set", "queues.batch.weight=2"]) == 3
    assert "did you mean 'root.batch'?" in capsys.readouterr().err
    assert run(["decide", dump, "--now", "tomorrow"]) == 3
    assert "/now" in capsys.readouterr().err


@pytest.mark.parametrize("text", ['{"engine": "kai", "engine": "kueue"}', '{"state": {"nodes": [{"a": 1, "a": 1}]}}'])
def test_a_key_twice_is_refused_in_json_too(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "request.json"
    file.write_text(text)
    for command in ("decide", "simulate", "plan", "compare"):
        words = [command, str(file)] if command != "plan" else ["plan", str(file), "-f", str(file)]
        assert run(words) == 3
        assert "occurs twice in one object" in capsys.readouterr().err, command


def test_no_nodes_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = {"id": "x", "queue": "a", "tasks": [{"name": "m", "requests": {"cpu": 1}}]}
    request = {"configuration": {"engine": "kai", "queues": [{"name": "a"}]}, "state": {"workloads": []}, "asks": [ask]}
    file = tmp_path / "request.json"
    file.write_text(json.dumps(request))
    assert run(["decide", str(file)]) == 2
    assert "there are no nodes" in capsys.readouterr().out


def test_a_state_is_decided_at_the_time_when_it_was_taken(capsys: pytest.CaptureFixture[str]) -> None:
    found = decided(capsys, str(MANIFESTS / "yunikorn-dump.json"))
    assert found[0]["conditions"][0]["last_transition_time"] == "2026-03-02T09:30:00Z"
    assert run(["decide", str(MANIFESTS / "yunikorn-dump.json")]) == 1
    assert "decided as of 2026-03-02T09:30:00+00:00, when the source was taken" in capsys.readouterr().err


def test_a_quota_is_set_by_flavor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def flavor(name: str) -> dict[str, Any]:
        return {"name": name, "quota": {"nvidia.com/gpu": {"guaranteed": 1}}}

    group = {"resources": ["nvidia.com/gpu"], "flavors": [flavor("a"), flavor("b.c")]}
    queue = {"name": "q.x", "resource_groups": [group]}
    task = {"name": "main", "requests": {"nvidia.com/gpu": 2}}
    request = {
        "configuration": {"engine": "kueue", "queues": [queue], "flavors": [{"name": "a"}, {"name": "b.c"}]},
        "state": {"workloads": []}, "asks": [{"id": "x", "queue": "q.x", "tasks": [task]}],
    }  # fmt: skip
    file = tmp_path / "request.json"
    file.write_text(json.dumps(request))
    path = "queues.q.x.flavors.b.c.nvidia.com/gpu.guaranteed=2"
    assert decided(capsys, str(file), "--set", path)[0]["assignment"] == {"main": {"nvidia.com/gpu": "b.c"}}
    assert run(["decide", str(file), "--set", "queues.q.x.flavors.c.cpu.guaranteed=2"]) == 3
    assert "has no 'c': there are 'a', 'b.c'" in capsys.readouterr().err


def test_export_speaks_the_words_of_a_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "own.json"
    file.write_text(json.dumps({"engine": "kai", "queues": [{"name": "q", "ytsaurus": {"mode": "fifo"}}]}))
    assert run(["export", str(file)]) == 0
    said = capsys.readouterr()
    assert [made["kind"] for made in yaml.safe_load_all(said.out)] == ["SchedulingShard", "Queue"]
    assert "warning /queues/0/ytsaurus" in said.err
    assert run(["export", str(file), "--format", "ytsaurus"]) == 0
    assert read_yson(capsys.readouterr().out.encode())[0][1] == {
        "$attributes": {"config": {}}, "$value": {"q": {"$attributes": {"mode": "fifo"}, "$value": {}}}
    }  # fmt: skip
    file.write_text("{}")
    assert run(["export", str(file)]) == 3
    assert run(["export", str(tmp_path / "ghost")]) == 3
    assert run(["export", "prod", "--stored", "--url", "http://127.0.0.1:1"]) == 4
    assert run(["import", QUEUES, "--store", "prod", "--url", "http://127.0.0.1:1"]) == 4


EXAMPLE = str(MANIFESTS.parents[1] / "examples" / "kueue-classic.json")
CYPRESS = str(MANIFESTS / "ytsaurus-cypress.json")


@pytest.mark.parametrize(
    ("command", "pointer"),
    [
        (["decide", WORKLOADS], "/items/9/spec"),
        (["decide", "-f", WORKLOADS], "/items/9/spec"),
        (["explain", WORKLOADS], "/items/9/spec"),
        (["explain", WORKLOADS, "--full"], "/items/9/spec"),
        (["import", WORKLOADS], "/items/9/spec"),
        (["import", CYPRESS], "/$value/research/$value/research"),
        (["export", CYPRESS], "/$value/research/$value/research"),
        (["export", CYPRESS, "--format", "kueue"], "/$value/research/$value/research"),
        (["compare", WORKLOADS, "--engine", "kai"], "/items/9/spec"),
        (["compare", WORKLOADS, "--configuration", WORKLOADS], "/items/9/spec"),
        (["compare", EXAMPLE, "--configuration", WORKLOADS], "/items/9/spec"),
        (["plan", "JOB", "-f", WORKLOADS, "--queue", "cq"], "/items/9/spec"),
        (["plan", "JOB", "-f", EXAMPLE, "--queue", "serving", "-n", "x"], "/1/kind"),
    ],
)
@pytest.mark.parametrize("json_too", [False, True])
def test_an_error_is_the_exit_code_of_every_command_and_in_its_json(
    command: list[str], pointer: str, json_too: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {containers: [{name: c}]}}}}\n"
        "---\n{apiVersion: example.com/v1, kind: Never, metadata: {name: n}}\n"
    )
    words = [str(job) if word == "JOB" else word for word in command]
    assert run([*words, *(["--json"] if json_too else [])]) == 3
    said = capsys.readouterr()
    assert f" error {pointer}: " in said.err
    assert said.out != ""
    if json_too:
        errors = [one["pointer"] for one in json.loads(said.out)["findings"] if one["severity"] == "error"]
        assert any(one.endswith(pointer) for one in errors)


def test_queues_and_work_come_from_several_files_and_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = json.loads(Path(WORKLOADS).read_bytes())["items"]
    for number, item in enumerate(items):
        (tmp_path / f"{number:02}.json").write_text(json.dumps(item, indent="\t"))
    assert run(["decide", WORKLOADS]) == 3
    whole = capsys.readouterr().out
    assert run(["decide", "-f", str(tmp_path)]) == 3
    said = capsys.readouterr()
    assert said.out == whole
    assert f"{tmp_path / '09.json'}: error /spec: no LocalQueue" in said.err
    local = [item for item in items if item["kind"] == "LocalQueue"]
    rest = [item for item in items if item["kind"] != "LocalQueue"]
    (tmp_path / "queues.yaml").write_text(yaml.safe_dump_all(local))
    (tmp_path / "work.yaml").write_text(yaml.safe_dump_all(rest))
    assert run(["decide", str(tmp_path / "work.yaml"), "--configuration", str(tmp_path / "queues.yaml")]) == 3
    assert capsys.readouterr().out == whole


def test_a_missing_configuration_is_named_and_not_the_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["decide", WORKLOADS, "--configuration", "/nowhere.yaml"]) == 3
    said = capsys.readouterr().err
    assert "/nowhere.yaml: No such file" in said
    assert WORKLOADS not in said


def test_a_request_may_be_yaml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = MANIFESTS.parents[1] / "examples" / "kueue-classic.json"
    request = tmp_path / "request.yaml"
    request.write_text(yaml.safe_dump(json.loads(example.read_bytes())))
    assert run(["decide", str(example)]) == 1
    expected = capsys.readouterr().out
    assert run(["decide", str(request)]) == 1
    assert capsys.readouterr().out == expected


def test_a_strict_export_prints_nothing_where_something_would_be_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "configuration.json"
    file.write_text(json.dumps({"engine": "kueue", "queues": [{"name": "a", "priority": 7}]}))
    assert run(["export", str(file)]) == 0
    assert "# not carried over: /queues/0/priority" in capsys.readouterr().out
    assert run(["export", str(file), "--strict"]) == 3
    assert capsys.readouterr().out == ""


def test_an_export_as_json_has_its_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "configuration.json"
    assert run(["import", QUEUES, "--format", "kueue"]) == 0
    file.write_text(capsys.readouterr().out)
    assert run(["export", str(file), "--format", "yunikorn", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["text"].count("# not carried over") > 3
    assert any(f["pointer"].endswith("/native/kueue/spec/namespaceSelector") for f in said["findings"])
    assert run(["export", str(file), "--format", "yunikorn", "--strict"]) == 3
    assert capsys.readouterr().out == ""
    assert run(["export", str(file), "--strict"]) == 0
