"""Kept snapshots as the service offers them: which operation each call is, and how logged decisions are carried out."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest

from app.auth import audit
from app.auth.tokens import Tokens
from app.base.errors import BadInput, Unavailable
from app.db.database import Database
from app.decisions import router as questions
from app.decisions import snapshots as router
from app.decisions.schemas import CARRIED
from app.decisions.service import Decider
from app.decisions.snapshots import Snapshots
from app.solver.model.problems import InvalidInput
from app.workers.dispatcher import Dispatcher
from tests.support.instead import Clock, Instead

ID = UUID(int=7)
Json = dict[str, Any]


class Solver:
    """Answers all with ``body``; ``asked``: operation, name and body of each."""

    def __init__(self, *bodies: bytes) -> None:
        self._bodies = bodies
        self.asked: list[tuple[str, str, bytes]] = []

    def _answer(self, asked: Any, body: bytes = b"") -> None:
        assert timedelta(0) <= datetime.now(UTC) - asked.now < timedelta(minutes=5)
        self.asked.append((asked.operation.value, asked.snapshot, body))

    def run(self, asked: Any, body: bytes) -> Any:
        """As a dispatcher does."""
        self._answer(asked, body)
        return SimpleNamespace(body=self._bodies[0])

    def everywhere(self, asked: Any) -> Any:
        """As a dispatcher does."""
        self._answer(asked)
        return [SimpleNamespace(body=body) for body in self._bodies]


class Log:
    """One logged decision, made on generation 4 of snapshot ``s``."""

    def request(self, identity: UUID) -> bytes:
        """Its request."""
        assert identity == ID
        return msgspec.json.encode({"asks": CARRIED["asks"], "more": 1})

    def record(self, identity: UUID) -> Any:
        """All of it."""
        assert identity == ID
        state = {"snapshot": "s", "generation": 4, "digest": "d"}
        answer = {"state": state, "decisions": CARRIED["decisions"], "plan": CARRIED["plan"], "stats": {}}
        return SimpleNamespace(answer=msgspec.json.encode(answer))


class Away:
    """A database that answers nobody: lines of the audit log are missing, and nothing else is."""

    def session(self) -> Any:
        raise Unavailable("away")


def snapshots(solver: Solver) -> Snapshots:
    return Snapshots(cast(Dispatcher, solver), cast(Decider, Log()), cast(Database, Away()))


def test_writes_leave_a_line_and_deltas_one_a_minute(database: Database, clock: Clock) -> None:
    clock.now = 100.0
    clock.drives(audit)
    made = Snapshots(cast(Dispatcher, Solver(b"{}")), cast(Decider, Log()), database)
    made.put("s", b"1")
    for _ in range(5):
        made.delta("s", b"2")
    clock.now += 60
    made.delta("s", b"2")
    made.delete("s")
    lines = [
        (one.action, one.target, one.detail) for one in reversed(Tokens(database).audit_lines(None, 9, None, None))
    ]
    assert lines == [
        ("snapshot.put", "s", None), ("snapshot.change", "s", None), ("snapshot.change", "s", {"unwritten": 4}),
        ("snapshot.delete", "s", None),
    ]  # fmt: skip


def test_each_call_is_an_operation_on_the_snapshot() -> None:
    solver = Solver(b'12\n{"a":"\n"}')
    made = snapshots(solver)
    assert made.put("s", b"1") == made.delta("s", b"2") == made.get("s") == made.asks("s") == b'12\n{"a":"\n"}'
    assert made.state("s") == (12, b'{"a":"\n"}')
    made.delete("s")
    assert solver.asked == [
        ("snapshot-put", "s", b"1"), ("snapshot-delta", "s", b"2"), ("snapshot-get", "s", b""),
        ("snapshot-asks", "s", b""), ("snapshot-state", "s", b""), ("snapshot-delete", "s", b""),
    ]  # fmt: skip


def status(name: str) -> Json:
    return {
        "name": name, "generation": 1, "engine": "kai", "configuration": {"digest": "d"}, "age_seconds": 1,
        "counts": {"nodes": 0, "workloads": 0, "tasks": 0, "reservations": 0}, "idle_seconds": 1, "bytes": 1,
    }  # fmt: skip


def test_a_list_has_those_of_all_processes_by_name() -> None:
    bodies = [msgspec.json.encode({"items": [status(name) for name in names]}) for names in ("ca", "", "b")]
    solver = Solver(*bodies)
    found = msgspec.json.decode(snapshots(solver).listing())
    assert [one["name"] for one in found["items"]] == ["a", "b", "c"]
    assert solver.asked == [("snapshot-list", "", b"")]


def test_a_logged_decision_is_carried_out_as_if_it_had_been_sent() -> None:
    solver = Solver(b"{}")
    made = snapshots(solver)
    now = "2026-11-22T12:00:00Z"
    for sent, generation in (({}, 4), ({"generation": 0}, 0), ({"generation": 9, "ask": "a", "now": now}, 9)):
        made.apply("s", msgspec.json.encode({"decision": str(ID), **sent}))
        operation, name, body = solver.asked[-1]
        assert (operation, name) == ("snapshot-apply", "s")
        found = msgspec.json.decode(body)
        assert found["generation"] == generation
        assert (found.get("ask"), found.get("now")) == (sent.get("ask"), sent.get("now"))
        carried = found["decision"]
        assert [one["id"] for one in carried["asks"]] == [one["id"] for one in CARRIED["asks"]]
        assert [one["ask"] for one in carried["decisions"]] == [one["ask"] for one in CARRIED["decisions"]]
        assert carried["plan"]["evictions"] == CARRIED["plan"]["evictions"]
    whole = msgspec.json.encode({"decision": CARRIED})
    made.apply("s", whole)
    assert solver.asked[-1] == ("snapshot-apply", "s", whole), "byte for byte"


def test_what_can_not_be_carried_out_names_its_field() -> None:
    made = snapshots(Solver(b"{}"))
    for name, decision, detail in (
        ("other", str(ID), "decided on 's', not on this snapshot"),
        ("s", "x" * 70, f"{'x' * 64!r} is no id of a decision"),
    ):  # fmt: skip
        with pytest.raises(BadInput) as caught:
            made.apply(name, msgspec.json.encode({"decision": decision}))
        assert [(one.pointer, one.detail) for one in caught.value.problems] == [("/decision", detail)]
    with pytest.raises(InvalidInput):
        made.apply("s", b'{"decision": 5}')


class Offload:
    """Carries everything out at once; ``classes``: of what."""

    classes: list[str] = []

    async def run(self, of: str, act: Any, *given: Any) -> Any:
        """As the real one does."""
        self.classes.append(of)
        return act(*given)


def test_every_operation_on_snapshots_has_their_places(instead: Instead) -> None:
    offload = Offload()
    instead(router, service=lambda request, kind: offload)
    made, request = snapshots(Solver(b"3\n{}")), cast(Any, None)
    calls = [
        router.put_snapshot("s", request, b"{}", made), router.get_snapshot("s", request, made),
        router.get_snapshot_state("s", request, made), router.list_snapshot_asks("s", request, made),
        router.delete_snapshot("s", request, made), router.change_snapshot("s", request, b"{}", made),
        router.apply_decision("s", request, msgspec.json.encode({"decision": CARRIED}), made),
    ]  # fmt: skip
    answers = [asyncio.run(call) for call in calls]
    assert offload.classes == ["snapshot"] * 7
    assert [(one.status_code, bytes(one.body)) for one in answers] == [
        (200, b"3\n{}"), (200, b"3\n{}"), (200, b"{}"), (200, b"3\n{}"), (204, b""), (200, b"3\n{}"), (200, b"3\n{}"),
    ]  # fmt: skip
    assert answers[2].headers["etag"] == '"3"'
    listing = asyncio.run(router.list_snapshots(request, snapshots(Solver(b'{"items":[]}'))))
    assert (listing.status_code, listing.body) == (200, b'{"items":[]}')


def test_plans_and_comparisons_are_asked_for_as_such(instead: Instead) -> None:
    asked: list[Any] = []

    class Deciding:
        async def answer_question(self, operation: Any, body: bytes) -> bytes:
            asked.append((operation.value, body))
            return b"{}"

    instead(questions, service=lambda request, kind: Deciding())
    for act in (questions.plan, questions.compare):
        answer = asyncio.run(act(cast(Any, None), b"x"))
        assert (answer.status_code, answer.body, answer.media_type) == (200, b"{}", "application/json")
    assert asked == [("plan", b"x"), ("comparison", b"x")]
