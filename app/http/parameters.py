"""Parameters that operations share: pages, comments, conditions.

A page is ``{items, next_cursor?}``; a cursor holds the sort key of the last item, opaque to callers. ``?comment=`` or
``X-Comment`` says why a write was made, for the history. ETag, If-Match and If-None-Match (RFC 9110, section 13): a
write names the version that it replaces.
"""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

import msgspec
from fastapi import Depends, Header, Query, Request
from pydantic import AwareDatetime, BeforeValidator
from pydantic_core import PydanticCustomError

from app.base.errors import BadRequest, PreconditionFailed, PreconditionRequired

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


MOST = 1000


def read_comment(
    comment: Annotated[str | None, Query(max_length=MOST, description="Why; kept in the history")] = None,
    x_comment: Annotated[
        str | None, Header(max_length=4 * MOST, description="The same as `comment`, which goes first; UTF-8")
    ] = None,
) -> str | None:
    """Without a word there is no comment. Raises BadRequest."""
    said = (comment if comment is not None else _utf8(x_comment or "")).strip()
    if len(said) > MOST:
        raise BadRequest(f"a comment has at most {MOST} characters")
    if any(ord(character) < 32 and character not in "\t\n\r" for character in said):
        raise BadRequest("the comment holds a control character")
    return said or None


Comment = Annotated[str | None, Depends(read_comment)]


def _utf8(header: str) -> str:
    """Headers arrive one character a byte; people write UTF-8 into them."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header


_TAG = re.compile(r'\s*(?:(W/)?("[\x21\x23-\x7e\x80-\xff]*")|(\*))\s*(?:,|$)')


@dataclass(frozen=True, slots=True)
class Preconditions:
    """Tags of each header; ``None`` where the header is absent, ``("*",)`` for any version."""

    if_match: tuple[str, ...] | None
    if_none_match: tuple[str, ...] | None

    def check_write(self, current: str | None) -> None:
        """May the document whose tag is ``current`` (None: there is none) be written over?

        Raises PreconditionFailed, or PreconditionRequired for one that exists and isn't named.
        """
        self.check_stated(current)
        if current is not None and self.if_match is None:
            raise PreconditionRequired("it exists: say with If-Match which version you mean", headers={"ETag": current})

    def check_stated(self, current: str | None) -> None:
        """Only what the headers say. Raises PreconditionFailed."""
        headers = {} if current is None else {"ETag": current}
        if self.if_match is not None and not _names(self.if_match, current):
            state = "there is none" if current is None else f"it is at {current}"
            raise PreconditionFailed(f"If-Match names another version: {state}", headers=headers)
        if self.if_none_match is not None and _names(self.if_none_match, current):
            raise PreconditionFailed("If-None-Match: it exists already", headers=headers)

    def not_modified(self, current: str) -> bool:
        """A read may be answered by 304."""
        return self.if_none_match is not None and _names(self.if_none_match, current)


def read_preconditions(
    request: Request,
    if_match: Annotated[
        str | None, Header(description="Only if the current version is one of these entity tags")
    ] = None,
    if_none_match: Annotated[
        str | None, Header(description="Only if it is none of these; `*`: not if it exists")
    ] = None,
) -> Preconditions:
    """Both headers of ``request``. Raises BadRequest when they can't be read."""
    del if_match, if_none_match  # declared for the documentation; a header may come in several lines
    return Preconditions(_tags(request, "if-match"), _tags(request, "if-none-match"))


Conditions = Annotated[Preconditions, Depends(read_preconditions)]


def etag_of(body: bytes) -> str:
    """The tag of a representation that has no version of its own, such as a page of a list."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def _names(tags: tuple[str, ...], current: str | None) -> bool:
    return current is not None and ("*" in tags or current in tags)


def _tags(request: Request, header: str) -> tuple[str, ...] | None:
    values = request.headers.getlist(header)
    if not values:
        return None
    text, position, tags = ", ".join(values), 0, list[str]()
    while position < len(text):
        match = _TAG.match(text, position)
        if match is None:
            raise BadRequest(f"{header} is not a list of quoted entity tags")
        # A proxy that compresses may have weakened our tag; the version it names is the same.
        tags.append(match[2] or match[3])
        position = match.end()
    return tuple(tags)
