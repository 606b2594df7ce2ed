"""Recordings of KAI, YuniKorn and kube-scheduler as simulations: jobs, nodes and quotas as they were, then others."""

import json
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.cli import run
from app.simulations.schemas import Trace
from app.solver.model.configuration import Configuration, EngineName, Quota
from tests.cluster.recorded import expressible
from tests.cluster.recorded.made import SPACE
from tests.support.bounds import Bounded
from tests.support.recordings import (
    BEGIN,
    ENGINES,
    Cluster,
    about,
    course,
    group,
    kai_queue,
)


def told(trace: Any) -> list[tuple[str, float, Any]]:
    assert isinstance(trace, Trace)
    start = [(datetime.fromisoformat(str(job.submitted_at)) - BEGIN).total_seconds() for job in trace.jobs]
    return [(job.ask.id, at, job.duration) for job, at in zip(trace.jobs, start, strict=True)]


@pytest.mark.parametrize("engine", ENGINES)
def test_jobs_nodes_and_quotas_are_what_they_were(engine: EngineName) -> None:
    made, of = course(engine).simulation()
    names = {"kai": ("two", "one", "late"), "yunikorn": ("two-0", "one-0", "late-0")}
    two, one, late = (f"{SPACE}/{name}" for name in names.get(engine, names["yunikorn"]))
    assert told(made.trace) == [(two, 0, 90), (one, 10, 60), (late, 165, 10)]
    assert dict(of.left_out) == {
        "ran on, or were deleted while they ran: as long as they were seen": 1, "never ran to an end: left out": 1,
    }  # fmt: skip
    assert [(one.name, one.capacity["vcore" if engine == "yunikorn" else "cpu"]) for one in made.state.nodes] == [
        ("n1", 8)
    ]
    assert isinstance(made.trace, Trace)
    changed = [
        (change.at, [node.name for node in (*change.nodes.add, *change.nodes.change)]) for change in made.trace.changes
        if change.nodes is not None
    ]  # fmt: skip
    assert [(datetime.fromisoformat(str(at)) - BEGIN, names) for at, names in changed] == [
        (timedelta(seconds=40), ["n2"]), (timedelta(seconds=180), ["n2"]),
    ]  # fmt: skip
    amended = [change.queues for change in made.trace.changes if change.queues]
    name = "root.b" if engine == "yunikorn" else "b"
    assert [list(one) for one in amended] == ([] if engine == "kube-scheduler" else [[name]])
    assert not any(change.configuration for change in made.trace.changes)


def simulated(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str, **more: Any) -> Any:
    """What `arbiter simulate` says of the recording, with the request changed."""
    file, out = tmp_path / "r.jsonl", tmp_path / "s.json"
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in cluster.lines))
    assert run(["follow", cluster.engine, "--replay", str(file), "--simulation", str(out)]) == 0
    body = {**json.loads(out.read_bytes()), **more}
    out.write_bytes(json.dumps(body).encode())
    capsys.readouterr()
    assert run(["simulate", str(out), "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("engine", ENGINES)
def test_how_many_are_translated_at_once_changes_nothing(engine: EngineName, bounded: Bounded) -> None:
    """Pods of one application of YuniKorn's that come apart too: the first of them is its originator."""
    cluster = course(engine)
    for number in range(3):
        cluster.at(200 + 10 * number)
        group(cluster, f"more-{number}", "a")
        cluster.pod(f"more-{number}-0", 1, **about(engine, "a", "two" if number else "one"))
        cluster.pod(f"more-{number}-0", 1, "n1")
        cluster.at(205 + 10 * number)
        cluster.pod(f"more-{number}-0", 1, "n1", phase="Succeeded")
        cluster.gone("Pod", f"more-{number}-0")
    made, _ = cluster.simulation()
    bounded("app.following.simulating", BATCH=1)
    assert cluster.simulation()[0] == made


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_again_as_it_was(engine: EngineName, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    total = simulated(course(engine), tmp_path, capsys)["total"]
    assert (total["jobs"], total["finished"]) == (3, 3)


def test_under_other_quotas_another_engine_and_another_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`two` asks for 6 of the 8 cpu of its queue. With 5 it waits until an administrator gives the queue 7: then `one`
    has begun, and nobody is evicted for it."""
    was: dict[str, Any] = {"name": "was"}
    for engine, path in (("kai", "queues.b.quota.cpu"), ("yunikorn", "queues.root.b.quota.vcore")):
        less = {"name": "less", "set": {f"{path}.limit": 5}}
        own = {f"{path}.guaranteed": 8}
        others: list[dict[str, Any]] = [
            {"name": "kueue", "engine": "kueue", "set": own} if engine == "kai" else {"name": "kai", "engine": "kai"},
            {"name": "older", "settings": {"kai": {"release": "0.13"}}} if engine == "kai"
            else {"name": "designed", "settings": {"yunikorn": {"rules": "documented"}}},
        ]  # fmt: skip
        found = simulated(course(engine), tmp_path, capsys, variants=[was, less, *others])["variants"]
        assert found.keys() == {"was", "less", *(one["name"] for one in others)}
        assert {name: one["total"]["finished"] for name, one in found.items()} == dict.fromkeys(found, 3)
        was_evicted, less_evicted = (found[name]["total"].get("evictions", 0) for name in ("was", "less"))
        assert (was_evicted, less_evicted) == (1 if engine == "kai" else 0, 0), "in KAI as it was recorded"
        assert found["was"]["total"]["wait"] != found["less"]["total"]["wait"]
    quota = {"cpu": {"guaranteed": 7}}
    kueue = {"engine": "kueue", "queues": [{"name": "default", "quota": quota}]}
    found = simulated(
        course("kube-scheduler"),
        tmp_path,
        capsys,
        variants=[was, {"name": "kueue", "engine": "kueue", "configuration": kueue}],
    )["variants"]
    assert found["kueue"]["total"]["finished"] == 3


def test_work_asked_for_before_its_queue_and_done_before_that_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The queue is there as long as work is in it, and has something of its own while it is an object."""
    cluster = course("kai")
    cluster.at(190)
    group(cluster, "three", "c")
    cluster.pod("three-0", 1, **about("kai", "c", "three", "three"))
    cluster.at(195)
    named = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "own"}, "value": 3}
    cluster.put(named)  # what jobs are worth stands with them
    cluster.at(200)
    cluster.put(kai_queue("c", 1))
    cluster.at(201)
    cluster.pod("three-0", 1, "n1")
    cluster.at(210)
    cluster.pod("three-0", 1, "n1", phase="Succeeded")
    cluster.gone("Queue", "c")
    made, _ = cluster.simulation()
    assert isinstance(made.trace, Trace)
    assert all(change.queues or change.configuration or change.nodes for change in made.trace.changes)
    (given,) = [change.queues["c"].quota for change in made.trace.changes if "c" in change.queues]
    (last,) = [change.configuration for change in made.trace.changes if change.configuration is not None]
    assert given == quota_of(last, "a") | {"cpu": Quota(guaranteed=1, limit=1, weight=1)}
    assert (quota_of(made.configuration, "c"), quota_of(last, "c")) == (None, None)
    total = simulated(cluster, tmp_path, capsys)["total"]
    assert (total["jobs"], total["finished"]) == (4, 4)


def quota_of(configuration: str | Configuration, name: str) -> Any:
    assert isinstance(configuration, Configuration)
    return next(queue.quota for queue in configuration.queues if queue.name == name)


def test_the_eviction_in_it_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "r.jsonl"
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in course("kai").lines))
    assert run(["follow", "kai", "--replay", str(file)]) == 0
    assert "1 of 1 agree" in capsys.readouterr().out


def test_a_recording_of_yunikorn_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A preemption of the released scheduler, and the same with another victim."""
    one = next(one for one in expressible("yunikorn") if one.others)
    begin: list[Any] = [{"at": one.at, "type": "RECORDING", "version": 1, "engine": "yunikorn", "cluster": "prod"}]
    begin += [{"at": one.at, "kind": item["kind"], "type": "ITEM", "object": item} for item in one.objects]
    kinds = dict.fromkeys(item["kind"] for item in one.objects)
    begin += [{"at": one.at, "kind": kind, "type": "LISTED", "api_version": "v1"} for kind in kinds]
    others = [*list(one.victims.values())[1:], next(iter(one.others.values()))]
    file = tmp_path / "r.jsonl"
    for events, code, said in ((list(one.victims.values()), 0, "1 of 1 agree"), (others, 1, "DIFFERS")):
        told = [{"at": one.at, "kind": "Event", "type": "ADDED", "object": event} for event in events]
        file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in [*begin, *told]))
        assert run(["follow", "yunikorn", "--replay", str(file), "--set", "settings.yunikorn.rules=shipped"]) == code
        assert said in capsys.readouterr().out


def test_arbiter_trace_takes_a_recording(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    file, out = tmp_path / "week.jsonl", tmp_path / "s.json"
    begin = {"at": BEGIN.isoformat(), "type": "RECORDING", "version": 1, "engine": "kai", "cluster": "prod"}
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in [begin, *course("kai").lines]))
    assert run(["follow", "kai", "--replay", str(file), "--simulation", str(out)]) == 0
    capsysbinary.readouterr()
    assert run(["trace", str(file)]) == 0
    found = capsysbinary.readouterr()
    assert json.loads(found.out) == json.loads(out.read_bytes())
    assert b"1 PodGroups never ran to an end: left out" in found.err
    file.write_bytes(msgspec.json.encode(begin) + b"\n")
    assert run(["trace", str(file)]) == 3
    assert b"no Pod is in the recording" in capsysbinary.readouterr().err


@pytest.mark.slow
def test_a_recording_needs_no_client_of_kubernetes(tmp_path: Path) -> None:
    file, out = tmp_path / "recording", tmp_path / "simulation.json"
    file.write_text("".join(json.dumps(line) + "\n" for line in course("kai").lines))
    words = ["follow", "kai", "--replay", str(file)]
    program = "import sys; sys.modules['kubernetes'] = None; from app.cli import run"
    program += f"; sys.exit(run({words!r}) + run({[*words, '--simulation', str(out)]!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, "1 of 1 agree" in done.stdout) == (0, True), done.stderr
