"""From a path to its operation, found once: the same one is authorized, counted and carried out, with its services.

A path belongs to one template, that with the most literal text of those that it matches as a whole, and knows all
methods of that template; HEAD is GET without the body (RFC 9110, section 9.3.2). FastAPI's own matching overlooks a
line break at the end of a path, knows the methods of one route at a time, and whoever wants to know beforehand which
route it will find has to find it by other means.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from functools import cache, cached_property
from typing import Any, ClassVar, TypeVar, get_args, get_type_hints
from urllib.parse import parse_qsl

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends, Header, Path, Query
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import Headers, State
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.http.openapi import is_page, needed_by, takes_basic

T = TypeVar("T")


class Services:
    """A frozen dataclass of objects by name, no two of one type.

    Services are found by their type: a router gets what it asked for, with its type, and nothing here imports what it
    hands out. They are wired once when the app is created, and never changed after that.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @cached_property
    def _by_type(self) -> dict[type[Any], Any]:
        instances: dict[type[Any], Any] = {
            type(instance): instance for instance in (getattr(self, field.name) for field in fields(self))
        }
        if len(instances) != len(fields(self)):
            raise ValueError("two services of one type")
        return instances

    def of(self, kind: type[T]) -> T:
        """The service of that very type. Raises KeyError where there is none."""
        instance: T = self._by_type[kind]
        return instance


def provide(state: State, services: Services) -> None:
    """Where ``service`` finds them."""
    state.services = services


def service(request: HTTPConnection, kind: type[T]) -> T:
    """What the app that answers ``request`` has of that type."""
    services: Services = request.app.state.services
    return services.of(kind)


def provided(kind: type[T]) -> Any:
    """The same as a dependency of an operation, for its annotation."""

    async def get(request: Request) -> T:  # async: a plain function would cost a thread each time
        return service(request, kind)

    return Depends(get)


def of_scope(scope: Scope, kind: type[T]) -> T:
    """The same for middleware, which has no request yet."""
    services: Services = scope["app"].state.services
    return services.of(kind)


_RESOLVED = "arbiter.resolved"
_PROGRAMS = "/v1/"
_KEY = b"idempotency-key"
_PARAMETER = re.compile(r"\{[^}]*\}")


@dataclass(frozen=True)
class Parameter:
    """A parameter of the path or the query, as an endpoint or what it depends on declares it. ``hint``: its type with
    its bounds; ``required``: whether it has to be there."""

    alias: str
    hint: Any
    required: bool

    @cached_property
    def _reader(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.hint)

    def faults(self, where: str, given: Mapping[str, str]) -> list[dict[str, Any]]:
        """What is wrong with it in ``given``, in FastAPI's words."""
        value = given.get(self.alias)
        if value is None:
            return [{"loc": (where, self.alias), "msg": "Field required"}] if self.required else []
        try:
            self._reader.validate_python(value)
        except ValidationError as wrong:
            return [{"loc": (where, self.alias, *fault["loc"]), "msg": fault["msg"]} for fault in wrong.errors()]
        return []


@cache  # endpoints are declared once, and every application of the process asks of them what it needs
def _signature_of(call: Callable[..., Any]) -> tuple[Mapping[str, Any], Mapping[str, inspect.Parameter]]:
    """Hints with what is annotated, and parameters, by name."""
    return get_type_hints(call, include_extras=True), inspect.signature(call).parameters


@cache
def parameters_of(call: Callable[..., Any], kind: type[Path] | type[Query] | type[Header]) -> Sequence[Parameter]:
    """Those of the path, the query or the headers that ``call`` declares, then those that what it depends on does."""
    parameters: list[Parameter] = []
    below: list[Parameter] = []
    hints, declared = _signature_of(call)
    for name, parameter in declared.items():
        for said in getattr(hints.get(name), "__metadata__", ()):
            if isinstance(said, kind):
                required = parameter.default is inspect.Parameter.empty
                parameters.append(Parameter(said.alias or name, hints[name], required))
            elif isinstance(said, Depends):  # without a word on what: on its type
                below += parameters_of(said.dependency or get_args(hints[name])[0], kind)
    return parameters + below


def _unplaced(call: Callable[..., Any]) -> list[str]:
    """Parameters that nothing says the place of: FastAPI would take them from the query, and they are refused there."""
    hints, declared = _signature_of(call)
    defaulted = (name for name, parameter in declared.items() if parameter.default is not inspect.Parameter.empty)
    return [name for name in defaulted if not hasattr(hints.get(name), "__metadata__")]


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one template. ``needs``: the scopes of which one is enough; none for what is public. ``page``: it
    answers people. ``keyed``: its answers are kept by the key that a request has."""

    app: ASGIApp
    needs: tuple[str, ...]
    path: Sequence[Parameter]
    query: Sequence[Parameter]
    page: bool
    keyed: bool = False
    basic: bool = False
    """Whether the token may come as the password of Basic credentials."""

    def refuse_key(self, scope: Scope) -> None:
        """Raises RequestValidationError where a request has a key and would be done twice all the same."""
        if not self.keyed and any(name == _KEY for name, _ in scope["headers"]):
            detail = "no answers of this operation are kept: send it without a key"
            raise RequestValidationError([{"loc": ("header", "Idempotency-Key"), "msg": detail}])

    def refuse_unknown(self, request: Request) -> None:
        """Raises RequestValidationError where the query holds a parameter that this doesn't know, or a NUL, which no
        text of the database can be compared with; with all else that is wrong with the address."""
        given = parse_qsl(request.url.query, keep_blank_values=True)
        known = {parameter.alias for parameter in self.query}
        unknown = [
            {"loc": ("query", name), "msg": "unknown parameter"}
            for name in dict.fromkeys(name for name, _ in given) if name not in known
        ]  # fmt: skip
        unknown += [{"loc": ("query", name), "msg": "it holds a NUL"} for name, value in given if "\0" in value]
        if unknown:
            wrong = [fault for declared in self.path for fault in declared.faults("path", request.path_params)]
            wrong += [fault for declared in self.query for fault in declared.faults("query", request.query_params)]
            raise RequestValidationError([*wrong, *unknown])


@dataclass(frozen=True, slots=True)
class Place:
    """A template such as ``/v1/snapshots/{name}`` and its operations by method."""

    template: str
    pattern: re.Pattern[str]
    operations: dict[str, Operation] = field(default_factory=dict[str, Operation])

    def literal_length(self) -> int:
        """How many letters of the template stand for themselves."""
        return len(_PARAMETER.sub("", self.template))

    @property
    def is_public(self) -> bool:
        """Whether everything here is."""
        return all(not operation.needs for operation in self.operations.values())

    @property
    def allowed(self) -> str:
        """All methods, as ``Allow`` names them."""
        also = ("HEAD",) if "GET" in self.operations else ()
        return ", ".join(sorted({*self.operations, *also}))


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a request means: nothing without ``place``, a method that the place has not without ``operation``."""

    place: Place | None
    operation: Operation | None
    parameters: dict[str, str]


def is_for_people(scope: Scope, match: Resolved) -> bool:
    """Whether a page answers: one of ours, or that which says that there is none at an address that a browser tries."""
    if match.place is not None:
        return match.operation is not None and match.operation.page
    tried = scope["method"] in ("GET", "HEAD") and not scope["path"].startswith(_PROGRAMS)
    return tried and "text/html" in Headers(scope=scope).get("accept", "")


def names_of(scope: Scope) -> tuple[str, str]:
    """Method and template of the operation that answered; ``other`` for what is none, whatever was sent."""
    match = scope.get(_RESOLVED)
    if not isinstance(match, Resolved) or match.place is None:
        return "other", "other"
    return ("other" if match.operation is None else scope["method"]), match.place.template


class Operations(BaseRoute):
    """The only route of the application: finds the operation and runs it."""

    def __init__(self, routes: Iterable[APIRoute]) -> None:
        self.routes = list(routes)
        self._exact: dict[str, Place] = {}
        self._places: dict[str, Place] = {}
        for route in self.routes:
            self._add(route)
        self._patterned = sorted(self._places.values(), key=Place.literal_length, reverse=True)

    @property
    def places(self) -> list[Place]:
        """Every template with its operations."""
        return list(self._places.values())

    def resolve(self, scope: Scope) -> Resolved:
        """What the request of ``scope`` means; looked up once, then kept there."""
        known = scope.get(_RESOLVED)
        if isinstance(known, Resolved):
            return known
        match = scope[_RESOLVED] = self._find(scope["method"], scope["path"])
        return match

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether there is a place for the request of ``scope``, whatever its method."""
        there = scope["type"] == "http" and self.resolve(scope).place is not None
        return (Match.FULL if there else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the operation. Raises HTTPException (405), RequestValidationError."""
        match = self.resolve(scope)
        assert match.place is not None
        if match.operation is None:
            raise HTTPException(405, headers={"Allow": match.place.allowed})
        scope["path_params"] = match.parameters
        if scope["query_string"] and not match.operation.page:  # pages refuse it themselves, as a page
            match.operation.refuse_unknown(Request(scope))
        if scope["method"] not in ("GET", "HEAD"):
            match.operation.refuse_key(scope)
        await match.operation.app(scope, receive, send)

    def _add(self, route: APIRoute) -> None:
        template = route.path_format
        assert not (unplaced := _unplaced(route.endpoint)), f"{template}: say that {unplaced} are of the query"
        place = self._places.get(template)
        if place is None:
            place = self._places[template] = Place(template, re.compile(route.path_regex.pattern, re.DOTALL))
            if "{" not in template:
                self._exact[template] = place
        operation = Operation(
            app=_app_of(route),
            needs=needed_by(route.openapi_extra),
            path=parameters_of(route.endpoint, Path),
            query=parameters_of(route.endpoint, Query),
            page=is_page(route.openapi_extra),
            keyed=any(header.alias.lower().encode() == _KEY for header in parameters_of(route.endpoint, Header)),
            basic=takes_basic(route.openapi_extra),
        )
        for method in route.methods or ():
            assert method not in place.operations, f"{method} {template} is there twice"
            place.operations[method] = operation

    def _find(self, method: str, path: str) -> Resolved:
        place, parameters = self._place(path)
        if place is None:
            return Resolved(None, None, {})
        return Resolved(place, place.operations.get("GET" if method == "HEAD" else method), parameters)

    def _place(self, path: str) -> tuple[Place | None, dict[str, str]]:
        if (exact := self._exact.get(path)) is not None:
            return exact, {}
        for place in self._patterned:
            if (match := place.pattern.fullmatch(path)) is not None:
                return place, match.groupdict()
        return None, {}


def _app_of(route: APIRoute) -> ASGIApp:
    """What answers. An operation that takes the request as it is and gives a response needs nothing that FastAPI works
    out beforehand, which takes as long as a tenth of a small decision; nor does one that knows parameters, all of the
    query, where a request has none."""
    hints, declared = _signature_of(route.endpoint)
    named = list(declared)
    optional = [parameter.alias for parameter in parameters_of(route.endpoint, Query) if not parameter.required]
    if not named or named[1:] != optional or (hints[named[0]], hints.get("return")) != (Request, Response):
        return route.app
    plain = Route(route.path, route.endpoint).app
    if not optional:
        return plain

    async def either(scope: Scope, receive: Receive, send: Send) -> None:
        await (route.app if scope["query_string"] else plain)(scope, receive, send)

    return either


def install(app: FastAPI, routers: Iterable[APIRouter]) -> Operations:
    """Let every request to ``app`` go by the operations of ``routers``.

    They are taken as declared, a router's own: FastAPI's inclusion of one router into another works every one of them
    out again for every application.
    """
    declared = [route for router in routers for route in router.routes]
    assert all(isinstance(route, APIRoute) for route in declared), "a router that includes another"
    operations = Operations(route for route in declared if isinstance(route, APIRoute))
    app.router.routes[:] = [operations]
    return operations
