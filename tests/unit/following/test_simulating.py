"""Recordings of KAI, YuniKorn and kube-scheduler as simulations: jobs, nodes and quotas as they were, then others."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.cli import run
from app.following.simulating import Recorded
from app.simulations.schemas import SimulationRequest, Trace
from app.solver.model.configuration import Configuration, EngineName, Quota
from tests.cluster.recorded.made import SPACE, Item, event, node, pod

BEGIN = datetime(2026, 11, 22, 9, tzinfo=UTC)
ENGINES: tuple[EngineName, ...] = ("kai", "yunikorn", "kube-scheduler")
SCHEDULERS = {"kai": "kai-scheduler", "yunikorn": "yunikorn", "kube-scheduler": "default-scheduler"}


class Cluster:
    """What an API server says of a cluster in which things happen."""

    def __init__(self, engine: EngineName) -> None:
        self.engine: EngineName = engine
        self.now = 0.0
        self.lines: list[Item] = []
        self._there: dict[tuple[str, str], Item] = {}
        self._version = 10

    def at(self, seconds: float) -> None:
        self.now = seconds

    def time(self) -> str:
        return (BEGIN + timedelta(seconds=self.now)).isoformat()

    def listed(self, *kinds: str, items: tuple[Item, ...] = ()) -> None:
        """All of these kinds, as a follower lists them when it begins."""
        for kind in kinds:
            found = [item for item in items if item["kind"] == kind]
            for item in found:
                self._there[kind, item["metadata"]["name"]] = item
                self._say(kind, "ITEM", object=item)
            self._say(kind, "LISTED", count=len(found), resource_version=str(self._version), api_version="v1")

    def put(self, item: Item) -> None:
        key = item["kind"], item["metadata"]["name"]
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        self._say(item["kind"], "MODIFIED" if key in self._there else "ADDED", object=item)
        self._there[key] = item

    def gone(self, kind: str, name: str) -> None:
        self._version += 1
        item = self._there.pop((kind, name))
        item["metadata"]["resourceVersion"] = str(self._version)
        self._say(kind, "DELETED", object=item)

    def pod(self, name: str, cpu: int, on: str | None = None, *, phase: str = "Running", **metadata: Any) -> None:
        """It is there, bound, or done."""
        made = pod(name, SCHEDULERS[self.engine], {"cpu": str(cpu)}, self.time(), on, phase=phase, **metadata)
        if (known := self._there.get(("Pod", name))) is not None:
            made["metadata"] = {**made["metadata"], **known["metadata"]}
        if on is not None:
            made["status"]["startTime"] = self.time()
        self.put(made)

    def _say(self, kind: str, word: str, **more: Any) -> None:
        self.lines.append(json.loads(json.dumps({"at": self.time(), "kind": kind, "type": word, **more})))

    def simulation(self) -> tuple[SimulationRequest, Recorded]:
        course = Recorded(self.engine)
        made = course.simulation(iter(json.loads(json.dumps(self.lines))))
        return msgspec.json.decode(msgspec.json.encode(made), type=SimulationRequest), course


def quotas(engine: EngineName, most: int) -> list[Item]:
    """Queues a and b, of which b has at most ``most`` cpu."""
    if engine == "yunikorn":
        leaf = [{"name": "a"}, {"name": "b", "resources": {"max": {"vcore": str(most)}}}]
        text = json.dumps({"partitions": [{"name": "default", "queues": [{"name": "root", "queues": leaf}]}]})
        metadata = {"name": "yunikorn-configs", "namespace": "yunikorn"}
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"queues.yaml": text}}]
    if engine == "kai":
        return [kai_queue("a", 8, 8), kai_queue("b", most)]
    return []


def kai_queue(name: str, most: int, own: int = 1) -> Item:
    amounts = {kind: {"quota": 0, "limit": -1, "overQuotaWeight": 1} for kind in ("gpu", "memory")}
    cpu = {"quota": 1000 * own, "limit": 1000 * most, "overQuotaWeight": 1}
    return {
        "apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name},
        "spec": {"resources": {**amounts, "cpu": cpu}},
    }  # fmt: skip


def about(engine: EngineName, queue: str, group: str, owner: str = "") -> Item:
    """What the metadata of a pod says of where it belongs."""
    owners = (
        {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner}]} if owner else {}
    )
    if engine == "kai":
        return {"annotations": {"pod-group-name": group}, **owners}
    return {"labels": {"applicationId": group, "queue": f"root.{queue}"}, **owners}


def began(engine: EngineName) -> Cluster:
    """One node of 8 cpu, queues, and nothing that runs."""
    cluster = Cluster(engine)
    kinds = {"kai": ("Queue", "PodGroup"), "yunikorn": ("ConfigMap",), "kube-scheduler": ("Namespace",)}[engine]
    there = [*quotas(engine, 8), node({"name": "n1"}, {"cpu": "8"})]
    cluster.listed("Pod", *kinds, "PriorityClass", "Node", items=tuple(there))
    return cluster


def group(cluster: Cluster, name: str, queue: str, least: int = 1) -> None:
    if cluster.engine == "kai":
        spec = {"queue": queue, "minMember": least, "preemptibility": "preemptible"}
        metadata = {"name": name, "namespace": SPACE, "uid": f"u-{name}", "creationTimestamp": cluster.time()}
        cluster.put(
            {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}
        )


def told(trace: Any) -> list[tuple[str, float, Any]]:
    assert isinstance(trace, Trace)
    start = [(datetime.fromisoformat(str(job.submitted_at)) - BEGIN).total_seconds() for job in trace.jobs]
    return [(job.ask.id, at, job.duration) for job, at in zip(trace.jobs, start, strict=True)]


def course(engine: EngineName) -> Cluster:
    """`one` runs for 60 s; `two` is evicted for it, and what stands in for it runs for 90 s; `late` runs on."""
    cluster = began(engine)
    group(cluster, "two", "b")
    cluster.pod("two-0", 6, **about(engine, "b", "two", "two"))
    cluster.at(2)
    cluster.pod("two-0", 6, "n1")
    cluster.at(10)
    group(cluster, "one", "a")
    cluster.pod("one-0", 6, **about(engine, "a", "one", "one"))
    cluster.at(12)
    cluster.put(evicted(engine, "two-0", "one", cluster.time()))
    cluster.gone("Pod", "two-0")
    cluster.pod("two-1", 6, **about(engine, "b", "two", "two"))
    cluster.at(13)
    cluster.pod("one-0", 6, "n1")
    cluster.at(40)
    cluster.put(node({"name": "n2"}, {"cpu": "4"}))
    cluster.at(50)
    for item in quotas(engine, 7):
        cluster.put(item)
    cluster.at(73)
    cluster.pod("one-0", 6, "n1", phase="Succeeded")
    cluster.at(75)
    cluster.pod("two-1", 6, "n1")
    cluster.at(165)
    cluster.pod("two-1", 6, "n1", phase="Succeeded")
    group(cluster, "late", "a")
    cluster.pod("late-0", 1, **about(engine, "a", "late", "late"))
    group(cluster, "never", "a")
    cluster.pod("never-0", 100, **about(engine, "a", "never", "never"))
    cluster.at(170)
    cluster.pod("late-0", 1, "n1")
    cluster.at(180)
    cluster.put(node({"name": "n2"}, {"cpu": "5"}))
    return cluster


def evicted(engine: EngineName, victim: str, by: str, at: str) -> Item:
    victim_pod: Item = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": victim}}
    if engine == "kai":
        message = f"Pod {SPACE}/{victim} was preempted by workload {SPACE}/{by}."
        return event({**victim_pod, "kind": "PodGroup"}, "Evict", message, at)
    if engine == "yunikorn":
        return event(victim_pod, "Informational", f"Preempted by uid-{by}-0 from application {by} in root.a", at)
    return event(victim_pod, "Preempted", f"Preempted by pod uid-{by}-0 on node n1", at)


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
def test_how_many_are_translated_at_once_changes_nothing(engine: EngineName, monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr("app.following.simulating._BATCH", 1)
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
    cluster.at(200)
    cluster.put(kai_queue("c", 1))
    cluster.at(201)
    cluster.pod("three-0", 1, "n1")
    cluster.at(210)
    cluster.pod("three-0", 1, "n1", phase="Succeeded")
    cluster.gone("Queue", "c")
    made, _ = cluster.simulation()
    assert isinstance(made.trace, Trace)
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
