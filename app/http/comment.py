"""Why a write was made: ``?comment=`` or ``X-Comment``, kept in the history."""

from typing import Annotated

from fastapi import Depends, Header, Query

from app.base.errors import BadRequest

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
