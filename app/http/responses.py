"""Responses: JSON by msgspec, every error as application/problem+json (RFC 9457).

``errors`` of a problem name the fields at fault.
"""

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from itertools import islice
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.base.decoding import Malformed
from app.base.errors import ArbiterError, counted
from app.solver.model.base import Wire
from app.solver.model.problems import MOST_LISTED, Finding, InvalidInput, Problem

_encode = msgspec.json.Encoder().encode


def json_response(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None, media_type: str = "application/json"
) -> Response:
    """``content`` as JSON; ``bytes`` are taken as JSON already."""
    body: bytes = content if isinstance(content, bytes) else _encode(content)
    return Response(body, status, headers, media_type)


MEDIA_TYPE = "application/problem+json"


class Fault(Wire, frozen=True, kw_only=True):
    """One thing that is wrong: ``pointer`` into the body (RFC 6901), or ``parameter`` of the path, query or headers."""

    pointer: str | None = None
    """Where in the body: an RFC 6901 pointer. Absent: it is a parameter."""
    parameter: str | None = None
    """Which parameter of the path, the query or the headers. Absent: it is in the body."""
    detail: str
    """What is wrong, in one sentence."""


class ProblemDocument(Wire, frozen=True, kw_only=True):
    """RFC 9457. ``type`` is about:blank: the status says what kind it is, ``errors`` what to mend.

    ``code`` tells cases of one status apart that a program treats differently (``snapshot_lost``, ``stale_generation``
    with the ``generation`` that is kept); ``findings`` come with a configuration that is refused for some of them.
    """

    type: str = "about:blank"
    """`about:blank`: the status says what kind it is."""
    title: str
    """The status' name."""
    status: int
    """The HTTP status."""
    detail: str
    """What is wrong, in one sentence."""
    instance: str | None = None
    """The path of the request."""
    errors: list[Fault] = []
    """Every field at fault; of more than 1,000 the first, and `detail` says how many there are."""
    code: str | None = None
    """Tells cases of one status apart that a program treats differently: `snapshot_lost`, `stale_generation` and
    others."""
    generation: int | None = None
    """The generation that is kept, where a stale one was sent."""
    findings: list[Finding] | None = None
    """What refused a configuration; of more than 1,000 the first."""


def problem(
    request: Request,
    status: int,
    title: str,
    detail: str,
    *,
    faults: Iterable[Fault] = (),
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Response:
    """One problem document about ``request``; an answer is not many times as large as what was asked."""
    document: dict[str, Any] = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    document["instance"] = request.url.path
    if listed := list(islice(faults, MOST_LISTED)):
        document["errors"] = listed
    document.update(extra or {})
    if "findings" in document:
        document["findings"] = document["findings"][:MOST_LISTED]
    return json_response(document, status, headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Translate everything that endpoints raise."""
    app.add_exception_handler(ArbiterError, _arbiter_error)
    app.add_exception_handler(InvalidInput, _invalid_input)
    app.add_exception_handler(RequestValidationError, _bad_parameters)
    app.add_exception_handler(HTTPException, http_exception)


async def answer_to(request: Request, error: Exception) -> Response:
    """The problem document of an error that ends one part of a request, not the request itself. Raises others."""
    if isinstance(error, ArbiterError):
        return await _arbiter_error(request, error)
    if isinstance(error, InvalidInput):
        return await _invalid_input(request, error)
    raise error


def _faults(problems: Iterable[Problem]) -> Iterator[Fault]:
    return (Fault(pointer=fault.pointer, detail=fault.detail) for fault in problems)


async def _arbiter_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ArbiterError)
    return problem(
        request, error.status, error.title, error.detail,
        faults=_faults(error.problems), headers=error.headers, extra=error.extra,
    )  # fmt: skip


async def _invalid_input(request: Request, error: Exception) -> Response:
    assert isinstance(error, InvalidInput)
    status, title = (400, "Malformed body") if isinstance(error, Malformed) else (422, "Invalid input")
    return problem(request, status, title, counted(error.problems), faults=_faults(error.problems))


async def _bad_parameters(request: Request, error: Exception) -> Response:
    """What FastAPI refuses: parameters of the path, the query and the headers; bodies never come this way."""
    assert isinstance(error, RequestValidationError)
    faults = [Fault(parameter=str(refused["loc"][1]), detail=str(refused["msg"])) for refused in error.errors()]
    detail = "; ".join(f"{fault.parameter}: {fault.detail}" for fault in faults)
    return problem(request, 422, "Invalid parameters", detail, faults=faults)


async def http_exception(request: Request, error: Exception) -> Response:
    """What routing raises: nothing there, or not by that method."""
    assert isinstance(error, HTTPException)
    title = HTTPStatus(error.status_code).phrase
    return problem(request, error.status_code, title, str(error.detail), headers=error.headers)
