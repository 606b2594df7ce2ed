"""Order of arrival, and what is told again or listed anew, changes nothing that is said in the end.

A snapshot that followed a cluster by deltas decides what one decides that was put as a fresh list gives it.

The first has what came last at the end, the other everything by name: no tie may hang on that. What an explanation
lists comes in the order of the state."""

import copy
import gzip
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, example, given
from hypothesis import strategies as st

from app.answering.snapshot_store import SnapshotStore
from app.following.grouped import Translated
from app.following.objects import FOLLOWED
from app.following.replaying import Replay
from app.following.translator import Translator
from app.solver import solve
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration, EngineName, Settings
from app.solver.model.request import DecisionRequest
from app.solver.model.state import Ask, AskChanges, Delta, Node, NodeChanges, State, Workload, WorkloadChanges
from app.solver.question import Question
from app.solver.solve import Beside, Configured
from tests.cluster import kueue
from tests.support.courses import Course
from tests.support.kai_world import Json, Shape, cluster
from tests.support.profiles import examples
from tests.support.recordings import course
from tests.support.streams import Stream
from tests.vectors.files import HERE, read

RECORDED = {"kueue": ["cycle", "fair", "classic"], "yunikorn": ["preempt", "fresh-preempt"], "kai": ["decision"]}
EVERY = 4


def bodies(engine: str) -> list[Json]:
    """Questions with ties: recorded ones, and for KAI, which leaves most to chance, crowded clusters."""
    found = [one["request"] for name in RECORDED[engine] for one in read(HERE / engine / f"{name}.jsonl.gz")[::EVERY]]
    if engine == "kai":
        found += [cluster(seed, Shape(rules="shipped", workloads=20)) for seed in (14, 32, 70, 109, *range(200, 240))]
    return [one for one in found if one["asks"]]


def put(of: Configured, nodes: list[Node], workloads: list[Workload], asks: list[Ask], whole: State) -> SnapshotStore:
    store = SnapshotStore(budget=2**40, idle=1e9, clock=lambda: 0.0)
    state = msgspec.structs.replace(whole, nodes=nodes, workloads=workloads)
    store.put("s", of, state, 1, beside=Beside(asks))
    return store


def followed(of: Configured, state: State, asks: list[Ask], draw: random.Random) -> SnapshotStore:
    """Some is there, and the rest comes by deltas, in any order."""
    nodes, workloads, waiting = list(state.nodes), list(state.workloads), list(asks)
    for some in (nodes, workloads, waiting):
        draw.shuffle(some)
    needed = {ask.workload for ask in asks} | {held.ask.workload for held in state.reservations}
    half = 0 if state.reservations else len(nodes) // 2
    there = {None, *(node.name for node in nodes[half:])}
    if any(task.node not in there for one in workloads if one.id in needed for task in one.tasks):
        half, there = 0, {None, *(node.name for node in nodes)}
    late = [
        one for one in workloads
        if one.id not in needed and (draw.random() < 0.5 or any(task.node not in there for task in one.tasks))
    ]  # fmt: skip
    store = put(of, nodes[half:], [one for one in workloads if one not in late], [], state)
    if half:
        store.apply("s", Delta(generation=store.get("s").generation, nodes=NodeChanges(add=nodes[:half])))
    for i in range(0, len(late), 3):
        generation = store.get("s").generation
        store.apply("s", Delta(generation=generation, workloads=WorkloadChanges(add=late[i : i + 3])))
    store.apply("s", Delta(generation=store.get("s").generation, asks=AskChanges(add=waiting)))
    return store


def decided(store: SnapshotStore, request: DecisionRequest) -> bytes:
    loaded, now = store.get("s").loaded, request.now
    assert now is not None
    question = Question(micros(now), loaded.beside.asks, request.mode, request.options)
    return msgspec.json.encode(solve.planned(loaded, question))


@pytest.mark.parametrize("engine", ["kueue", "kai", "yunikorn"])
def test_what_followed_decides_as_a_fresh_list(engine: str) -> None:
    draw, evicted, moved = random.Random(7), 0, 0
    for body in bodies(engine):
        request = msgspec.convert(body, DecisionRequest)
        configuration: Any = request.configuration
        of = solve.configure(configuration, request.engine)
        state, asks = solve.load(of, request.state).state, request.asks
        assert isinstance(asks, list)
        by_name = sorted(state.nodes, key=lambda one: one.name), sorted(state.workloads, key=lambda one: one.id)
        fresh = put(of, *by_name, sorted(asks, key=lambda one: one.id), state)
        store = followed(of, state, asks, draw)
        moved += store.get("s").loaded.state.workloads != by_name[1]
        answer = decided(fresh, request)
        assert decided(store, request) == answer
        evicted += b'"victims":[{' in answer
    assert moved > 20, "the order was never another"
    assert evicted > 20, "nobody was ever evicted"


COURSES = Path(__file__).parents[1] / "unit" / "following" / "courses.jsonl.gz"
LATE_SECONDS = 1.5


def streams(engine: EngineName) -> list[tuple[list[Json], Settings | None]]:
    """What API servers said of clusters in which somebody is evicted, as it was written."""
    if engine != "kueue":
        return [(course(engine).lines, None)]
    vectors = [json.loads(line) for line in gzip.decompress(COURSES.read_bytes()).splitlines()[::12]]
    settings = [msgspec.convert(one["request"]["configuration"], Configuration).settings for one in vectors]
    return [(Course(one).stream.lines, of) for one, of in zip(vectors, settings, strict=True)]


def arrived(lines: list[Json], draw: random.Random, most: float = LATE_SECONDS) -> list[Json]:
    """Each kind is heard by itself, now at once and now late: an Event before its pod or long after that is gone."""
    lag: dict[str, datetime] = {}
    found: list[tuple[datetime, int, Json]] = []
    for number, line in enumerate(copy.deepcopy(lines)):
        kind, listed = line["kind"], line["type"] in ("ITEM", "LISTED")
        late = 0.0 if listed else draw.choice((0.0, draw.random() * most))
        at = datetime.fromisoformat(line["at"]) + timedelta(seconds=late)
        lag[kind] = at = max(at, lag.get(kind, at))
        found.append((at, number, {**line, "at": at.isoformat()}))
    return [line for *_, line in sorted(found, key=lambda one: one[:2])]


def disturbed(lines: list[Json], draw: random.Random) -> list[Json]:
    """Now and then a kind is bookmarked, breaks off, is told again from an older version, or, its history gone, is
    listed anew."""
    out: list[Json] = []
    there: dict[str, dict[tuple[str, str], Json]] = {}
    told: dict[str, list[Json]] = {}
    for line in lines:
        out.append(line)
        of = there.setdefault(line["kind"], {})
        if line["type"] in ("ITEM", "ADDED", "MODIFIED", "DELETED"):
            metadata = line["object"]["metadata"]
            key = metadata.get("namespace", ""), metadata["name"]
            of[key] = line["object"]
            if line["type"] == "DELETED":
                del of[key]
            told.setdefault(line["kind"], []).append(line)
        if line["type"] == "ITEM" or draw.random() < 0.5:
            continue
        kind = draw.choice(sorted(there))
        versions = (one["object"]["metadata"].get("resourceVersion") for one in told.get(kind, ()))
        version = str(max((int(number) for number in versions if number), default=10))
        base = {"at": line["at"], "kind": kind}
        broken = {**base, "type": "BROKEN", "error": "too old resource version"}
        bookmark = {**base, "type": "BOOKMARK", "object": {"kind": kind, "metadata": {"resourceVersion": version}}}
        items = [{**base, "type": "ITEM", "object": item} for item in there[kind].values()]
        listed = {**base, "type": "LISTED", "count": len(items), "resource_version": version, "api_version": "v1"}
        again = [
            {**one, "at": line["at"], "type": one["type"].replace("ITEM", "ADDED")}
            for one in told.get(kind, ())[-draw.randint(1, 3) :]
        ]
        out += draw.choice(([bookmark], [broken], again, [broken, *items, listed]))
    return copy.deepcopy(out)


def said(engine: EngineName, lines: list[Json], settings: Settings | None) -> list[Any]:
    """Of each cycle for whom it was, whom it evicted and why, and whether Arbiter agrees."""
    judged = Replay(engine).judge(lambda: iter(copy.deepcopy(lines)), settings)
    told = ((one.report.ask, one.outcome.removesuffix("_earlier"), one.report.victims) for one in judged)
    return sorted((ask, outcome, sorted(map(repr, victims))) for ask, outcome, victims in told)


@pytest.mark.parametrize("engine", ["kueue", "kai", "yunikorn", "kube-scheduler"])
def test_in_whatever_order_kinds_are_heard_the_same_is_said_of_evictions(engine: EngineName) -> None:
    draw, others = random.Random(3), 0
    for lines, settings in streams(engine):
        wanted = said(engine, lines, settings)
        assert wanted, "nobody was evicted"
        for _ in range(2 if engine == "kueue" else 30):
            heard = disturbed(arrived(lines, draw), draw)
            others += [one["object"] for one in heard if "object" in one] != [
                one["object"] for one in lines if "object" in one
            ]
            assert said(engine, heard, settings) == wanted
    assert others > 3, "the order was never another"


SPACES, QUEUES, LOCAL = ("default", "ml"), ("q", "r"), ("l", "m")
POLICIES = ("None", "None", "Hold", "HoldAndDrain")


def cluster_queue(draw: random.Random) -> Json:
    made = kueue.cluster_queue(draw.choice(QUEUES), draw.randint(1, 9), draw.choice((None, "c")))
    made["spec"]["namespaceSelector"] = draw.choice(({}, {}, {"matchLabels": {"team": "a"}}, None))
    made["spec"]["stopPolicy"] = draw.choice(POLICIES)
    made["spec"]["admissionChecks"] = draw.choice(([], ["ready"]))
    if draw.random() < 0.2:
        made["status"] = {"conditions": [condition(draw, "Active", "CheckNotFoundOrInactive")]}
    return made


def local_queue(draw: random.Random) -> Json:
    made = kueue.local_queue(draw.choice(LOCAL), draw.choice(QUEUES))
    made["spec"]["stopPolicy"] = draw.choice(POLICIES)
    return in_some_space(made, draw)


def workload(draw: random.Random) -> Json:
    admitted, asked = draw.choice((None, *QUEUES)), draw.randint(1, 4)
    made = kueue.workload(f"w{draw.randrange(5)}", draw.choice(LOCAL), asked, admitted=admitted)
    (pods,) = made["spec"]["podSets"]
    pods["count"] = draw.randint(1, 4)
    if draw.random() < 0.3:
        pods["minCount"] = 1
    if draw.random() < 0.3:
        pods["template"]["spec"]["runtimeClassName"] = "vm"
    made["spec"]["active"] = draw.random() < 0.8
    if draw.random() < 0.3:
        del made["spec"]["priority"]
        made["spec"]["priorityClassRef"] = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}
    status = made.setdefault("status", {})
    if admitted is not None:
        (assigned,) = status["admission"]["podSetAssignments"]
        assigned |= {"count": pods["count"], "resourceUsage": {"cpu": asked * pods["count"]}}
    if draw.random() < 0.3:
        status["reclaimablePods"] = [{"name": "main", "count": draw.randint(1, pods["count"])}]
    if draw.random() < 0.2:
        status["requeueState"] = {"count": 1, "requeueAt": "2026-11-22T23:00:00Z"}
    if draw.random() < 0.2:
        status["admissionChecks"] = [{"name": "ready", "state": draw.choice(("Ready", "Retry", "Rejected", "Pending"))}]
    if draw.random() < 0.5:
        of = (("Requeued", "Deactivated"), ("Evicted", "PodsReadyTimeout"), ("Evicted", "Preempted"), ("Finished", "x"))
        status.setdefault("conditions", []).append(condition(draw, *draw.choice(of)))
    return in_some_space(made, draw)


def condition(draw: random.Random, of: str, reason: str) -> Json:
    since = f"2026-11-22T09:00:{draw.randrange(60):02}Z"
    word = draw.choice(("True", "False"))
    return {"type": of, "status": word, "reason": reason, "message": "said", "lastTransitionTime": since}


def in_some_space(made: Json, draw: random.Random) -> Json:
    made["metadata"]["namespace"] = draw.choice(SPACES)
    return made


def around(draw: random.Random) -> Json:
    """What stands beside the queues and bears on all work."""
    amount, space = str(draw.randint(1, 3)), draw.choice(SPACES)
    container = {"type": "Container", "defaultRequest": {"memory": amount}, "max": {"cpu": amount}}
    outputs = {"input": "cpu", "strategy": "Retain", "outputs": {"credit": amount}}
    manager = json.dumps({"resources": {"transformations": [outputs]}})
    active = condition(draw, "Active", "x")
    stated: tuple[tuple[str, str, Json, Json], ...] = (
        ("v1", "Namespace", {"name": space, "labels": {"team": draw.choice("ab")}}, {}),
        ("v1", "LimitRange", {"name": "of", "namespace": space}, {"spec": {"limits": [container]}}),
        ("node.k8s.io/v1", "RuntimeClass", {"name": "vm"}, {"overhead": {"podFixed": {"cpu": amount}}}),
        (kueue.GROUP, "AdmissionCheck", {"name": "ready"}, {"status": {"conditions": [active]}}),
        (kueue.GROUP, "Cohort", {"name": "c"}, {"spec": {"parent": draw.choice(("top", ""))}}),
        (kueue.GROUP, "WorkloadPriorityClass", {"name": "high"}, {"value": int(amount)}),
        ("v1", "ConfigMap", {"name": "kueue-manager-config", "namespace": "kueue-system"},
         {"data": {"controller_manager_config.yaml": manager}}),
    )  # fmt: skip
    version, kind, metadata, rest = draw.choice(stated)
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def written(draw: random.Random) -> list[Json]:
    """What an API server beside Kueue says while everything changes on which it hangs who is considered and what
    counts: objects are made, in any order, changed, and deleted."""
    made, there = Stream(), dict[tuple[str, str, str], Json]()
    for kind in FOLLOWED["kueue"]:
        made.relist(kind.name)
    made.put(kueue.flavor())
    for _ in range(draw.randint(20, 40)):
        made.wait(draw.random())
        item = draw.choice((cluster_queue, local_queue, workload, workload, workload, around))(draw)
        key = item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]
        if key in there and draw.random() < 0.3:
            made.remove(there.pop(key))
        else:
            there[key] = made.put(item)
    return made.lines


def known(lines: list[Json], draw: random.Random) -> Translated:
    """What a cluster is in the end, for who has looked at it meanwhile, now and then."""
    replay, translator = Replay("kueue"), Translator("kueue")
    for line in copy.deepcopy(lines):
        replay.hear(line)
        if draw.random() < 0.3 and (view := replay.mirror.view()) is not None:
            translator.translate(view)
    view = replay.mirror.view()
    assert view is not None
    return translator.translate(view)


@examples(40, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
@example(164)
@example(16)
@example(215)
def test_in_whatever_order_kinds_are_heard_a_cluster_of_kueue_is_the_same_in_the_end(seed: int) -> None:
    draw = random.Random(seed)
    lines = written(draw)
    in_order, heard = known(lines, draw), known(disturbed(arrived(lines, draw, 20.0), draw), draw)
    for part in ("configuration", "nodes", "workloads", "asks", "local_queues", "priority_classes",
                 "workload_priority_classes", "of_state"):  # fmt: skip
        assert getattr(heard, part) == getattr(in_order, part), part
    loaded = solve.load(solve.configure(heard.configuration), heard.state())  # nothing that is written makes it refused
    solve.decide(loaded, Question(micros(datetime.now(UTC)), list(heard.asks.values()), "cycle"))
