"""OpenAPI 3.1: paths and parameters from the routes, schemas from the msgspec structs that really decode the bytes.

``operation`` documents one endpoint; ``describe`` builds the whole document, which ``make openapi`` writes to
openapi/openapi.json.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.http.problems import MEDIA_TYPE, Fault, ProblemDocument
from app.solver.model.problems import Finding

VERSION = "1.0.0"
_TEMPLATE = "#/components/schemas/{name}"
_ENGINES = {"kueue": "Kueue", "yunikorn": "YuniKorn", "kai": "Kai", "ytsaurus": "Ytsaurus"}
_BEARER = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token of this service, or of its OpenID Connect provider; an open service asks for none.",
}
_SHARED_ERRORS = (401, 403, 500)
_BODY_ERRORS = (400, 413, 415, 422)
_ETAG = {"ETag": {"description": "The version of what was read or written", "schema": {"type": "string"}}}


def reference(shape: type) -> dict[str, str]:
    """A reference to the schema of ``shape``, which a router lists in its ``DOCUMENTED``."""
    return {"$ref": _TEMPLATE.format(name=_name(shape.__module__, shape.__name__))}


def operation(
    *,
    request: type | None = None,
    responses: Mapping[int, type | None],
    errors: tuple[int, ...] = (),
    example: Any = None,
    answer_example: Any = None,
    etag: bool = False,
) -> dict[str, Any]:
    """Keyword arguments for a FastAPI route: request body, responses and every problem it can answer."""
    documented: dict[int | str, dict[str, Any]] = {}
    for status, shape in responses.items():
        entry: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if shape is not None:
            entry["content"] = {"application/json": {"schema": reference(shape)}}
            if answer_example is not None and status < 300:
                entry["content"]["application/json"]["example"] = answer_example
        if etag:
            entry["headers"] = _ETAG
        documented[status] = entry
    for status in sorted({*errors, *_SHARED_ERRORS, *(_BODY_ERRORS if request is not None else ())}):
        documented[status] = {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": reference(ProblemDocument)}},
        }
    arguments: dict[str, Any] = {
        "status_code": min(responses),
        "responses": documented,
        "response_model": None,
    }
    if request is not None:
        content: dict[str, Any] = {"schema": reference(request)}
        if example is not None:
            content["example"] = example
        arguments["openapi_extra"] = {"requestBody": {"required": True, "content": {"application/json": content}}}
    return arguments


def describe(app: FastAPI, shapes: tuple[type, ...]) -> dict[str, Any]:
    """The OpenAPI document of ``app``; ``shapes`` are all structs that operations refer to."""
    document = get_openapi(
        title=app.title, version=VERSION, summary=app.summary, description=app.description, routes=app.routes,
        tags=app.openapi_tags, servers=[{"url": "/", "description": "This service"}],
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )  # fmt: skip
    for path in document["paths"].values():
        for found in path.values():
            _drop_default_error(found)
    _, components = msgspec.json.schema_components(
        (*shapes, ProblemDocument, Fault, Finding), ref_template="#/components/schemas/{name}"
    )
    renamed = msgspec.json.decode(_SCHEMA_NAME.sub(_rename, msgspec.json.encode(components).decode()))
    document["components"] = {"schemas": dict(sorted(renamed.items())), "securitySchemes": {"bearer": _BEARER}}
    document["security"] = [{"bearer": []}, {}]
    return document


# msgspec tells structs of the same name apart by their module.
_SCHEMA_NAME = re.compile(r"\bapp[._](?:[a-z0-9_]+[._])+([A-Z][A-Za-z]+)\b")


def _rename(match: re.Match[str]) -> str:
    module, _, name = re.sub(r"[._]", ".", match[0]).rpartition(".")
    return _name(module, name)


def _name(module: str, name: str) -> str:
    """``Queue`` of the Kueue model is ``KueueQueue``; every other struct keeps its name."""
    last = module.rpartition(".")[2]
    prefix = _ENGINES.get(last, "") if module.startswith("app.solver.model.") else ""
    return prefix + name


def _drop_default_error(found: dict[str, Any]) -> None:
    """FastAPI documents its own 422, which never leaves this service: ours is a problem document."""
    answer = found.get("responses", {}).get("422")
    if answer is not None and "HTTPValidationError" in str(answer):
        answer["content"] = {MEDIA_TYPE: {"schema": reference(ProblemDocument)}}
        answer["description"] = HTTPStatus.UNPROCESSABLE_ENTITY.phrase
