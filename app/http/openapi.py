"""OpenAPI 3.1, one operation at a time: what routers say about their endpoints; ``description`` builds the document."""

import re
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from fastapi import APIRouter

from app.http.responses import MEDIA_TYPE, ProblemDocument
from app.solver.registry import all_facts

VERSION = "1.90.0"
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
    answer_example: Any = None,
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
            if answer_example is not None and status < 300:
                entry["content"]["application/json"]["example"] = answer_example
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
