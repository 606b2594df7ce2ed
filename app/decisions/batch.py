"""``POST /v1/decisions:batch``: one decision request a line in, one answer a line out, both streamed, in order."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Annotated

import msgspec
from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.base.errors import ArbiterError, TooLarge, TooManyRequests
from app.base.settings import Settings
from app.decisions.schemas import DECISION, SITUATION, DecisionAnswer
from app.decisions.service import Decider
from app.http import responses
from app.http.body import Hold, hold_of, require_lines
from app.http.openapi import NDJSON, lines, operation, shown_as
from app.http.responses import ProblemDocument
from app.http.routing import service
from app.solver.model.request import DecisionRequest

_AHEAD = 4
"""Lines that may be in the works at once; more are not even read, so memory stays bounded."""

router = APIRouter(prefix="/v1", tags=["decisions"])


class BatchAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line: ``line`` counts from 1; ``answer`` where ``status`` is 200, else ``problem``."""

    line: int
    """The number of the line that is answered; it counts from 1."""
    status: int
    """The status that the line would have had as a request of its own."""
    answer: Annotated[msgspec.Raw | None, shown_as(DecisionAnswer)] = None
    """The answer, where the status is 200."""
    problem: Annotated[msgspec.Raw | None, shown_as(ProblemDocument)] = None
    """What is wrong, where the status is another."""


DOCUMENTED = (BatchAnswer,)


@router.post(
    "/decisions:batch",
    operation_id="decide_batch",
    summary="Many questions, one a line",
    **operation(
        needs="decide",
        request=lines(DecisionRequest, DECISION, {**SITUATION, "asks": []}),
        responses={200: lines(BatchAnswer)},
        errors=(415,),
    ),
)
async def decide_batch(request: Request) -> Response:
    """NDJSON both ways: each line in is the body of a decision, each line out is `{line, status, answer | problem}`.

    Answers come in the order of the questions and as soon as they are there; a line that is wrong spoils no other.
    """
    require_lines(request)
    return _Duplex(_answers(request))


class _Duplex(Response):
    """Sends while the request is still being read; Starlette's own stream would read the body to see it end."""

    media_type = NDJSON

    def __init__(self, pieces: AsyncGenerator[bytes]) -> None:
        self.status_code = 200
        self.background = None
        self._pieces = pieces
        self.init_headers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._pieces) as pieces:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _answers(request: Request) -> AsyncGenerator[bytes]:
    begun: asyncio.Queue[asyncio.Task[BatchAnswer] | None] = asyncio.Queue(_AHEAD)
    working = set[asyncio.Task[BatchAnswer]]()

    async def read() -> None:
        number = 0
        with suppress(ClientDisconnect):
            async for line in _lines(request):
                number += 1
                task = asyncio.create_task(_answer_line(request, number, line))
                working.add(task)
                task.add_done_callback(working.discard)
                await begun.put(task)
        await begun.put(None)

    reader = asyncio.create_task(read())
    try:
        while (task := await begun.get()) is not None:
            yield msgspec.json.encode(await task) + b"\n"
    finally:
        reader.cancel()
        for task in working:  # also the one that waits for a place in the queue
            task.cancel()


async def _answer_line(request: Request, number: int, line: bytes | ArbiterError) -> BatchAnswer:
    try:
        if isinstance(line, ArbiterError):
            raise line
        answer = await service(request, Decider).answer(line)
    except Exception as error:
        refusal = await responses.answer_to(request, error)
        return BatchAnswer(number, refusal.status_code, problem=msgspec.Raw(bytes(refusal.body)))
    finally:
        if isinstance(line, bytes):
            hold_of(request.scope).change(-len(line))
    return BatchAnswer(number, 200, answer=msgspec.Raw(answer))


async def _lines(request: Request) -> AsyncIterator[bytes | ArbiterError]:
    """Non-empty lines, which the request holds until they are answered; one past the body limit, or for which there is
    no memory, is given as the error that it is, and skipped without being kept."""
    line = _Line(service(request, Settings).max_body_bytes, hold_of(request.scope))
    async for chunk in request.stream():
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            line.add(part)
            if complete := line.end():
                yield complete
        line.add(rest)
    if complete := line.end():
        yield complete


class _Line:
    def __init__(self, limit: int, hold: Hold) -> None:
        self._limit = limit
        self._hold = hold
        self._pieces = list[bytes]()
        self._size = 0
        self._refusal: ArbiterError | None = None

    def add(self, piece: bytes) -> None:
        """More of it; of a line that is refused nothing is kept."""
        if self._refusal is not None:
            return
        try:
            if self._size + len(piece) > self._limit:
                raise TooLarge(f"the line is larger than {self._limit} bytes")
            self._hold.change(len(piece))
        except (TooLarge, TooManyRequests) as refusal:
            self._refusal = refusal
            self._forget()
            return
        self._size += len(piece)
        self._pieces.append(piece)

    def end(self) -> bytes | ArbiterError | None:
        """What it was, if anything, still held; the next one begins."""
        ended = self._refusal or b"".join(self._pieces)
        if isinstance(ended, bytes):
            ended = ended.strip()
            self._hold.change(len(ended) - self._size)
        self._pieces, self._size, self._refusal = [], 0, None
        return ended or None

    def _forget(self) -> None:
        self._hold.change(-self._size)
        self._pieces, self._size = [], 0
