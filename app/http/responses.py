"""Responses: JSON by msgspec, problems by RFC 9457."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

_encode = msgspec.json.Encoder().encode


def json_response(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None, media_type: str = "application/json"
) -> Response:
    """``content`` as JSON; ``bytes`` are taken as JSON already."""
    body: bytes = content if isinstance(content, bytes) else _encode(content)
    return Response(body, status, headers, media_type)
