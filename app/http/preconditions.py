"""ETag, If-Match and If-None-Match (RFC 9110, section 13): a write names the version that it replaces."""

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header, Request

from app.base.errors import BadRequest, PreconditionFailed, PreconditionRequired

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
