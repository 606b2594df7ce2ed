"""``/openapi.json``, and ``/docs``: the same for people, drawn by one page that loads nothing from elsewhere."""

from pathlib import Path

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.http.openapi import operation
from app.http.responses import json_response

_PAGE = Path(__file__).with_name("docs.html")
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

router = APIRouter(include_in_schema=False)


@router.get("/openapi.json", **operation(needs=None, responses={200: None}))
def openapi(request: Request) -> Response:
    """The OpenAPI document."""
    return json_response(msgspec.json.encode(request.app.openapi()))


@router.get("/docs", **operation(needs=None, responses={200: None}))
def documentation() -> Response:
    """Operations with their examples, to read and to try."""
    return HTMLResponse(_PAGE.read_text(encoding="utf-8"), headers={"Content-Security-Policy": _POLICY})
