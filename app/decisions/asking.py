"""A question on its way to whoever answers it: off the event loop, in the place that its class of requests has."""

from fastapi import Request

from app.answering.operations import Operation
from app.decisions.service import Decider
from app.http.services import service
from app.workers.dispatcher import Dispatcher
from app.workers.offload import Offload

_BRIEF = 8192
"""Bytes of a body that is most likely answered in less time than it takes to hand it to a thread."""


async def decide(request: Request, body: bytes) -> bytes:
    """The answer to a decision request, which is logged. Raises what deciding does, TooManyRequests, DeadlinePassed.

    Where it waits for its log entry it takes nobody's place meanwhile.
    """
    of, decider = service(request, Dispatcher).class_of(body), service(request, Decider)
    decided = await service(request, Offload).run(of, decider.decide, body, brief=len(body) <= _BRIEF)
    return await decider.acknowledged(decided)


async def ask(request: Request, operation: Operation, body: bytes) -> bytes:
    """The answer to another question, which is not. Raises as ``decide`` does."""
    of, decider = service(request, Dispatcher).class_of(body), service(request, Decider)
    return await service(request, Offload).run(of, decider.ask, operation, body, brief=len(body) <= _BRIEF)
