"""From a path to its operation: templates, methods, parameters that nobody knows, and who is answered by a page."""

import asyncio
import json
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI, Request
from starlette.responses import Response
from starlette.routing import Match

from app.http import responses
from app.http.openapi import Limit, operation, page
from app.http.routing import Operations, Resolved, install, is_for_people, names_of

Json = dict[str, Any]
OPEN: Json = operation(needs=None, responses={200: None})
GUARDED: Json = operation(needs="read", responses={200: None})
router = APIRouter()


@router.get("/v1/things", **OPEN)
def things(limit: Limit = 5) -> Response:
    return Response(f"things {limit}")


@router.post("/v1/things", **operation(needs="write", responses={200: None}))
def post_things(request: Request) -> Response:
    return Response("posted")


@router.get("/v1/things/{name}", **GUARDED)
def thing(name: str) -> Response:
    return Response(f"thing {name}")


@router.put("/v1/things/{name}", **operation(needs="write", responses={200: None}))
def put_thing(request: Request) -> Response:
    return Response(f"put {request.path_params['name']}")


@router.get("/v1/things/newest", **OPEN)
def newest(request: Request) -> Response:
    return Response("newest")


@router.get("/v1/{kind}/{name}/parts", **GUARDED)
def parts(kind: str, name: str) -> Response:
    return Response(f"parts {kind} {name}")


@router.get("/v1/things/{name}/{part}", **GUARDED)
def part(name: str, part: str) -> Response:
    return Response(f"part {name} {part}")


@router.get("/people", **page("read"))
def people(request: Request) -> Response:
    return Response("people")


def app() -> FastAPI:
    """Anew for each test, and not where tests are collected: making it is a part of what is tested."""
    made = FastAPI()
    responses.install(made)
    install(made, [router])
    return made


def operations() -> Operations:
    (found,) = app().router.routes
    assert isinstance(found, Operations)
    return found


def scope(method: str, path: str, query: str = "", accept: str = "") -> Json:
    headers = [(b"accept", accept.encode())]
    return {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": headers,
            "scheme": "http", "server": ("h", 80), "http_version": "1.1"}  # fmt: skip


def asked(given: Json) -> tuple[int, Any, Json]:
    """Status, body and headers."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    asyncio.run(app()(given, receive, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    body = b"".join(message["body"] for message in sent[1:])
    return sent[0]["status"], json.loads(body) if "json" in headers.get("content-type", "") else body.decode(), headers


@pytest.mark.parametrize(
    ("method", "path", "answer"),
    [
        ("GET", "/v1/things", "things 5"), ("GET", "/v1/things/a", "thing a"), ("PUT", "/v1/things/a", "put a"),
        ("GET", "/v1/things/newest", "newest"), ("GET", "/v1/things/a/parts", "part a parts"),
        ("GET", "/v1/others/a/parts", "parts others a"), ("GET", "/people", "people"),
        ("GET", "/v1/things/a\n", "thing a\n"),
    ],
)  # fmt: skip
def test_a_path_means_the_template_with_the_most_text(method: str, path: str, answer: str) -> None:
    assert asked(scope(method, path))[:2] == (200, answer)


def test_head_is_get() -> None:
    made = operations()
    assert made.resolve(scope("HEAD", "/v1/things")) == made.resolve(scope("GET", "/v1/things"))
    assert made.resolve(scope("DELETE", "/v1/things")).operation is None


def test_what_there_is_not() -> None:
    nothing = operations().resolve(scope("GET", "/v1/nobody"))
    assert nothing == Resolved(None, None, {})
    assert asked(scope("GET", "/v1/nobody"))[0] == 404
    status, _, headers = asked(scope("DELETE", "/v1/things/a"))
    assert (status, headers["allow"]) == (405, "GET, HEAD, PUT")
    status, _, headers = asked(scope("DELETE", "/v1/things/newest"))
    assert (status, headers["allow"]) == (405, "GET, HEAD")
    alone = APIRouter()
    alone.put("/x", **OPEN)(newest)
    (place,) = install(FastAPI(), [alone]).places
    assert place.allowed == "PUT"


def test_what_is_no_request_has_no_place() -> None:
    assert operations().matches(scope("GET", "/v1/things")) == (Match.FULL, {})
    assert operations().matches(scope("GET", "/v1/nobody")) == (Match.NONE, {})
    assert operations().matches({"type": "websocket", "path": "/v1/things"}) == (Match.NONE, {})
    assert operations().matches({"type": "websocket"} | {"method": "GET", "path": "/v1/things"}) == (Match.NONE, {})


def test_what_is_found_is_kept_with_the_request() -> None:
    given = scope("GET", "/v1/things/a")
    found = operations().resolve(given)
    assert found.parameters == {"name": "a"}
    assert operations().resolve(given | {"path": "/people"}) is found


def test_who_may_come() -> None:
    needs = {
        (place.template, method): one.needs for place in operations().places for method, one in place.operations.items()
    }
    assert needs == {
        ("/v1/things", "GET"): (), ("/v1/things", "POST"): ("write",),
        ("/v1/things/{name}", "GET"): ("read",), ("/v1/things/{name}", "PUT"): ("write",),
        ("/v1/things/newest", "GET"): (), ("/v1/{kind}/{name}/parts", "GET"): ("read",),
        ("/v1/things/{name}/{part}", "GET"): ("read",), ("/people", "GET"): ("read",),
    }  # fmt: skip
    assert {place.template for place in operations().places if place.is_public} == {"/v1/things/newest"}


def test_what_it_does_not_know_it_refuses() -> None:
    assert asked(scope("GET", "/v1/things", "limit=7"))[:2] == (200, "things 7")
    status, document, _ = asked(scope("GET", "/v1/things", "colour=red&limit=0&shade=&colour=blue"))
    assert status == 422
    assert [error["parameter"] for error in document["errors"]] == ["limit", "colour", "shade"]
    assert document["errors"][1:] == [
        {"parameter": "colour", "detail": "unknown parameter"}, {"parameter": "shade", "detail": "unknown parameter"},
    ]  # fmt: skip
    assert asked(scope("GET", "/v1/things/newest", "limit=7"))[0] == 422, "which takes the request as it is"
    assert asked(scope("GET", "/people", "colour=red"))[:2] == (200, "people"), "pages refuse it as pages"


def test_which_names_an_answer_is_counted_under() -> None:
    for method, path, names in (
        ("GET", "/v1/things/a", ("GET", "/v1/things/{name}")), ("HEAD", "/people", ("HEAD", "/people")),
        ("BREW", "/v1/things/a", ("other", "/v1/things/{name}")), ("GET", "/nobody", ("other", "other")),
    ):  # fmt: skip
        given = scope(method, path)
        assert names_of(given) == ("other", "other"), "nobody has looked yet"
        operations().resolve(given)
        assert names_of(given) == names


@pytest.mark.parametrize(
    ("method", "path", "accept", "page"),
    [
        ("GET", "/people", "", True), ("POST", "/people", "text/html", False),
        ("GET", "/v1/things", "text/html", False), ("GET", "/nobody", "text/html,*/*", True),
        ("HEAD", "/nobody", "text/html", True), ("POST", "/nobody", "text/html", False),
        ("GET", "/nobody", "application/json", False), ("GET", "/v1/nobody", "text/html", False),
    ],
)  # fmt: skip
def test_whom_a_page_answers(method: str, path: str, accept: str, page: bool) -> None:
    given = scope(method, path, accept=accept)
    assert is_for_people(given, operations().resolve(given)) is page


def test_an_operation_is_there_once() -> None:
    twice = APIRouter()
    for _ in range(2):
        twice.get("/x", **OPEN)(newest)
    with pytest.raises(AssertionError, match="GET /x is there twice"):
        install(FastAPI(), [twice])


def test_a_route_says_who_may_come() -> None:
    silent = APIRouter()
    silent.get("/x")(newest)
    with pytest.raises(AssertionError, match="every route says"):
        install(FastAPI(), [silent])


def test_only_what_needs_something_worked_out_has_it_worked_out() -> None:
    """An operation that takes the request and gives a response is called as it is."""
    made = operations()
    apps = {place.template: place.operations["GET"].app for place in made.places}
    routes = {one.path: one.app for one in made.routes if "GET" in (one.methods or ())}
    worked_out = {template for template, app in apps.items() if app is routes[template]}
    assert worked_out == set(apps) - {"/v1/things/newest", "/people"}
