"""``/openapi.json``, and ``/docs``: the same for people, drawn by Swagger UI, which loads nothing from elsewhere."""

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.http.assets import address
from app.http.openapi import operation
from app.http.policy import HEADERS
from app.http.responses import json_response
from app.http.routing import Operations

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

router = APIRouter(include_in_schema=False)


@router.get("/openapi.json", **operation(needs=None, responses={200: None}))
def openapi(request: Request) -> Response:
    """The OpenAPI document."""
    return json_response(msgspec.json.encode(request.app.openapi()))


@router.get("/docs", **operation(needs=None, responses={200: None}))
def documentation(request: Request) -> Response:
    """Operations with their examples, to read and to try."""
    operations: Operations = request.app.state.operations
    console = operations.found({"type": "http", "method": "GET", "path": "/"}).operation is not None
    page = _PAGE.format(
        mark=address("mark.svg"), style=address("swagger-ui.css"), own=address("docs.css"),
        script=address("swagger-ui.js"), start=address("docs.js"), back=_BACK if console else "",
    )  # fmt: skip
    return HTMLResponse(page, headers=HEADERS)
