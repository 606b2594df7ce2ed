"""What the service and a worker say to each other; bodies travel beside these headers as raw bytes."""

from typing import Any

import msgspec

from app.answering.answerer import Logged
from app.answering.answers import Facts
from app.answering.operations import Inquiry, Kept
from app.base import errors
from app.base.decoding import Malformed
from app.base.tracing import Stage
from app.solver.model.problems import InvalidInput, Problem, Unsupported


class Head(msgspec.Struct, frozen=True, tag=True):
    """Service to worker: the revision that a reference means now."""

    name: str
    revision: int


class Call(msgspec.Struct, frozen=True, tag=True):
    """Service to worker: answer this. ``end`` and ``seconds``: of its ticket.

    ``heads``: what references in the body mean now, where that is known beforehand; the worker asks for the others."""

    asked: Inquiry
    end: float
    seconds: float
    heads: dict[str, Head] = {}
    traced: bool = False
    """Whether somebody wants to know of its stages."""


class Document(msgspec.Struct, frozen=True, tag=True):
    """Service to worker: the body is that revision's document."""


class Done(msgspec.Struct, frozen=True, tag=True):
    """Worker to service: the body is the answer. ``kept``: how many snapshots the worker has, and their bytes;
    ``documents``: for the decision log."""

    kept: tuple[int, int]
    facts: Facts | None = None
    seconds: dict[str, float] = {}
    documents: list[Kept] = []
    logged: Logged | None = None
    stages: list[Stage] = []


class WantHead(msgspec.Struct, frozen=True, tag=True):
    """Worker to service: which revision does ``reference`` mean now?"""

    reference: str


class WantDocument(msgspec.Struct, frozen=True, tag=True):
    """Worker to service: the document of a revision that this worker has not compiled yet."""

    name: str
    revision: int


class Failed(msgspec.Struct, frozen=True, tag=True):
    """Either way: an error by class name, as it will be shown. ``trace``: of what nobody foresaw."""

    error: str
    detail: str = ""
    problems: list[Problem] = []
    headers: dict[str, str] = {}
    extra: dict[str, Any] = {}
    trace: str | None = None
    stages: list[Stage] = []


_INVALID: dict[str, type[InvalidInput]] = {kind.__name__: kind for kind in (InvalidInput, Malformed, Unsupported)}

ToWorker = Call | Head | Document | Failed
FromWorker = Done | WantHead | WantDocument | Failed


class WorkerFault(Exception):
    """A worker met an error that nobody foresaw; its own traceback is the message."""


def failed(error: BaseException, trace: str | None = None) -> Failed:
    """``error`` as it crosses."""
    if isinstance(error, errors.ArbiterError):
        return Failed(type(error).__name__, error.detail, error.problems, error.headers, error.extra)
    if isinstance(error, InvalidInput):
        return Failed(_invalid_name(error), problems=error.problems)
    return Failed("WorkerFault", str(error), trace=trace)


def raised(message: Failed) -> Exception:
    """The error to raise on this side."""
    if message.error in _INVALID:
        return _INVALID[message.error](message.problems)
    known = getattr(errors, message.error, None)
    if isinstance(known, type) and issubclass(known, errors.ArbiterError):
        error = known.__new__(known)
        errors.ArbiterError.__init__(
            error, message.detail, problems=message.problems, headers=message.headers, extra=message.extra
        )
        return error
    return WorkerFault(message.trace or message.detail)


def _invalid_name(error: InvalidInput) -> str:
    name = type(error).__name__
    return name if name in _INVALID else InvalidInput.__name__
