"""OpenAPI 3.1, one operation at a time: what routers say about their endpoints, and the parameters that they share;
``description`` builds the document.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Header, Query, Request
from pydantic import AfterValidator, AwareDatetime, BeforeValidator
from pydantic_core import PydanticCustomError

from app.base.errors import BadRequest, PreconditionFailed, PreconditionRequired
from app.http.responses import MEDIA_TYPE, ProblemDocument
from app.solver.engine import all_facts

VERSION = "1.110.1"
"""Of the interface, by semantic versioning; openapi/README.md says when it must change."""

Content = dict[str, dict[str, Any]]
NDJSON = "application/x-ndjson"
SHARED_ERRORS = (400, 401, 403, 422, 500)
_BODY_ERRORS = (408, 413, 415, 429)
SCHEMA = "#/components/schemas/{name}"
_BEARER = "bearer"
_BASIC = "x-basic-credentials"
_ETAG = {"ETag": {"$ref": "#/components/headers/ETag"}}
_SUCCESSES = {
    200: "Done",
    201: "Created",
    204: "Done; there is nothing to say",
    304: "Not modified: If-None-Match names it",
}


def reference(shape: type) -> dict[str, str]:
    """A reference to the schema of ``shape``, which a router lists in its ``DOCUMENTED``."""
    return {"$ref": SCHEMA.format(name=name_of(shape.__module__, shape.__name__))}


def lines(shape: type, *examples: Any) -> Content:
    """Newline-delimited JSON, each line a ``shape``."""
    schema = {"type": "string", "contentMediaType": NDJSON, "contentSchema": reference(shape)}
    shown = b"".join(msgspec.json.encode(example) + b"\n" for example in examples).decode()
    return {NDJSON: {"schema": schema, "example": shown} if examples else {"schema": schema}}


def shown_as(shape: type) -> msgspec.Meta:
    """Marks a field of bytes that are a ``shape`` already."""
    return msgspec.Meta(extra_json_schema=reference(shape))


class Part(NamedTuple):
    """Operations of the interface, and the shapes whose schemas they refer to."""

    router: APIRouter
    DOCUMENTED: tuple[type, ...]


def operation(  # noqa: PLR0913
    *,
    needs: str | None,
    request: type | Content | None = None,
    responses: Mapping[int, type | Content | None],
    errors: tuple[int, ...] = (),
    example: Any = None,
    examples: Mapping[str, Any] | None = None,
    etag: bool = False,
    basic: bool = False,
    followers: bool = False,
) -> dict[str, Any]:
    """Keyword arguments for a FastAPI route: who may call it, request body, responses and every problem it can answer.

    ``needs``: the scope that a caller must have; None for what is public. This is also what decides who gets in.
    ``examples``: several in place of the one ``example``, by what each shows.
    ``followers``: scope `follow` is enough too: what `arbiter follow` does.
    ``basic``: the token may also come as the password of Basic credentials.
    A struct stands for JSON, and for the refusals of a body of JSON; other content is given by media type, and its
    refusals with ``errors``, beside those that every operation has. No lines are lines as well; every other body must
    be there.
    """
    documented: dict[int | str, dict[str, Any]] = {}
    for status, shape in responses.items():
        entry: dict[str, Any] = {"description": _SUCCESSES.get(status) or HTTPStatus(status).phrase}
        if isinstance(shape, dict):
            entry["content"] = shape
        elif shape is not None:
            entry["content"] = {"application/json": {"schema": reference(shape)}}
        if etag:
            entry["headers"] = _ETAG
        documented[status] = entry
    for status in sorted({*errors, *SHARED_ERRORS, *(_BODY_ERRORS if isinstance(request, type) else ())}):
        documented[status] = {"description": "", "content": {MEDIA_TYPE: {"schema": reference(ProblemDocument)}}}
    arguments: dict[str, Any] = {
        "status_code": min(responses),
        "responses": documented,
        "response_model": None,
        "openapi_extra": {"security": _security(needs, *(("follow",) if followers else ()))},
    }
    if basic:
        arguments["openapi_extra"][_BASIC] = True
    if request is not None:
        content: Content = (
            request if isinstance(request, dict) else {"application/json": {"schema": reference(request)}}
        )
        if example is not None:
            content["application/json"]["example"] = example
        if examples is not None:
            shown = {name: {"summary": name, "value": value} for name, value in examples.items()}
            content["application/json"]["examples"] = shown
        arguments["openapi_extra"]["requestBody"] = {"required": NDJSON not in content, "content": content}
    return arguments


def _security(needs: str | None, *others: str) -> list[dict[str, list[str]]]:
    return [] if needs is None else [*({_BEARER: [scope]} for scope in (needs, *others)), {}]


def needed_by(documented: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The scopes of which one is enough, as ``operation`` wrote them down; none for what is public. A route that does
    not say is nobody's: AssertionError."""
    assert documented is not None, "every route says with operation() who may call it"
    return tuple(scopes[0] for named in documented["security"] for scopes in named.values())


def takes_basic(documented: Mapping[str, Any] | None) -> bool:
    """``basic``, as ``operation`` wrote it down."""
    return documented is not None and documented.get(_BASIC, False)


_PAGE = "x-page"


def page(needs: str | None, status: int = 200) -> dict[str, Any]:
    """The same for a route that answers people with a page: it is in no document, and has a scope like any other."""
    return {
        "status_code": status,
        "include_in_schema": False,
        "response_model": None,
        "openapi_extra": {"security": _security(needs), _PAGE: True},
    }


def is_page(documented: Mapping[str, Any] | None) -> bool:
    """Whether ``page`` wrote it."""
    return documented is not None and documented.get(_PAGE, False)


# msgspec tells structs of the same name apart by their module, whose dots it may write as underscores.
_MODEL = "app_solver_model_"
_SCHEMA_NAME = re.compile(r"\bapp[._](?:[a-z0-9_]+[._])+([A-Z][A-Za-z]+)\b")


def renamed(text: str) -> str:
    """``text`` of a document with the names that ``reference`` uses."""
    return _SCHEMA_NAME.sub(_rename, text)


def _rename(match: re.Match[str]) -> str:
    module, _, name = match[0].replace(".", "_").rpartition("_")
    return name_of(module, name)


def name_of(module: str, name: str) -> str:
    """``Queue`` of the Kueue model is ``KueueQueue``; every other struct keeps its name."""
    flat = module.replace(".", "_")
    return _prefixes().get(flat.removeprefix(_MODEL), "") + name if flat.startswith(_MODEL) else name


@cache
def _prefixes() -> dict[str, str]:
    return {facts.block: facts.schema for facts in all_facts()}


_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[-+][0-9]{2}:[0-9]{2})")
Limit = Annotated[int, Query(ge=1, le=500, description="How many items at most")]
Cursor = Annotated[str | None, Query(max_length=1024, description="`next_cursor` of the page before")]


def _rfc3339(text: str) -> str:
    """``text``, unless it is a number, a date or another form that pydantic would take for a moment."""
    if _MOMENT.fullmatch(text) is None:
        raise PydanticCustomError("rfc3339", "not a moment of RFC 3339 with its offset, such as 2026-03-02T09:30:00Z")
    return text


_FIRST, _LAST = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)


def _of_calendar(moment: datetime) -> datetime:
    """``moment``, or the nearest that has days before and after it, from which is reckoned: nothing is further off."""
    return min(max(moment, _FIRST), _LAST)


Moment = Annotated[AwareDatetime, BeforeValidator(_rfc3339), AfterValidator(_of_calendar)]
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
