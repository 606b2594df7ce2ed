"""Cursor pagination: ``{items, next_cursor?}``. A cursor holds the sort key of the last item, opaque to callers."""

import base64
import binascii
import re
from typing import Annotated
from uuid import UUID

import msgspec
from fastapi import Query
from pydantic import AwareDatetime, BeforeValidator
from pydantic_core import PydanticCustomError

from app.base.errors import BadRequest

_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[-+][0-9]{2}:[0-9]{2})")
Limit = Annotated[int, Query(ge=1, le=500, description="How many items at most")]
Cursor = Annotated[str | None, Query(max_length=1024, description="`next_cursor` of the page before")]


def _rfc3339(text: str) -> str:
    """``text``, unless it is a number, a date or another form that pydantic would take for a moment."""
    if _MOMENT.fullmatch(text) is None:
        raise PydanticCustomError("rfc3339", "not a moment of RFC 3339 with its offset, such as 2026-03-02T09:30:00Z")
    return text


Moment = Annotated[AwareDatetime, BeforeValidator(_rfc3339)]
"""A moment in the query, exact to the microsecond; a sign of its offset is sent as ``%2B`` or ``-``."""


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


def decode_id(cursor: str) -> UUID:
    """The id in a cursor that holds nothing else. Raises BadRequest."""
    (last,) = decode_cursor(cursor, str)
    try:
        return UUID(str(last))
    except ValueError:
        raise BadRequest("the cursor is not one of this list") from None


def _sortable(key: str | int) -> bool:
    """What the database can compare with: text without NUL, integers of four bytes or eight."""
    return "\x00" not in key if isinstance(key, str) else 0 <= key < 2**63
