"""The OpenAPI document: paths and parameters from the routes, schemas from the structs that really decode the bytes.

What a field means is the docstring under it: it stands where the field stands, costs nothing when bytes are decoded,
and is read from the source when the document is asked for. ``make openapi`` writes it to openapi/openapi.json.

Schemas are what msgspec writes, in the form that code generators read well. Both accept the same documents, with three
exceptions: answers may grow fields in later versions, so shapes that are never sent are open; a number is said to be a
double or a 64-bit integer where JSON knows only numbers; and where a word may stand for a list, the list is shown and
the word is said.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast, get_args

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from app.auth.audit import Scope
from app.base.decoding import descriptions, is_ours
from app.http.openapi import SCHEMA, VERSION, name_of, reference, renamed
from app.http.responses import MEDIA_TYPE, Fault, ProblemDocument
from app.solver.model import kai, kueue, ytsaurus
from app.solver.model.configuration import Configuration, EngineName, TaintEffect
from app.solver.model.decision import Outcome
from app.solver.model.problems import Finding
from app.solver.model.request import Explain, Mode
from app.solver.model.state import TaskState

Schema = dict[str, Any]
Schemas = dict[str, Schema]

_PREFIX = "#/components/schemas/"
_NUMBERS = {"integer": "int64", "number": "double"}
_INTEGER, _NUMBER, _NULL = {"type": "integer"}, {"type": "number"}, {"type": "null"}
_MEANT_ABSENT = frozenset({("Queue", "weight")})
"""Leaving it out is not the same as its default, which a generated client would send."""
_SHOWN_AS_LIST = "Asks"
"""Of a list or a word Java's generator makes nothing that compiles, Go's a type that each caller would have to fill."""


def portable(schemas: Mapping[str, Schema], sent: Iterable[str], common: Mapping[str, Schema]) -> Schemas:
    """``schemas`` by name, and those that hide in them under a title or as one of ``common``.

    ``sent``: names that request bodies refer to; ``common``: small schemas that deserve a name.
    """
    components: Schemas = {}
    named = {_key(schema): name for name, schema in common.items()}
    for name, schema in schemas.items():
        rewritten = _rewritten({key: value for key, value in schema.items() if key != "title"}, components, named)
        for field, inner in rewritten.get("properties", {}).items():
            if (name, field) in _MEANT_ABSENT:
                inner.pop("default", None)
        components[name] = rewritten
    _drop_defaults_of_unions(components)
    closed = closure(components, sent)
    for name, schema in components.items():
        if name not in closed and schema.get("additionalProperties") is False:
            del schema["additionalProperties"]
    return dict(sorted(components.items()))


def closure(schemas: Mapping[str, Schema], names: Iterable[str]) -> set[str]:
    """``names`` and all that they refer to."""
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(references(schemas[name]))
    return seen


def references(value: Any) -> list[str]:
    """Names of the schemas that ``value`` refers to, anywhere in it."""
    if isinstance(value, list):
        return [name for item in cast(list[Any], value) for name in references(item)]
    if not isinstance(value, dict):
        return []
    content = cast(dict[str, Any], value)
    target = content.get("$ref")
    here = [target.removeprefix(_PREFIX)] if isinstance(target, str) and target.startswith(_PREFIX) else []
    return here + [name for item in content.values() for name in references(item)]


def of_parameter(schema: Schema, common: Mapping[str, Schema]) -> Schema:
    """The schema of a parameter: never null, without the title that pydantic makes up."""
    plain = {key: value for key, value in schema.items() if key not in ("title", "description")}
    shown = _rewritten(plain, {}, {_key(shape): name for name, shape in common.items()})
    if "anyOf" in shown:
        shown |= _any_of([alternative for alternative in shown.pop("anyOf") if alternative != _NULL])
    return shown


def _rewritten(schema: Schema, components: Schemas, named: Mapping[bytes, str]) -> Schema:
    """``schema`` without what only msgspec needs; what has a title or a name leaves a reference to ``components``."""
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    copy = dict(schema)
    if copy.get("title") == _SHOWN_AS_LIST:
        own = {name: copy[name] for name in ("default", "description") if name in copy}
        copy = next(alternative for alternative in copy["anyOf"] if alternative.get("type") == "array") | own
    for key in ("properties", "$defs"):
        if key in copy:
            copy[key] = {name: _rewritten(inner, components, named) for name, inner in copy[key].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(copy.get(key), dict):
            copy[key] = _rewritten(copy[key], components, named)
    if "anyOf" in copy:
        alternatives = [_rewritten(inner, components, named) for inner in _distinct(copy.pop("anyOf"))]
        copy |= _any_of(_gathered(alternatives, components, named))
    copy = _tidied(copy)
    if (name := named.get(_key(copy))) is not None:
        copy["title"] = name
    return _hoisted(copy, components)


def _tidied(schema: Schema) -> Schema:
    """Prose without reStructuredText, nothing that says nothing, a type for enumerations and a format for numbers."""
    tidied = dict(schema)
    if "description" in tidied:
        tidied["description"] = tidied["description"].replace("``", "`")
    if "default" in tidied and tidied["default"] in (None, [], {}, ""):
        del tidied["default"]
    if tidied.get("required") == []:
        del tidied["required"]
    if "enum" in tidied:
        return {"type": "string", **tidied}
    if tidied.get("type") in _NUMBERS:
        tidied["format"] = _NUMBERS[tidied["type"]]
    return tidied


def _key(schema: Schema) -> bytes:
    """The same for schemas that accept the same and differ in what they say besides."""
    said = {key: value for key, value in schema.items() if key not in ("default", "description", "title")}
    if "enum" in said:
        said["enum"] = sorted(said["enum"])
    return msgspec.json.encode(said, order="deterministic")


def _any_of(alternatives: list[Schema]) -> Schema:
    return alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}


def _gathered(alternatives: list[Schema], components: Schemas, named: Mapping[bytes, str]) -> list[Schema]:
    """What has a name keeps it where it may be null as well: one type in a generated client, not one a property."""
    rest = [alternative for alternative in alternatives if alternative != _NULL]
    name = named.get(_key({"anyOf": rest}))
    if name is None or rest == alternatives:
        return alternatives
    return [_hoisted({"anyOf": rest, "title": name}, components), _NULL]


def _drop_defaults_of_unions(schemas: Schemas) -> None:
    """A generated client would write the value where its class for the union belongs, which no compiler takes: the
    defaults of properties of several types are said in their descriptions alone."""
    for schema in schemas.values():
        for inner in schema.get("properties", {}).values():
            named = schemas.get(inner.get("$ref", "").removeprefix(_PREFIX), {})
            if "anyOf" in inner or "anyOf" in named:
                inner.pop("default", None)


def _distinct(alternatives: list[Schema]) -> list[Schema]:
    """A number may be whole; saying so twice only makes generators invent a third type."""
    return [alternative for alternative in alternatives if alternative != _INTEGER or _NUMBER not in alternatives]


def _hoisted(schema: Schema, components: Schemas) -> Schema:
    title = schema.pop("title", None)
    if title is None:
        return schema
    default = {"default": schema.pop("default")} if "default" in schema else {}
    if components.setdefault(title, schema) != schema:
        raise AssertionError(f"two schemas are called {title}")
    return {"$ref": _PREFIX + title, **default}


def with_descriptions(schemas: dict[str, Any]) -> dict[str, Any]:
    """``schemas`` with the description of each property that a struct of the app declares."""
    shapes: dict[str, list[type[msgspec.Struct]]] = {}
    for shape in filter(is_ours, _structs(msgspec.Struct)):
        for name in {shape.__name__, name_of(shape.__module__, shape.__name__)}:
            shapes.setdefault(name, []).append(shape)
    return {name: _described(schema, shapes.get(name, ())) for name, schema in schemas.items()}


def _described(schema: dict[str, Any], called: Iterable[type[msgspec.Struct]]) -> dict[str, Any]:
    """``called``: structs of that name, of which the one with these fields is meant."""
    properties = schema.get("properties", {})
    meant = next(
        (shape for shape in called if {*shape.__struct_encode_fields__, *_tag(shape)} == set(properties)), None
    )
    if meant is None or not properties:
        return schema
    said = descriptions(meant)
    spelled = zip(meant.__struct_encode_fields__, meant.__struct_fields__, strict=True)
    texts = {name: said[field] for name, field in spelled if field in said} | _tag(meant)
    texted = {name: value | {"description": texts[name]} for name, value in properties.items() if name in texts}
    return schema | {"properties": properties | texted}


def _tag(shape: type[msgspec.Struct]) -> dict[str, str]:
    """The property that says which of several shapes it is, with its description; none where there is just one."""
    field = shape.__struct_config__.tag_field
    return {} if field is None else {field: "Which of the shapes that may stand here it is."}


def _structs(base: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for shape in base.__subclasses__():
        yield shape
        yield from _structs(shape)


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
    429: ("TooManyRequests", "Enough requests wait already, or bodies use all the memory set aside for them"),
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
    app: FastAPI, routes: Sequence[APIRoute], shapes: tuple[type, ...], common: dict[str, dict[str, Any]]
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
        for operation in item.values():
            _finish(operation, common)
            bodies.extend(references(operation.get("requestBody")))
    document["components"] = {
        "schemas": with_descriptions(portable(_schemas(shapes), bodies, common)),
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


def _finish(operation: dict[str, Any], common: dict[str, dict[str, Any]]) -> None:
    """What holds for every operation: who may call it, how its problems look, how long it may take."""
    operation["tags"] = list(dict.fromkeys(operation["tags"]))
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = of_parameter(parameter["schema"], common)
    for status, answer in list(operation["responses"].items()):
        if _is_problem(answer):
            operation["responses"][status] = {"$ref": f"#/components/responses/{PROBLEMS[int(status)][0]}"}
        else:
            answer["headers"] = answer.get("headers", {}) | _request_id()
    if not operation["security"]:
        for status in ("401", "403"):
            operation["responses"].pop(status, None)
    if "504" in operation["responses"]:
        operation["parameters"] = [*operation.get("parameters", ()), {"$ref": "#/components/parameters/RequestTimeout"}]
    operation["responses"] = dict(sorted(operation["responses"].items()))


def _is_problem(answer: dict[str, Any]) -> bool:
    """Ours, or FastAPI's own 422, which never leaves this service."""
    return MEDIA_TYPE in answer.get("content", ()) or "HTTPValidationError" in str(answer)


SUMMARY = "To run this, what must stop, and why?"
DESCRIPTION = """
Arbiter answers a scheduler's hardest question with the decisions of Kueue, YuniKorn, KAI Scheduler and YTsaurus.

Send a cluster's queues (inline, or stored as a configuration), what runs on it, and what waits. The answer says for
each ask whether it can start, which running work must stop for it, in which order, and by which rule. The same request
gives the same answer, byte for byte.

Every error is `application/problem+json`; `errors` names each field at fault by JSON pointer, unknown fields and query
parameters too. `HEAD` works wherever `GET` does.
"""
TAGS = [
    {"name": "decisions", "description": "Questions about a cluster"},
    {"name": "comparisons", "description": "The same question under several rule books"},
    {"name": "plans", "description": "Work that is not submitted yet"},
    {"name": "extenders", "description": "Schedulers that ask before they evict"},
    {"name": "decision log", "description": "What was answered, and answering it again"},
    {"name": "snapshots", "description": "States that stay: changed by deltas, named by decisions"},
    {"name": "clusters", "description": "Clusters that are followed live: how old, how much, by whom"},
    {"name": "shadow", "description": "Real preemptions beside what Arbiter says for the moment before"},
    {"name": "configurations", "description": "Stored settings, flavors and queue trees, with immutable revisions"},
    {"name": "simulations", "description": "Decisions over time: a trace of jobs, round by round"},
    {"name": "traces", "description": "Jobs and changes over time, to play on other configurations"},
    {"name": "access", "description": "Tokens, and the log of every write and of refusals"},
    {"name": "operations", "description": "Health, readiness and metrics"},
]

_CHOICES = {
    "EngineName": EngineName,
    "Explain": Explain,
    "Mode": Mode,
    "Outcome": Outcome,
    "Scope": Scope,
    "TaintEffect": TaintEffect,
    "TaskState": TaskState,
    "KueueFungibility": kueue.Fungibility,
    "KueueSorting": kueue.Sorting,
    "KueueStrategy": kueue.Strategy,
    "KaiAction": kai.Action,
    "Rules": ytsaurus.Rules,
    "YtsaurusMode": ytsaurus.Mode,
    "YtsaurusPreemptionMode": ytsaurus.PreemptionMode,
    "YtsaurusPriorityScope": ytsaurus.PriorityScope,
    "YtsaurusStarvation": ytsaurus.Starvation,
    "YtsaurusStatus": ytsaurus.Status,
}


def common() -> dict[str, dict[str, Any]]:
    """By name in the document."""
    quantity = {"$ref": SCHEMA.format(name="Quantity")}
    return {
        "Resources": {"type": "object", "additionalProperties": quantity},
        "ConfigurationOrName": {"anyOf": [{"type": "string"}, reference(Configuration)]},
        **{name: {"type": "string", "enum": list(get_args(of))} for name, of in _CHOICES.items()},
    }


def described(app: FastAPI, routes: Sequence[APIRoute], shapes: tuple[type, ...]) -> dict[str, Any]:
    """The OpenAPI document, as ``/openapi.json`` and openapi/openapi.json have it; ``shapes``: all structs that
    operations refer to."""
    return describe(app, routes, shapes, common())
