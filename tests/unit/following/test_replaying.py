"""Recordings of Kueue, one for each way in which what is written down is not what the scheduler knew."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.base.errors import BadRequest
from app.cli import run
from app.following.judging import Judgement
from app.following.objects import followed
from app.following.replaying import Recorder, Replay, lines
from app.simulations.schemas import SimulationRequest
from app.solver.model import kueue as model
from app.solver.model.configuration import Settings
from tests.cluster import kueue
from tests.support.streams import Stream, crowded, queue

Json = dict[str, Any]


def judged(stream: Stream, settings: Settings | None = None) -> list[Judgement]:
    return list(Replay("kueue").judge(lambda: iter(copy.deepcopy(stream.lines)), settings))


def told(found: list[Judgement]) -> list[tuple[str, str, list[str]]]:
    return [(one.report.ask, one.outcome, [v.workload for v in one.report.victims]) for one in found]


@pytest.fixture
def stream() -> Stream:
    """A queue of 4 CPUs with two workloads of 2 in it, and one that waits and may preempt them."""
    return crowded()


def test_a_preemption_agrees_at_the_moment_before_it(stream: Stream) -> None:
    stream.evict("a", "p")
    (one,) = judged(stream)
    assert told([one]) == [("default/p", "agreed", ["default/a"])]
    assert (one.report.seconds, one.report.changes, one.report.assumed) == (0, 0, [])
    (request,) = one.report.requests
    assert (request.mode, [ask.id for ask in request.asks]) == ("cycle", ["default/p"])  # pyright: ignore


def test_another_victim_or_reason_than_the_rules_give_differs(stream: Stream) -> None:
    stream.evict("b", "p")
    (one,) = judged(stream)
    assert told([one]) == [("default/p", "differs", ["default/b"])]
    assert one.detail == (
        "Arbiter says preempt; evicted, though Arbiter would not: default/b (InClusterQueue); "
        "not evicted, though Arbiter would: default/a (InClusterQueue)"
    )
    other = Stream()
    other.lines = stream.lines[:-1]
    assert judged(other) == []


def test_a_victim_that_no_moment_explains_differs(stream: Stream) -> None:
    stream.finish("a")  # there is room: who had heard of it would evict nobody
    stream.wait(0.25)
    stream.evict("b", "p")
    stream.lines[-1], stream.lines[-2] = stream.lines[-2], stream.lines[-1]
    stream.wait(5)
    stream.put(kueue.workload("later", "l", 1))
    (one,) = judged(stream)
    assert one.outcome == "differs", "a was finished, so that b is nobody's victim at any moment"


def test_the_youngest_moment_at_which_it_agrees_is_told(stream: Stream) -> None:
    stream.wait(10)
    stream.put(queue("q", 6, withinClusterQueue="LowerPriority"))  # with it p fits, and evicts nobody
    stream.wait(0.25)
    stream.put(kueue.workload("later", "l", 1))
    stream.wait(0.25)
    stream.evict("a", "p")
    (one,) = judged(stream)
    assert told([one]) == [("default/p", "agreed_earlier", ["default/a"])]
    assert (one.report.seconds, one.report.changes) == (0.5, 2)


def test_each_cycle_of_a_preemptor_is_judged_alone(stream: Stream) -> None:
    stream.evict("a", "p")
    stream.condition(
        "p", "QuotaReserved", "False", "Pending", "couldn't assign flavors. Pending the preemption of 1 workload(s)"
    )
    stream.wait(0.5)
    stream.release("a")
    stream.put(kueue.workload("first", "l", 2, 10))
    stream.admit_alone("first", "q", {"cpu": "2"})  # another goes before it and takes what was freed
    stream.wait(0.25)
    stream.evict("b", "p")
    found = judged(stream)
    assert told(found) == [
        ("default/p", "agreed", ["default/a"]), ("default/p", "agreed", ["default/b"]),
    ]  # fmt: skip


def test_nobody_is_evicted_twice(stream: Stream) -> None:
    """The second search comes upon the first victim again, which is on its way out."""
    stream.evict("a", "p")
    stream.wait(3)
    stream.put(kueue.workload("p", "l", 4, 9) | {"status": {}})
    stream.wait(1)
    stream.evict("b", "p")
    assert [one.outcome for one in judged(stream)] == ["agreed", "agreed"]


def test_work_that_was_admitted_and_not_written_down_yet_counts(stream: Stream) -> None:
    stream.put(queue("q", 6, withinClusterQueue="LowerPriority"))
    stream.put(kueue.workload("quick", "l", 2, 10))
    stream.wait(3)
    stream.evict("a", "p")
    stream.wait(0.125)
    stream.admit_alone("quick", "q", {"cpu": "2"})
    (one,) = judged(stream)
    assert (one.outcome, one.report.assumed, one.report.changes) == ("agreed", ["admissions"], 0)


def test_what_was_assumed_to_be_admitted_is_so_at_an_earlier_moment_too(stream: Stream) -> None:
    """Kueue had not heard yet that the quota grew when its decision and an admission before it were written down."""
    stream.put(queue("q", 6, withinClusterQueue="LowerPriority"))
    stream.put(kueue.workload("quick", "l", 2, 10))
    decided = stream.now
    stream.wait(1)
    stream.put(queue("q", 8, withinClusterQueue="LowerPriority"))
    usage: Json = {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "2"}}
    stream.admit("quick", "q", [usage], decided)
    stream.evict("a", "p")
    (one,) = judged(stream)
    assert (one.outcome, one.report.assumed, one.report.changes) == ("agreed_earlier", ["admissions"], 2)


@pytest.mark.parametrize(("between", "outcome"), [(False, "agreed_earlier"), (True, "differs")])
def test_no_cycle_begins_before_the_last_one_has_ended(stream: Stream, between: bool, outcome: str) -> None:
    """What the cluster was before somebody else was evicted explains nothing any more."""
    for made in (queue("r", 2, withinClusterQueue="LowerPriority"), kueue.local_queue("m", "r")):
        stream.put(made)
    stream.put(kueue.workload("low", "m", 2, 1))
    stream.admit_alone("low", "r", {"cpu": "2"})
    stream.put(kueue.workload("high", "m", 2, 9))
    stream.wait(5)
    stream.put(queue("q", 6, withinClusterQueue="LowerPriority"))  # with it p fits, and evicts nobody
    stream.wait(1)
    if between:
        stream.evict("low", "high")
    stream.wait(3)
    stream.evict("a", "p")
    assert told(judged(stream))[-1] == ("default/p", outcome, ["default/a"])


@pytest.mark.parametrize("before", [False, True], ids=["new", "evicted-before"])
def test_what_was_only_assumed_to_be_admitted_may_be_evicted(stream: Stream, before: bool) -> None:
    """Its eviction is the first that is written of its admission."""
    stream.put(queue("q", 6, withinClusterQueue="LowerPriority"))
    stream.put(kueue.workload("quick", "l", 2, 0))
    if before:
        stream.admit_alone("quick", "q", {"cpu": "2"})
        stream.wait(1)
        stream.evict("quick", "a")
        stream.release("quick")
    stream.wait(30)
    stream.admit_alone("quick", "q", {"cpu": "2"})
    del stream.lines[-1]
    stream.evict("quick", "p")
    *_, one = judged(stream)
    assert told([one]) == [("default/p", "agreed", ["default/quick"])]
    assert (one.report.assumed, one.report.changes) == (["admissions"], 0)


def two_flavors(**fungibility: str) -> Json:
    made = queue("q", 2, withinClusterQueue="LowerPriority")
    quota = [{"name": name, "resources": [{"name": "cpu", "nominalQuota": 2}]} for name in ("first", "second")]
    made["spec"]["resourceGroups"] = [{"coveredResources": ["cpu"], "flavors": quota}]
    made["spec"]["flavorFungibility"] = fungibility
    return made


@pytest.mark.parametrize(("known", "outcome"), [(True, "agreed"), (False, "differs")])
def test_a_scan_of_flavors_may_have_gone_on(known: bool, outcome: str) -> None:
    stream = Stream()
    for one in (kueue.flavor("first"), kueue.flavor("second"), two_flavors(whenCanPreempt="Preempt"),
                kueue.local_queue("l", "q")):  # fmt: skip
        stream.put(one)
    for name, flavor in (("a", "first"), ("b", "second")):
        stream.put(kueue.workload(name, "l", 2, 1))
        stream.admit_alone(name, "q", {"cpu": "2"}, flavor)
        stream.wait(1)
    stream.put(kueue.workload("p", "l", 2, 9))
    if known:
        stream.condition(
            "p", "QuotaReserved", "False", "Pending", "Workload no longer fits after processing another workload"
        )
    stream.wait(1)
    stream.evict("b", "p")  # the scan stopped at the first flavor before
    (one,) = judged(stream)
    assert one.outcome == outcome
    assert one.report.assumed == (["flavor_scan"] if known else [])


def cohort() -> Stream:
    """Two queues that reclaim from a third, which borrows all that they have."""
    stream = Stream()
    stream.put(kueue.flavor())
    for name, cpu in (("x", 2), ("y", 2), ("z", 0)):
        stream.put(queue(name, cpu, "all", reclaimWithinCohort="LowerPriority"))
        stream.put(kueue.local_queue(f"l-{name}", name))
    for name in ("a", "b"):
        stream.put(kueue.workload(name, "l-z", 2, 1))
        stream.admit_alone(name, "z", {"cpu": "2"})
        stream.wait(1)
    return stream


def test_heads_of_one_cycle_choose_other_victims() -> None:
    stream = cohort()
    stream.put(kueue.workload("p", "l-x", 2, 9))
    stream.put(kueue.workload("r", "l-y", 2, 5))
    stream.wait(2)
    stream.evict("b", "p", "InCohortReclamation")
    stream.evict("a", "r", "InCohortReclamation")  # alone it would have taken b too: both looked at the same cluster
    found = judged(stream)
    assert sorted(told(found)) == [
        ("default/p", "agreed", ["default/b"]), ("default/r", "agreed", ["default/a"]),
    ]  # fmt: skip


def test_a_cycle_in_which_another_head_would_have_evicted_somebody_who_was_not_is_none() -> None:
    """`r` takes `a` only beside `p`, which would have taken `b`."""
    stream = cohort()
    stream.put(kueue.workload("p", "l-x", 2, 9))
    stream.put(kueue.workload("r", "l-y", 2, 5))
    stream.wait(2)
    stream.evict("a", "r", "InCohortReclamation")
    assert told(judged(stream)) == [("default/r", "differs", ["default/a"])]


def test_a_relist_is_no_end_of_what_is_known(stream: Stream) -> None:
    stream.bookmark()
    stream.relist()
    stream.evict("a", "p")
    assert [one.outcome for one in judged(stream)] == ["agreed"]
    evicted = stream.lines.pop()
    stream.relist()
    assert "Evicted" in str(stream.lines[-4]["object"])
    assert evicted["type"] == "MODIFIED"
    assert [one.outcome for one in judged(stream)] == ["agreed"], "evicted while nobody heard"


def test_fair_sharing_is_what_evictions_or_the_manager_say(stream: Stream) -> None:
    fair = Settings(kueue=model.Settings(fair_sharing=True))
    stream.evict("a", "p")
    said_there = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfairSharing: {}\n"
    manager = {
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"controller_manager_config.yaml": said_there},
        "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
    }  # fmt: skip
    said = Stream()
    said.put(manager)
    said.lines += stream.lines
    other = Stream()
    other.lines = list(stream.lines)
    lines: list[tuple[list[Json], Settings | None, bool]] = [
        (stream.lines, None, False), (stream.lines, fair, True), (said.lines, None, True),
    ]  # fmt: skip
    for of, given, wanted in lines:
        other.lines = of
        (one,) = judged(other, given)
        configuration: Any = one.report.requests[0].configuration
        settings = configuration.settings.kueue
        assert (settings is not None and settings.fair_sharing) is wanted
    stream.evict("b", "p", "InCohortFairSharing")
    configuration = judged(stream)[0].report.requests[0].configuration
    assert configuration.settings.kueue.fair_sharing


def finished_pods(stream: Stream) -> None:
    made = stream.workload("a")
    made["spec"]["podSets"][0]["count"] = 2
    made["status"]["reclaimablePods"] = [{"name": "main", "count": 1}]
    made["status"]["admission"]["podSetAssignments"][0]["count"] = 2
    stream.put(made)


def test_pods_that_are_done_hold_nothing(stream: Stream) -> None:
    finished_pods(stream)  # a holds one of its two, so that one is free: p still needs one more
    stream.evict("a", "p")
    (one,) = judged(stream)
    state: Any = one.report.requests[0].state
    assert one.outcome == "agreed"
    assert {w.id: w.tasks[0].count for w in state.workloads} == {"default/a": 1, "default/b": 1}


def without_times(stream: Stream) -> None:
    for line in stream.lines:
        del line["at"]


def without_lists(stream: Stream) -> None:
    stream.lines = [{"type": line["type"], "object": line["object"]} for line in stream.lines]


def shuffled_kinds(stream: Stream) -> None:
    """Each kind has a watch of its own: all that one says may be heard after all of another."""
    stream.lines.sort(key=lambda line: line["kind"] != "Workload")


@pytest.mark.parametrize("change", [without_times, without_lists, shuffled_kinds])
def test_bare_lines_of_watches_in_any_order_of_kinds_are_a_recording(
    stream: Stream, change: Callable[[Stream], None]
) -> None:
    stream.evict("a", "p")
    stream.wait(30)
    stream.bookmark()
    change(stream)
    assert [one.outcome for one in judged(stream)] == ["agreed"]


def test_what_is_no_recording_is_said(stream: Stream) -> None:
    stream.lines = [{"type": "NEWS", "kind": "Workload"}]
    with pytest.raises(BadRequest, match="'NEWS' is no type"):
        judged(stream)
    stream.lines = [{"type": "RECORDING", "engine": "kai"}]
    with pytest.raises(BadRequest, match="of kai, not of kueue"):
        judged(stream)
    stream.lines = [{"type": "LISTED", "kind": "Workload", "count": 3}]
    with pytest.raises(BadRequest, match="0 of 3"):
        judged(stream)


@pytest.mark.parametrize("name", ["r.jsonl", "r.gz", "r.zst"])
def test_what_is_recorded_is_replayed(
    name: str, stream: Stream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream.evict("a", "p")
    kinds = {kind.name: kind for kind in followed("kueue")}
    recorder = Recorder(tmp_path / name, "kueue", "prod")
    managed = {"managedFields": [{"time": stream.stamp()}]}
    for line in stream.lines:
        made = {**line["object"], "metadata": {**line["object"]["metadata"], **managed}}
        if line["kind"] == "Workload":
            recorder.event(kinds["Workload"], {"type": line["type"], "object": made})
        else:
            recorder.item(kinds[line["kind"]], made)
            recorder.listed(kinds[line["kind"]], kueue.GROUP, 1, "99", "start")
    recorder.absent(kinds["Cohort"])
    recorder.broken(kinds["Workload"], "no route")
    recorder.close()
    recorder.close()
    again = Recorder(tmp_path / name, "kueue", "prod")
    again.close()
    assert recorder.failed is None
    found = list(lines(tmp_path / name))
    assert [found[0]["type"], found[-1]["type"]] == ["RECORDING", "RECORDING"]
    assert not any("managedFields" in str(line) for line in found)
    assert run(["follow", "kueue", "--replay", str(tmp_path / name)]) == 0
    said = capsys.readouterr().out
    assert "default/p evicts default/a: agreed" in said
    assert "1 of 1 agree (100.00 %), 0 of them a moment earlier; 0 not judged" in said


def test_a_recording_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_bytes(b'{"type":"RECORDING"}\n\n{"type":"ABSENT","kind":"Coh')
    assert [line["type"] for line in lines(file)] == ["RECORDING"]
    file.write_bytes(b'{"type":"RECORDING"}\n{"type":\n{}\n')
    with pytest.raises(BadRequest, match="line 2 is no JSON object"):
        list(lines(file))
    for name in ("r.gz", "r.zst"):
        (tmp_path / name).write_bytes(b"no such thing")
        with pytest.raises(BadRequest, match=name):
            list(lines(tmp_path / name))


def test_what_differs_is_said_with_its_exit_code(
    stream: Stream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream.evict("b", "p")
    stream.lines.append({"type": "ADDED", "kind": "Secret", "object": {"metadata": {"name": "x"}}})
    file = tmp_path / "r.jsonl"
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in stream.lines))
    assert run(["follow", "kueue", "--replay", str(file)]) == 1
    found = capsys.readouterr()
    assert "default/p evicts default/b: DIFFERS: Arbiter says preempt" in found.out
    assert "1 objects of other kinds are not read: Secret" in found.err
    fair = "settings.kueue.fair_sharing=true"
    assert run(["follow", "kueue", "--replay", str(file), "--json", "--set", fair]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    said = msgspec.json.decode(line)
    assert said["report"]["requests"][0]["configuration"]["settings"]["kueue"] == {"fair_sharing": True}
    assert run(["follow", "kueue", "--replay", str(tmp_path / "none")]) == 3
    assert run(["follow", "kueue"]) == 3
    assert "--replay FILE" in capsys.readouterr().err


def test_a_recording_is_a_simulation(stream: Stream, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream.evict("a", "p")
    stream.wait(5)
    stream.release("a")
    stream.admit_alone("p", "q", {"cpu": "2"})
    stream.wait(30)
    stream.finish("p")
    stream.put(queue("q", 8, withinClusterQueue="LowerPriority"))
    stream.wait(5)
    stream.finish("b")
    stream.put(kueue.workload("never", "l", 1))
    file, out = tmp_path / "r.jsonl", tmp_path / "s.json"
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in stream.lines))
    assert run(["follow", "kueue", "--replay", str(file), "--simulation", str(out)]) == 0
    found = capsys.readouterr()
    assert "2 jobs, 1 changes of the configuration" in found.out
    assert "2 Workloads never ran to an end: left out" in found.err
    made = msgspec.json.decode(out.read_bytes(), type=SimulationRequest)
    trace: Any = made.trace
    assert [(job.ask.id, job.duration) for job in trace.jobs] == [("default/b", 42.0), ("default/p", 30.0)]
    assert trace.changes[0].queues.keys() == {"q"}
    assert run(["simulate", str(out)]) == 0
    assert run(["follow", "kai", "--replay", str(file), "--simulation", str(out)]) == 3
    file.write_bytes(b'{"type":"RECORDING"}\n')
    assert run(["follow", "kueue", "--replay", str(file), "--simulation", str(out)]) == 3


def test_a_recording_is_tried_under_other_quotas_another_engine_and_another_release(
    stream: Stream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`p` evicts `a`; with two CPUs more nobody is, with two less `b` evicts `a` before it."""
    stream.evict("a", "p")
    stream.wait(1)
    stream.release("a")
    stream.admit_alone("p", "q", {"cpu": "2"})
    for name in ("p", "b", "a"):
        stream.wait(30)
        stream.finish(name)
        if name == "p":
            stream.admit_alone("a", "q", {"cpu": "2"})
    file, out = tmp_path / "r.jsonl", tmp_path / "s.json"
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in stream.lines))
    assert run(["follow", "kueue", "--replay", str(file), "--simulation", str(out)]) == 0
    quota = "queues.q.quota.cpu.guaranteed"
    plain = {"queues": [{"name": "q", "quota": {"cpu": {"guaranteed": 4}}}]}
    body: Json = msgspec.json.decode(out.read_bytes())
    body["state"]["nodes"] = [{"name": "n", "capacity": {"cpu": 8}}]  # which KAI and YuniKorn place pods on
    body["variants"] = [
        {"name": "was"}, {"name": "more", "set": {quota: 6}}, {"name": "less", "set": {quota: 2}},
        {"name": "yunikorn", "engine": "yunikorn", "configuration": {"engine": "yunikorn", "queues": [
            {"name": "root"}, {"name": "q", "parent": "root", "quota": {"vcore": {"limit": 4}}}]}},
        *({"name": f"kai {release}", "engine": "kai", "settings": {"kai": {"release": release}},
           "configuration": {"engine": "kai", **plain}} for release in ("0.13", "0.17")),
    ]  # fmt: skip
    out.write_bytes(msgspec.json.encode(body))
    capsys.readouterr()
    assert run(["simulate", str(out), "--json"]) == 0
    found = {name: one["total"] for name, one in msgspec.json.decode(capsys.readouterr().out)["variants"].items()}
    assert {name: one["finished"] for name, one in found.items()} == dict.fromkeys(found, 3)
    evicted = {name: one.get("evictions", 0) for name, one in found.items()}
    assert (evicted["was"], evicted["more"], evicted["less"]) == (1, 0, 2)


def test_the_command_says_what_is_no_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "r.jsonl", tmp_path / "s.json"
    for text, why in (
        ("nonsense\n", "is no JSON object"),
        ('{"type": "X", "kind": "Workload"}\n', "no type of a recording"),
    ):
        file.write_text(text)
        for more in ([], ["--simulation", str(out)]):
            assert run(["follow", "kueue", "--replay", str(file), *more]) == 3
            assert why in capsys.readouterr().err
