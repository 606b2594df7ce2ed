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

from app.decisions import asking
from app.decisions.examples import DECISION, SITUATION
from app.decisions.schemas import DecisionAnswer
from app.errors import TooLarge
from app.http import problems
from app.http.body import require_lines
from app.http.openapi import NDJSON, lines, operation, shown_as
from app.http.problems import ProblemDocument
from app.http.services import service
from app.settings import Settings
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

    async def read() -> None:
        number = 0
        with suppress(ClientDisconnect):
            async for line in _lines(request):
                number += 1
                await begun.put(asyncio.create_task(_one(request, number, line)))
        await begun.put(None)

    reader = asyncio.create_task(read())
    try:
        while (task := await begun.get()) is not None:
            yield msgspec.json.encode(await task) + b"\n"
    finally:
        reader.cancel()
        while not begun.empty():
            if (left := begun.get_nowait()) is not None:
                left.cancel()


async def _one(request: Request, number: int, line: bytes | TooLarge) -> BatchAnswer:
    try:
        if isinstance(line, TooLarge):
            raise line
        answer = await asking.decide(request, line)
    except Exception as error:
        refusal = await problems.answer_to(request, error)
        return BatchAnswer(number, refusal.status_code, problem=msgspec.Raw(bytes(refusal.body)))
    return BatchAnswer(number, 200, answer=msgspec.Raw(answer))


async def _lines(request: Request) -> AsyncIterator[bytes | TooLarge]:
    """Non-empty lines; one past the body limit is given as the error that it is, and skipped without being kept."""
    limit = service(request, Settings).max_body_bytes
    pieces, size = list[bytes](), 0
    async for chunk in request.stream():
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            size += len(part)
            if size > limit:
                yield TooLarge(f"the line is larger than {limit} bytes")
            else:
                line = b"".join((*pieces, part)).strip()
                if line:
                    yield line
            pieces, size = [], 0
        size += len(rest)
        if size <= limit:
            pieces.append(rest)
        else:
            pieces = []
    if size > limit:
        yield TooLarge(f"the line is larger than {limit} bytes")
    elif line := b"".join(pieces).strip():
        yield line
