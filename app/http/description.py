"""The OpenAPI document: paths and parameters from the routes, schemas from the structs that really decode the bytes.

``make openapi`` writes it to openapi/openapi.json.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import RouteContext

from app.http.fields import described
from app.http.openapi import SCHEMA, VERSION, reference, renamed
from app.http.portable import of_parameter, portable, references
from app.http.problems import MEDIA_TYPE, Fault, ProblemDocument
from app.solver.model.problems import Finding

PROBLEMS: dict[int, tuple[str, str]] = {
    400: ("BadRequest", "The request can't be read: its syntax, its encoding, a header or a cursor"),
    401: ("Unauthorized", "No token, or one that is unknown, expired, revoked or forged"),
    403: ("Forbidden", "The token lacks the scope that this needs"),
    404: ("NotFound", "There is nothing of that name"),
    408: ("BodyTooLate", "The body did not arrive in time"),
    409: ("Conflict", "The request contradicts what is kept"),
    412: ("PreconditionFailed", "If-Match or If-None-Match no longer holds: somebody else was faster"),
    413: ("ContentTooLarge", "The body is past the limit, as sent or decompressed"),
    415: ("UnsupportedMediaType", "A content type or a content coding that isn't spoken here"),
    422: ("InvalidInput", "Read, and wrong; `errors` names every field at fault"),
    428: ("PreconditionRequired", "It exists: say with If-Match which version is meant"),
    429: (
        "TooManyRequests",
        "Enough requests wait already, or bodies use all the memory set aside for them",
    ),
    500: ("InternalError", "A fault of the service; its log knows more under the request's id"),
    501: ("NotInstalled", "This service lacks an optional package that this needs; `detail` says which"),
    503: ("Unavailable", "What this needs, most likely the database, is away for now"),
    504: ("DeadlinePassed", "Not solved in the time given; nothing was changed"),
}
HEADERS: dict[str, dict[str, Any]] = {
    "ETag": {"description": "The version of what was read or written", "schema": {"type": "string"}},
    "RequestId": {
        "description": "The request's own X-Request-ID where it is short and plain, else one made here",
        "schema": {"type": "string"},
    },
    "RetryAfter": {"description": "Seconds until it is worth trying again", "schema": {"type": "string"}},
    "Authenticate": {"description": "RFC 6750", "schema": {"type": "string"}},
}
_ALSO = {
    401: ("WWW-Authenticate", "Authenticate"),
    429: ("Retry-After", "RetryAfter"),
    503: ("Retry-After", "RetryAfter"),
}
_TIMEOUT = {
    "name": "Request-Timeout",
    "in": "header",
    "required": False,
    "description": "How long the caller waits: seconds, or a Go duration such as `500ms`. Solving stops then",
    "schema": {"type": "string"},
    "examples": {"seconds": {"value": "2"}, "duration": {"value": "500ms"}},
}
_BEARER = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token of this service, or of its OpenID Connect provider; an open service asks for none. The "
    "scope that an operation needs is listed with it; `admin` includes the others.",
}


def describe(
    app: FastAPI, routes: Sequence[RouteContext], shapes: tuple[type, ...], common: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """The OpenAPI document of ``app`` with ``routes``; ``shapes`` are all structs that operations refer to, ``common``
    the small schemas that have no struct."""
    document = get_openapi(
        title=app.title, version=VERSION, summary=app.summary, description=app.description, routes=routes,
        tags=app.openapi_tags, servers=[{"url": "/", "description": "This service"}],
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )  # fmt: skip
    bodies: list[str] = []
    for item in document["paths"].values():
        for found in item.values():
            _finish(found, common)
            bodies.extend(references(found.get("requestBody")))
    document["components"] = {
        "schemas": described(portable(_schemas(shapes), bodies, common)),
        "responses": {name: _problem(status, description) for status, (name, description) in PROBLEMS.items()},
        "parameters": {"RequestTimeout": _TIMEOUT},
        "headers": HEADERS,
        "securitySchemes": {"bearer": _BEARER},
    }
    return document


def _schemas(shapes: tuple[type, ...]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components((*shapes, ProblemDocument, Fault, Finding), ref_template=SCHEMA)
    return msgspec.json.decode(renamed(msgspec.json.encode(components).decode()))


def _problem(status: int, description: str) -> dict[str, Any]:
    headers = _request_id()
    if status in _ALSO:
        header, component = _ALSO[status]
        headers[header] = {"$ref": f"#/components/headers/{component}"}
    content = {MEDIA_TYPE: {"schema": reference(ProblemDocument)}}
    return {"description": description, "headers": headers, "content": content}


def _request_id() -> dict[str, Any]:
    return {"X-Request-ID": {"$ref": "#/components/headers/RequestId"}}


def _finish(found: dict[str, Any], common: dict[str, dict[str, Any]]) -> None:
    """What holds for every operation: who may call it, how its problems look, how long it may take."""
    found["tags"] = list(dict.fromkeys(found["tags"]))
    for parameter in found.get("parameters", ()):
        parameter["schema"] = of_parameter(parameter["schema"], common)
    for status, answer in list(found["responses"].items()):
        if _is_problem(answer):
            found["responses"][status] = {"$ref": f"#/components/responses/{PROBLEMS[int(status)][0]}"}
        else:
            answer["headers"] = answer.get("headers", {}) | _request_id()
    if not found["security"]:
        for status in ("401", "403"):
            found["responses"].pop(status, None)
    if "504" in found["responses"]:
        found["parameters"] = [*found.get("parameters", ()), {"$ref": "#/components/parameters/RequestTimeout"}]
    found["responses"] = dict(sorted(found["responses"].items()))


def _is_problem(answer: dict[str, Any]) -> bool:
    """Ours, or FastAPI's own 422, which never leaves this service."""
    return MEDIA_TYPE in answer.get("content", ()) or "HTTPValidationError" in str(answer)
