"""Cursor pagination: ``{items, next_cursor?}``. A cursor holds the sort key of the last item, opaque to callers."""

import base64
import binascii
import re
from typing import Annotated

import msgspec
from fastapi import Query

from app.errors import BadRequest

_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]")
Limit = Annotated[int, Query(ge=1, le=500, description="How many items at most")]
Cursor = Annotated[str | None, Query(max_length=1024, description="`next_cursor` of the page before")]


def rfc3339(text: str) -> str:
    """``text``, unless it is a number or a date alone, which pydantic would take for a moment. Raises ValueError."""
    if _MOMENT.match(text) is None:
        raise ValueError("not a moment of RFC 3339, such as 2026-03-02T09:30:00Z")
    return text


def encode_cursor(*keys: str | int) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(keys)).decode().rstrip("=")


def decode_cursor(cursor: str, *kinds: type[str] | type[int]) -> list[str | int]:
    """The keys in ``cursor``, one of each of ``kinds``. Raises BadRequest."""
    try:
        packed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        keys = msgspec.json.decode(packed, type=list[str | int])
    except (binascii.Error, msgspec.DecodeError, UnicodeError, ValueError):
        keys = list[str | int]()
    if [type(key) for key in keys] != list(kinds) or not all(_sortable(key) for key in keys):
        raise BadRequest("the cursor is not one of this list")
    return keys


def _sortable(key: str | int) -> bool:
    """What the database can compare with: text without NUL, integers of four bytes or eight."""
    return "\x00" not in key if isinstance(key, str) else 0 <= key < 2**63
