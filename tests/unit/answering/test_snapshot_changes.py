"""Operations on kept snapshots as bytes, what the log is given of them, and decisions made again: in one process."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.answering.operations import Answerer, Inquiry, Operation, Reply
from app.answering.snapshot_store import SnapshotStore
from app.answering.sources import Compiled, Known, Recorder, Used, configuration_of, put_together
from app.base.errors import BadInput, Conflict
from app.solver import solve
from app.solver.delta import StateDigest
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.solver.model.state import State
from app.solver.solve import Loaded
from tests.support.sources import Documents

Json = dict[str, Any]
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
PREEMPTION = {"within_cluster_queue": "LowerPriority"}
CONFIGURATION: Json = {
    "engine": "kueue",
    "queues": [{"name": "q", "quota": {"cpu": {"guaranteed": 4}}, "kueue": {"preemption": PREEMPTION}}],
}


def work(name: str, cpu: int = 4, priority: int = 0) -> Json:
    task = {"name": "m", "requests": {"cpu": cpu}, "flavors": {"cpu": "default"}}
    return {"id": name, "queue": "q", "priority": priority, "tasks": [task]}


class Clock:
    now = 10.0

    def __call__(self) -> float:
        return self.now


class Process:
    """One process that answers, with a snapshot ``live`` of one running workload and one ask."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.answerer = Answerer(Compiled(Documents()), SnapshotStore(budget=1 << 30, idle=1000, clock=self.clock))
        self.put("live")

    def put(self, name: str, **more: Any) -> Json:
        state = {"nodes": [{"name": "n", "capacity": {}}], "workloads": [work("w")]}
        asks = [work("high", priority=9), work("low", cpu=1)]
        return self.run(Operation.SNAPSHOT_PUT, name, {
            "configuration": CONFIGURATION, "state": state, "asks": asks, **more,
        })  # fmt: skip

    def run(self, operation: Operation, name: str = "live", body: Json | None = None) -> Json:
        return json.loads(self.answerer.run(Inquiry(operation, NOW, name), json.dumps(body or {}).encode()).body)

    def decided(self, body: Json, known: Known | None = None, pinned: Used | None = None) -> Reply:
        asked = Inquiry(Operation.DECISION, NOW, known=known, pinned=pinned)
        return self.answerer.run(asked, json.dumps(body).encode())


@pytest.fixture
def process() -> Process:
    return Process()


def test_what_a_snapshot_is_said_to_be(process: Process) -> None:
    process.clock.now = 12.34567
    status = process.run(Operation.SNAPSHOT_GET)
    digest = status.pop("digest")
    assert status.pop("configuration")["digest"]
    assert status == {
        "name": "live", "generation": 1, "engine": "kueue", "age_seconds": 2.346, "idle_seconds": 0.0,
        "counts": {"nodes": 1, "workloads": 1, "tasks": 1, "reservations": 0, "asks": 2}, "bytes": status["bytes"],
    }  # fmt: skip
    assert process.decided({"state": {"snapshot": "live"}, "asks": []}).answered().facts.state_digest == digest
    process.put("another")
    process.clock.now = 13
    listed = process.run(Operation.SNAPSHOT_LIST, "")["items"]
    assert [(one["name"], one["age_seconds"], one["idle_seconds"], "digest" in one) for one in listed] == [
        ("another", 0.654, 0.0, False), ("live", 3.0, 0.0, False),
    ]  # fmt: skip
    again = process.put("live")
    assert (again["generation"], again["age_seconds"], "digest" in again) == (2, 0.0, False)


def test_a_snapshot_is_read_back_as_it_could_be_put_again(process: Process) -> None:
    body = process.answerer.run(Inquiry(Operation.SNAPSHOT_STATE, NOW, "live"), b"").body
    generation, _, state = body.partition(b"\n")
    assert (generation, [one["id"] for one in json.loads(state)["workloads"]]) == (b"1", ["w"])
    asks = process.run(Operation.SNAPSHOT_ASKS)
    assert (asks["generation"], [one["id"] for one in asks["items"]]) == (1, ["high", "low"])


def applied(process: Process, decision: Json, **more: Any) -> Json:
    return process.run(Operation.SNAPSHOT_APPLY, body={"decision": decision, **more})


def carried(process: Process, mode: str, *asks: Json) -> Json:
    body = {"state": {"snapshot": "live"}, "asks": list(asks), "mode": mode, "now": "2026-03-02T12:00:00Z"}
    answer = json.loads(process.decided(body).body)
    return {"asks": list(asks), "decisions": answer["decisions"], "plan": answer["plan"]}


def test_carrying_out_a_decision_starts_what_waited_and_ends_its_waiting(process: Process) -> None:
    decision = carried(process, "cycle", work("high", priority=9))
    status = applied(process, decision)
    assert (status["generation"], status["counts"]["asks"]) == (2, 2), "its victims go first"
    decision = carried(process, "cycle", work("high", priority=9))
    status = applied(process, decision, generation=2, now="2026-01-01T00:00:00Z")
    assert (status["generation"], status["counts"]["asks"], status["counts"]["workloads"]) == (3, 1, 1)
    assert [one["id"] for one in process.run(Operation.SNAPSHOT_ASKS)["items"]] == ["low"]
    state = json.loads(
        process.answerer.run(Inquiry(Operation.SNAPSHOT_STATE, NOW, "live"), b"").body.partition(b"\n")[2]
    )
    assert [(one["id"], one["started_at"][:10]) for one in state["workloads"]] == [("high", "2026-01-01")]


def problems(process: Process, decision: Any, **more: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as refused:
        applied(process, decision, **more)
    return [(one.pointer, one.detail.partition(":")[0]) for one in refused.value.problems]


def test_which_of_several_decisions_is_carried_out(process: Process) -> None:
    several = [work("high", priority=9), work("higher", priority=8)]
    alone = carried(process, "independent", *several)
    assert problems(process, alone) == [("/ask", "missing")]
    assert problems(process, alone, ask="nobody") == [("/ask", "no ask 'nobody' in the decision")]
    together = carried(process, "cycle", *several)
    assert problems(process, together, ask="high") == [("/ask", "the asks were decided together, as one cycle")]
    single = carried(process, "cycle", several[0])
    assert applied(process, single, ask="high")["generation"] == 2
    assert applied(process, carried(process, "independent", work("higher", cpu=1, priority=8)))["generation"] == 3
    process.put("live")
    process.put("live")
    with pytest.raises(Conflict):
        applied(process, alone, ask="higher", generation=1)
    assert applied(process, carried(process, "independent", *several), ask="higher")["counts"]["workloads"] == 0
    with pytest.raises(BadInput) as refused:
        applied(process, "some-id")  # pyright: ignore[reportArgumentType]
    assert [(one.pointer, one.detail) for one in refused.value.problems] == [
        ("/decision", "no decision log here: give the answer and its asks")
    ]


def test_the_log_is_given_what_it_lacks_and_what_is_gone_is_forgotten(process: Process) -> None:
    body = {"state": {"snapshot": "live"}, "asks": []}
    assert process.decided(body).documents == [], "it is to be given nothing"
    state, configuration = process.decided(body, Known()).documents
    assert (state.base, configuration.base) == (None, None)
    assert configuration_of(configuration.body) == msgspec.convert(CONFIGURATION, Configuration)
    known = Known(state.digest, configuration.digest)
    assert process.decided(body, known).documents == []
    written = body | {"configuration": CONFIGURATION}
    assert [one.digest for one in process.decided(written, Known()).documents] == [state.digest], "it has that itself"
    process.run(Operation.SNAPSHOT_DELTA, body={"generation": 1, "workloads": {"remove": ["w"]}})
    (change,) = process.decided(body, known).documents
    assert change.base == state.digest
    assert StateDigest(put_together([state.body, change.body])).hexdigest() == change.digest
    assert process.answerer.run(Inquiry(Operation.SNAPSHOT_DELETE, NOW, "live"), b"").body == b""
    process.put("live")
    process.run(Operation.SNAPSHOT_DELTA, body={"generation": 1, "workloads": {"remove": ["w"]}})
    (whole,) = process.decided(body, known).documents
    assert (whole.digest, whole.base) == (change.digest, None), "of the state that was deleted nothing is left"


def loaded(*names: str, stored: bool = False) -> Loaded:
    configured = solve.configure(msgspec.convert(CONFIGURATION, Configuration), name="main" if stored else None)
    state = msgspec.convert({"workloads": [work(name, cpu=1) for name in names]}, State)
    return solve.load(configured, state, snapshot="live")


def test_changes_are_told_against_one_of_the_last_four_versions() -> None:
    versions = [loaded(*map(str, range(i))) for i in range(6)]
    digests = [one.used.digest for one in versions]

    def given() -> Recorder:
        recorder = Recorder()
        for one in versions[:5]:
            recorder.lacking(one, Known(), own=False)
        return recorder

    told = [given().lacking(versions[5], Known(digest), own=False)[0].base for digest in digests[:5]]
    assert told == [None, *digests[1:5]]
    recorder = given()
    assert recorder.lacking(loaded("x", stored=True), Known(), own=True)[1:] == [], "a stored one is found by its name"
    recorder.forget(["another"])
    assert recorder.lacking(versions[5], Known(digests[4]), own=False)[0].base is None


def test_what_is_decided_again_is_called_as_it_was(process: Process) -> None:
    body = {"configuration": CONFIGURATION, "state": {"workloads": [work("w")]}, "asks": [work("high", priority=9)]}
    plain = json.loads(process.decided(body).body)
    used = msgspec.convert({"configuration": plain["configuration"], "state": plain["state"]}, Used)
    assert json.loads(process.decided(body, pinned=used).body) == plain
    live = msgspec.structs.replace(used.state, snapshot="live", generation=5, resource_versions={"pods": "7"})
    then = msgspec.structs.replace(used, state=live)
    assert json.loads(process.decided(body, pinned=then).body)["state"] == {
        "digest": live.digest, "snapshot": "live", "generation": 5, "resource_versions": {"pods": "7"},
    }  # fmt: skip
    other = msgspec.structs.replace(then, state=msgspec.structs.replace(live, digest="another"))
    assert json.loads(process.decided(body, pinned=other).body)["state"] == plain["state"]


def test_every_other_question_is_answered_here_too(process: Process) -> None:
    state = {"state": {"snapshot": "live"}}
    assert process.run(Operation.SHARES, body=state)["queues"]["q"]["usage"] == {"cpu": 4}
    assert set(process.run(Operation.PREEMPTIBILITY, body=state)["workloads"]) == {"w"}
    assert set(process.run(Operation.EFFECTIVE_SETTINGS, body=state)["queues"]) == {"q"}
    compared = process.run(Operation.COMPARISON, body=state | {"asks": "pending", "variants": [{"name": "a"}]})
    assert [one["ask"] for one in compared["variants"][0]["answer"]["decisions"]] == ["high", "low"]
    facts = process.decided(state | {"asks": "pending"}).answered().facts
    assert [one["id"] for one in json.loads(facts.pending)] == ["high", "low"]
    assert (facts.snapshot, facts.asks) == ("live", ["high", "low"])
    with pytest.raises(InvalidInput) as refused:
        process.decided({"configuration": CONFIGURATION, "state": {}, "asks": "pending"})
    assert [one.pointer for one in refused.value.problems] == ["/asks"]
    with pytest.raises(InvalidInput) as refused:
        process.decided({"state": {}, "asks": []})
    assert [one.pointer for one in refused.value.problems] == ["/configuration"]
