"""Kept snapshots as the service offers them: wherever they live, and with logged decisions carried out."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec

from app.answering.operations import Inquiry, Operation
from app.answering.snapshots import ApplyRequest, Carried, SnapshotList
from app.base.decoding import decode
from app.base.errors import BadInput
from app.decisions.service import Decider
from app.solver.model.decision import Decision, Plan, StateUsed
from app.solver.model.problems import Problem
from app.solver.model.state import Ask
from app.workers.dispatcher import Dispatcher


class _Asked(msgspec.Struct, frozen=True):
    asks: list[Ask] = []


class _Answered(msgspec.Struct, frozen=True):
    state: StateUsed
    decisions: list[Decision]
    plan: Plan


class Snapshots:
    """Puts, deltas and applied decisions, each as the response body."""

    def __init__(self, dispatcher: Dispatcher, decider: Decider) -> None:
        self._dispatcher = dispatcher
        self._decider = decider

    def put(self, name: str, body: bytes) -> bytes:
        """Raises InvalidInput, NotFound for an unknown configuration."""
        return self._run(Operation.SNAPSHOT_PUT, name, body)

    def delta(self, name: str, body: bytes) -> bytes:
        """Raises InvalidInput, NotFound, Conflict; then nothing has changed."""
        return self._run(Operation.SNAPSHOT_DELTA, name, body)

    def apply(self, name: str, body: bytes) -> bytes:
        """Carry out an answer, given in full or by its id in the log. Raises InvalidInput, NotFound, Conflict."""
        request = decode(body, ApplyRequest)
        if isinstance(request.decision, str):
            body = msgspec.json.encode(self._expanded(name, request, request.decision))
        return self._run(Operation.SNAPSHOT_APPLY, name, body)

    def get(self, name: str) -> bytes:
        """Raises NotFound."""
        return self._run(Operation.SNAPSHOT_GET, name)

    def state(self, name: str) -> tuple[int, bytes]:
        """The generation, and the whole state as JSON. Raises NotFound."""
        generation, _, state = self._run(Operation.SNAPSHOT_STATE, name).partition(b"\n")
        return int(generation), state

    def asks(self, name: str) -> bytes:
        """What waits beside the state. Raises NotFound."""
        return self._run(Operation.SNAPSHOT_ASKS, name)

    def delete(self, name: str) -> None:
        """Raises NotFound."""
        self._run(Operation.SNAPSHOT_DELETE, name)

    def listing(self) -> bytes:
        """All of them, in order of name."""
        replies = self._dispatcher.everywhere(Inquiry(Operation.SNAPSHOT_LIST, datetime.now(UTC)))
        lists = [msgspec.json.decode(reply.body, type=SnapshotList) for reply in replies]
        kept = sorted((snapshot for found in lists for snapshot in found.items), key=lambda snapshot: snapshot.name)
        return msgspec.json.encode(SnapshotList(items=kept))

    def _expanded(self, name: str, request: ApplyRequest, identity: str) -> ApplyRequest:
        try:
            logged = UUID(identity)
        except ValueError:
            raise BadInput([Problem(pointer="/decision", detail=f"{identity[:64]!r} is no id of a decision")]) from None
        asked = msgspec.json.decode(self._decider.request(logged), type=_Asked)
        answered = msgspec.json.decode(self._decider.record(logged).answer, type=_Answered)
        if answered.state.snapshot != name:
            detail = f"decided on {answered.state.snapshot!r}, not on this snapshot"
            raise BadInput([Problem(pointer="/decision", detail=detail)])
        carried = Carried(asks=asked.asks, decisions=answered.decisions, plan=answered.plan)
        generation = answered.state.generation if request.generation is None else request.generation
        return ApplyRequest(decision=carried, ask=request.ask, generation=generation, now=request.now)

    def _run(self, operation: Operation, name: str, body: bytes = b"") -> bytes:
        return self._dispatcher.run(Inquiry(operation, datetime.now(UTC), name), body).body
