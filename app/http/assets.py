"""Stylesheets, scripts and icons, each at an address that changes with its content; ``/docs`` and ``/openapi.json``.

``/docs`` is drawn by Swagger UI, which loads nothing from anywhere else. ``HEADERS`` is what browsers may do with pages
of ours: load from here, run nothing inline, stand in no frame, be kept by nobody.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.base.errors import NotFound
from app.http.openapi import operation
from app.http.responses import json_response
from app.http.routing import Operations

POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


_FOLDERS = tuple(Path(__file__).with_name("static") / name for name in ("own", "vendor"))
_MEDIA = {".css": "text/css", ".js": "application/javascript", ".svg": "image/svg+xml"}
_FOREVER = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


class Asset(NamedTuple):
    """A file as it is sent."""

    digest: str
    media: str
    data: bytes


@cache
def assets() -> dict[str, Asset]:
    """Every file by its name."""
    return {path.name: _read(path) for folder in _FOLDERS for path in folder.iterdir() if path.suffix in _MEDIA}


def _read(path: Path) -> Asset:
    data = path.read_bytes()
    return Asset(sha256(data).hexdigest()[:16], _MEDIA[path.suffix], data)


def address(name: str) -> str:
    """Where a file is; another one when its content changes."""
    return f"/assets/{assets()[name].digest}/{name}"


@router.get("/assets/{digest}/{name}", **operation(needs=None, responses={200: None}))
async def asset(digest: str, name: str) -> Response:
    """A file that never changes at this address."""
    file = assets().get(name)
    if file is None or file.digest != digest:
        raise NotFound("no such file")
    headers = {"Cache-Control": _FOREVER, "X-Content-Type-Options": "nosniff"}
    return Response(file.data, headers=headers, media_type=file.media)


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API · Arbiter</title>
<link rel="icon" href="{mark}" type="image/svg+xml">
<link rel="stylesheet" href="{style}">
<link rel="stylesheet" href="{own}">
<script src="{script}" defer></script>
<script src="{start}" defer></script>
</head>
<body>{back}<div id="docs" role="region" aria-label="The API"></div>
<noscript><a href="/openapi.json">The OpenAPI document</a></noscript></body>
</html>
"""

_BACK = '<nav aria-label="Console"><a class="back" href="/">← Console</a></nav>'


@router.get("/openapi.json", **operation(needs=None, responses={200: None}))
def openapi(request: Request) -> Response:
    """The OpenAPI document."""
    return json_response(msgspec.json.encode(request.app.openapi()))


@router.get("/docs", **operation(needs=None, responses={200: None}))
def documentation(request: Request) -> Response:
    """Operations with their examples, to read and to try."""
    operations: Operations = request.app.state.operations
    console = operations.resolve({"type": "http", "method": "GET", "path": "/"}).operation is not None
    page = _PAGE.format(
        mark=address("mark.svg"), style=address("swagger-ui.css"), own=address("docs.css"),
        script=address("swagger-ui.js"), start=address("docs.js"), back=_BACK if console else "",
    )  # fmt: skip
    return HTMLResponse(page, headers=HEADERS)
