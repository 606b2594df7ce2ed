"""Addresses where nothing is: browsers are told by a page, programs by a problem document."""

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.console.visit import Visit, failure
from app.http.problems import http_exception
from app.http.routing import Operations, is_for_people


def install(app: FastAPI) -> None:
    """Answer browsers too where no operation is found."""
    app.add_exception_handler(HTTPException, _answer)


async def _answer(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    operations: Operations = request.app.state.operations
    if not is_for_people(request.scope, operations.found(request.scope)):
        return await http_exception(request, error)
    detail = f"No page is at {request.url.path[:200]}: the link is old, or mistyped."
    document: dict[str, Any] = {"title": HTTPStatus(error.status_code).phrase, "detail": detail, "errors": []}
    return failure(Visit(request), error.status_code, document)
