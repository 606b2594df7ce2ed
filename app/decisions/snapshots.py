"""``/v1/snapshots``, kept snapshots wherever they live: send a state once, then only what changed.

Logged decisions are carried out on them.
"""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from fastapi import APIRouter, Path, Request, Response

from app.answering.operations import Inquiry, Operation
from app.answering.snapshots import (
    ApplyRequest,
    Carried,
    PendingAsks,
    SnapshotList,
    SnapshotRequest,
    SnapshotStatus,
    Sought,
    There,
)
from app.auth import audit
from app.base.decoding import decode
from app.base.errors import BadInput, Unavailable
from app.base.identifiers import NAME
from app.db.database import Database
from app.decisions.schemas import CARRIED, SITUATION
from app.decisions.service import Decider
from app.http.body import Body
from app.http.openapi import operation
from app.http.responses import json_response
from app.http.routing import provided, service
from app.search.service import Hit
from app.solver.model.decision import Decision, Plan, StateUsed
from app.solver.model.problems import Problem, pointing
from app.solver.model.state import Ask, Delta, State
from app.workers.dispatcher import Dispatcher, Offload

_DECISION = "/decision"


class _Asked(msgspec.Struct, frozen=True):
    asks: list[Ask] = []


class _Answered(msgspec.Struct, frozen=True):
    state: StateUsed
    decisions: list[Decision]
    plan: Plan


class Snapshots:
    """Puts, deltas and applied decisions, each as the response body."""

    def __init__(self, dispatcher: Dispatcher, decider: Decider, database: Database) -> None:
        self._dispatcher = dispatcher
        self._decider = decider
        self._database = database
        self._changes = audit.Frequent()

    def put(self, name: str, body: bytes) -> bytes:
        """Raises InvalidInput, NotFound for an unknown configuration."""
        answer = self._run(Operation.SNAPSHOT_PUT, name, body)
        self._record("snapshot.put", name)
        return answer

    def delta(self, name: str, body: bytes) -> bytes:
        """Raises InvalidInput, NotFound, Conflict; then nothing has changed."""
        answer = self._run(Operation.SNAPSHOT_DELTA, name, body)
        self._changed(name, "snapshot.change")
        return answer

    def apply(self, name: str, body: bytes) -> bytes:
        """Carry out an answer, given in full or by its id in the log. Raises InvalidInput, NotFound, Conflict."""
        request = decode(body, ApplyRequest)
        if isinstance(request.decision, str):
            body = msgspec.json.encode(self._expanded(name, request, request.decision))
            with pointing(lambda where: _DECISION if where.startswith(_DECISION) else where):  # an id has no parts
                answer = self._run(Operation.SNAPSHOT_APPLY, name, body)
        else:
            answer = self._run(Operation.SNAPSHOT_APPLY, name, body)
        self._changed(name, "snapshot.apply")
        return answer

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
        self._record("snapshot.delete", name)

    def listing(self) -> bytes:
        """All of them, in order of name."""
        replies = self._dispatcher.everywhere(Inquiry(Operation.SNAPSHOT_LIST, datetime.now(UTC)))
        lists = [msgspec.json.decode(reply.body, type=SnapshotList) for reply in replies]
        snapshots = sorted((snapshot for page in lists for snapshot in page.items), key=lambda snapshot: snapshot.name)
        return msgspec.json.encode(SnapshotList(items=snapshots))

    def find(self, part: str, limit: int) -> list[Hit]:
        """See ``app.search.service.Source``."""
        body = msgspec.json.encode(Sought(part, limit))
        replies = self._dispatcher.everywhere(Inquiry(Operation.SNAPSHOT_FIND, datetime.now(UTC)), body)
        matches = (there for reply in replies for there in msgspec.json.decode(reply.body, type=list[There]))
        return [
            Hit(
                kind=match.kind, name=match.name, snapshot=None if match.kind == "snapshot" else match.snapshot,
                configuration=match.configuration,
            )
            for match in matches
        ]  # fmt: skip

    def _expanded(self, name: str, request: ApplyRequest, identity: str) -> ApplyRequest:
        try:
            logged = UUID(identity)
        except ValueError:
            raise BadInput([Problem(pointer=_DECISION, detail=f"{identity[:64]!r} is no id of a decision")]) from None
        asked = msgspec.json.decode(self._decider.request(logged), type=_Asked)
        answered = msgspec.json.decode(self._decider.record(logged).answer, type=_Answered)
        if answered.state.snapshot != name:
            detail = f"decided on {answered.state.snapshot!r}, not on this snapshot"
            raise BadInput([Problem(pointer=_DECISION, detail=detail)])
        carried = Carried(asks=asked.asks, decisions=answered.decisions, plan=answered.plan)
        generation = answered.state.generation if request.generation is None else request.generation
        return ApplyRequest(decision=carried, ask=request.ask, generation=generation, now=request.now)

    def _changed(self, name: str, action: str) -> None:
        if (detail := self._changes.add(action, name)) is not None:
            self._record(action, name, detail or None)

    def _record(self, action: str, name: str, detail: dict[str, Any] | None = None) -> None:
        """Snapshots are kept in memory, and go on without the database: then the line is missing."""
        with suppress(Unavailable), self._database.session() as session:
            audit.record(session, action, name, detail)

    def _run(self, operation: Operation, name: str, body: bytes = b"") -> bytes:
        return self._dispatcher.run(Inquiry(operation, datetime.now(UTC), name), body).body


DOCUMENTED = (SnapshotRequest, SnapshotStatus, SnapshotList, PendingAsks, Delta, ApplyRequest)
_DELTA = {
    "generation": 1,
    "workloads": {"add": [{"id": "batch-1", "queue": "research", "tasks": [{"name": "step", "requests": {"cpu": 1}}]}]},
}
_BUSY = (404, 409, 429, 503, 504)

router = APIRouter(prefix="/v1/snapshots", tags=["snapshots"])


Service = Annotated[Snapshots, provided(Snapshots)]
Name = Annotated[str, Path(pattern=NAME, description="Letters, digits, `.`, `_` and `-`", examples=["cluster-1"])]


@router.get(
    "",
    operation_id="list_snapshots",
    summary="What is kept",
    **operation(needs="read", responses={200: SnapshotList}, errors=(429, 503, 504)),
)
async def list_snapshots(request: Request, snapshots: Service) -> Response:
    """Every kept snapshot with its generation, counts, age and estimated memory."""
    return json_response(await service(request, Offload).run("snapshot", snapshots.listing))


@router.put(
    "/{name}",
    operation_id="put_snapshot",
    summary="Keep a state",
    **operation(
        needs="decide",
        followers=True,
        request=SnapshotRequest,
        responses={200: SnapshotStatus},
        errors=_BUSY,
        example={k: SITUATION[k] for k in ("engine", "configuration", "state") if k in SITUATION},
    ),
)
async def put_snapshot(name: Name, request: Request, body: Body, snapshots: Service) -> Response:
    """Keep a state compiled for a configuration; what had the name is replaced, and its generation counts on."""
    return json_response(await service(request, Offload).run("snapshot", snapshots.put, name, body))


@router.get(
    "/{name}",
    operation_id="get_snapshot",
    summary="One kept state's generation, digest and counts",
    **operation(needs="read", followers=True, responses={200: SnapshotStatus}, errors=_BUSY),
)
async def get_snapshot(name: Name, request: Request, snapshots: Service) -> Response:
    """404 with code `snapshot_lost` means: put it again."""
    return json_response(await service(request, Offload).run("snapshot", snapshots.get, name))


@router.get(
    "/{name}/state",
    operation_id="get_snapshot_state",
    summary="A kept state, whole",
    **operation(needs="read", responses={200: State}, errors=_BUSY),
)
async def get_snapshot_state(name: Name, request: Request, snapshots: Service) -> Response:
    """As it is after all deltas, ready to be put again; the `ETag` is its generation."""
    generation, state = await service(request, Offload).run("snapshot", snapshots.state, name)
    return json_response(state, headers={"ETag": f'"{generation}"'})


@router.get(
    "/{name}/asks",
    operation_id="list_snapshot_asks",
    summary="What waits beside a kept state",
    **operation(needs="read", responses={200: PendingAsks}, errors=_BUSY),
)
async def list_snapshot_asks(name: Name, request: Request, snapshots: Service) -> Response:
    """The asks that a decision with `"asks": "pending"` decides."""
    return json_response(await service(request, Offload).run("snapshot", snapshots.asks, name))


@router.delete(
    "/{name}",
    operation_id="delete_snapshot",
    summary="Keep it no longer",
    **operation(needs="decide", responses={204: None}, errors=_BUSY),
)
async def delete_snapshot(name: Name, request: Request, snapshots: Service) -> Response:
    """Its memory is free at once."""
    await service(request, Offload).run("snapshot", snapshots.delete, name)
    return Response(status_code=204)


@router.post(
    "/{name}/deltas",
    operation_id="change_snapshot",
    summary="What changed since a generation",
    **operation(
        needs="decide", followers=True, request=Delta, responses={200: SnapshotStatus}, errors=_BUSY, example=_DELTA
    ),
)
async def change_snapshot(name: Name, request: Request, body: Body, snapshots: Service) -> Response:
    """Nodes, workloads, tasks and reservations by id; all of it or nothing. A stale generation is 409."""
    return json_response(await service(request, Offload).run("snapshot", snapshots.delta, name, body))


@router.post(
    "/{name}/apply",
    operation_id="apply_decision",
    summary="Carry a decision out",
    **operation(
        needs="decide",
        request=ApplyRequest,
        responses={200: SnapshotStatus},
        errors=_BUSY,
        example={"decision": CARRIED},
    ),
)
async def apply_decision(name: Name, request: Request, body: Body, snapshots: Service) -> Response:
    """Evict, place and reserve in the kept state what the decision said. Refused (409) once the state has moved on."""
    return json_response(await service(request, Offload).run("snapshot", snapshots.apply, name, body))
