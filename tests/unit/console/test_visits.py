"""Visits and calls of the API behind pages: on requests made by hand, without a service."""

import asyncio
from typing import Any

import msgspec
import pytest
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.auth.audit import Caller
from app.base.errors import BadRequest, Forbidden, NotFound
from app.console import visit, words
from app.console.api import Api, ApiError, Reply, segment
from app.console.visit import Visit
from tests.support.instead import Instead
from tests.unit.console.requests import READER, Operations, operation, request


def api(operations: Operations, *scopes: str, **more: Any) -> Api:
    return Api(request(operations, **more), Caller("x", frozenset(scopes)))


def json(status: int = 200, **headers: str) -> Response:
    return Response(b'{"a":1}', status, headers)


def test_a_call_is_the_request_that_one_would_send() -> None:
    operations = Operations(v1__a=operation(json(ETag='"7"')))
    made = api(operations, headers={"cookie": "secret", "traceparent": "x"}, query="page=3")
    reply = asyncio.run(made.call("GET", "/v1/a", {"find": "x&y", "flag": True, "none": None, "n": 5}))
    assert (reply.status, reply.json(), reply.etag) == (200, {"a": 1}, '"7"')
    (ran,) = operations.ran
    assert (ran["method"], ran["query_string"], ran["headers"]) == ("GET", b"find=x%26y&flag=true&n=5", [])
    assert (ran["body"], ran["more"], ran["scheme"]) == (b"", False, "http")
    (call,) = made.calls
    assert (call.method, call.target, call.body) == ("GET", "/v1/a?find=x%26y&flag=true&n=5", None)
    assert asyncio.run(made.get("/v1/a")) == {"a": 1}
    assert made.calls[1].target == "/v1/a"


def test_a_body_is_json_or_the_bytes_given() -> None:
    operations = Operations(v1__a=operation(json()))
    made = api(operations)
    assert asyncio.run(made.ask("/v1/a", {"x": [1]})) == {"a": 1}
    asyncio.run(
        made.call("PUT", "/v1/a", None, b"kind", {"Content-Type": "application/yaml", "If-Match": None, "N": 5})
    )
    asyncio.run(made.call("POST", "/v1/a", None, None, {"A": "ü"}))
    said = [(one["method"], one["body"], dict(one["headers"])) for one in operations.ran]
    assert said == [
        ("POST", b'{"x":[1]}', {b"content-type": b"application/json", b"content-length": b"9"}),
        ("PUT", b"kind", {b"content-type": b"application/yaml", b"n": b"5", b"content-length": b"4"}),
        ("POST", b"", {b"a": "ü".encode()}),
    ]
    assert [call.body for call in made.calls] == [b'{"x":[1]}', b"kind", None]


def test_a_segment_of_a_path_is_one_whatever_it_holds() -> None:
    operations = Operations(**{"v1__a/b é": operation(json())})
    made = api(operations)
    asyncio.run(made.get(f"/v1/{segment('a/b é')}"))
    (ran,) = operations.ran
    assert (ran["path"], ran["raw_path"]) == ("/v1/a/b é", b"/v1/a%2Fb%20%C3%A9")
    assert made.calls[0].target == "/v1/a%2Fb%20%C3%A9"


def test_what_is_refused_is_told_as_the_api_tells_it() -> None:
    document = {"detail": "because", "errors": [{"pointer": "/a", "detail": "x"}]}
    operations = Operations(
        v1__a=operation(Response(msgspec.json.encode(document), 400, {"X": "y"})), v1__b=operation(json(399)),
        v1__none=operation(NotFound("there is none")), v1__page=operation(json(), page=True),
        v1__guarded=operation(json(), ("decide",)),
    )  # fmt: skip
    made = api(operations, "read")
    with pytest.raises(ApiError) as caught:
        asyncio.run(made.get("/v1/a"))
    assert (caught.value.status, caught.value.detail, caught.value.faults) == (400, "because", document["errors"])
    assert caught.value.headers["x"] == "y"
    assert ApiError(500, {}, {}).detail == ""
    assert ApiError(500, {}, {}).faults == []
    assert asyncio.run(made.get("/v1/b")) == {"a": 1}
    assert asyncio.run(made.find("/v1/none")) is None
    for path in ("/v1/page", "/v1/nowhere"):
        with pytest.raises(ApiError, match="there is no such operation") as caught:
            asyncio.run(made.get(path))
        assert caught.value.status == 404
    with pytest.raises(Forbidden, match="this needs scope decide"):
        asyncio.run(made.get("/v1/guarded"))
    with pytest.raises(ApiError):
        asyncio.run(made.find("/v1/a"))
    assert (made.may("read"), made.may("decide"), api(operations, "admin").may("decide")) == (True, False, True)
    assert asyncio.run(api(operations, "decide").get("/v1/guarded")) == {"a": 1}


def test_an_answer_in_pieces_is_whole_before_its_reader_goes_away() -> None:
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        going = asyncio.ensure_future(receive())
        await send({"type": "http.response.start", "status": 201, "headers": [(b"X-Y", b"\xfc")]})
        await send({"type": "http.response.body", "body": b"[1,", "more_body": True})
        await asyncio.sleep(0)
        assert not going.done()
        await send({"type": "http.response.body", "body": b"2]"})
        assert await going == {"type": "http.disconnect"}
        await send({"type": "http.response.trailers"})

    reply = asyncio.run(api(Operations(v1__a=operation(answer))).call("GET", "/v1/a"))
    assert reply == Reply(201, b"[1,2]", {"x-y": "ü"})
    assert reply.etag is None

    async def nothing(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive, send

    with pytest.raises(msgspec.DecodeError):
        asyncio.run(api(Operations(v1__a=operation(nothing))).call("GET", "/v1/a"))


def test_a_visit_knows_who_looks_and_what_every_page_has() -> None:
    one = Visit(request(path="/queues", query="find=x", caller=READER, headers={"hx-request": "true"}))
    assert (one.may("read"), one.may("decide")) == (True, False)
    common = one.common()
    assert (common["path"], common["here"], common["origin"]) == ("/queues", "/queues?find=x", "http://arbiter.test")
    assert (common["part"], common["guarded"], common["signed_in"], common["visit"]) == (True, True, None, one)
    assert [entry.title for entry in common["entries"] if entry.current] == ["Queues"]
    assert one.sessions.is_stamp(one.session, common["stamp"])
    plain = Visit(request(settings={"authentication": "open"})).common()
    assert (plain["here"], plain["part"], plain["guarded"]) == ("/", False, False)
    assert Visit(request(settings={"authentication": "open"})).may("admin")
    assert not Visit(request()).may("read")


def test_a_session_is_that_of_the_cookie_or_a_new_one_that_is_sent() -> None:
    first = Visit(request())
    answer = first.go("/queues")
    assert (answer.status_code, answer.headers["location"]) == (303, "/queues")
    assert "set-cookie" not in answer.headers, "nobody asked for a session"
    session = first.session
    assert first.session is session
    cookie = first.go("/").headers["set-cookie"]
    assert "max-age" not in cookie.lower()
    again = Visit(request(headers={"cookie": cookie.partition(";")[0]}))
    assert again.session.id == session.id
    assert "set-cookie" not in again.go("/").headers
    forged = Visit(request(headers={"cookie": "arbiter_session=forged"}))
    assert forged.session.id != session.id
    assert "set-cookie" in forged.go("/").headers


def form(body: bytes, **headers: str) -> Request:
    said = {"content-type": "application/x-www-form-urlencoded", **headers}
    return request(method="POST", body=body, headers=said)


def test_a_form_is_read_once_and_stamped() -> None:
    one = Visit(form(b"a=1&b=&a=2&c=%C3%BC"))
    assert asyncio.run(one.form()) == {"a": "2", "b": "", "c": "ü"}
    assert asyncio.run(one.form()) == {"a": "2", "b": "", "c": "ü"}
    with pytest.raises(Forbidden, match="load the page again"):
        asyncio.run(one.check_form())
    for wrong in (b"\xff", b"&".join(b"a=1" for _ in range(2001))):
        with pytest.raises(BadRequest, match="the form can't be read"):
            asyncio.run(Visit(form(wrong)).form())
    assert asyncio.run(Visit(form(b"&".join(b"a=1" for _ in range(2000)))).form()) == {"a": "1"}
    begun = Visit(request())
    stamp, cookie = begun.common()["stamp"], begun.go("/").headers["set-cookie"].partition(";")[0]
    asyncio.run(Visit(form(f"stamp={stamp}".encode(), cookie=cookie)).check_form())


def test_requests_behind_a_page_are_told_as_one_would_send_them() -> None:
    operations = Operations(v1__a=operation(json()))
    one = Visit(request(operations, caller=READER))
    asyncio.run(one.api.get("/v1/a", {"x": "it's"}))
    asyncio.run(one.api.ask("/v1/a", {"x": "it's"}))
    asyncio.run(one.api.call("PUT", "/v1/a", body=b"y" * 100_001))
    token = '-H "Authorization: Bearer $ARBITER_TOKEN"'
    media = "-H 'Content-Type: application/json'"
    assert one.curl() == [
        f"curl -s \\\n  'http://arbiter.test/v1/a?x=it%27s' \\\n  {token}",
        f"curl -s -X POST \\\n  'http://arbiter.test/v1/a' \\\n  {token} \\\n  {media} \\\n"
        "  --data-binary '{\"x\":\"it'\\''s\"}'",
        f"curl -s -X PUT \\\n  'http://arbiter.test/v1/a' \\\n  {token} \\\n  {media} \\\n"
        "  --data-binary '@request.json'",
    ]
    plain = Visit(request(operations, settings={"authentication": "open"}))
    asyncio.run(plain.api.call("PUT", "/v1/a", body=b"y" * 100_000))
    assert plain.curl() == [
        f"curl -s -X PUT \\\n  'http://arbiter.test/v1/a' \\\n  {media} \\\n  --data-binary '{'y' * 100_000}'"
    ]


def handled(endpoint: Any, of: Request) -> Response:
    route = visit.PageRoute("/", endpoint, methods=[of.method])
    return asyncio.run(route.get_route_handler()(of))


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ApiError(409, {"title": "T", "detail": "a <b>"}, {}), 409, "a &lt;b&gt;"),
        (NotFound("there is none"), 404, "there is none"),
        (HTTPException(418, "a teapot"), 418, "a teapot"),
        (RequestValidationError([{"loc": ("query", "page"), "msg": "too much"}]), 422, "too much"),
    ],
)
def test_what_goes_wrong_is_a_page(instead: Instead, error: Exception, status: int, said: str) -> None:
    async def endpoint(request: Request) -> Response:
        raise error

    instead(visit.APIRoute, get_route_handler=lambda _: endpoint)
    operations = Operations(**{"": operation(page=True)})
    answer = handled(endpoint, request(operations, caller=READER))
    assert answer.status_code == status
    assert said in bytes(answer.body).decode()
    assert "<html" in bytes(answer.body).decode()


def test_forms_without_a_stamp_and_unknown_parameters_reach_no_page(instead: Instead) -> None:
    reached: list[str] = []

    async def endpoint(request: Request) -> Response:
        reached.append(request.method)
        return Response()

    instead(visit.APIRoute, get_route_handler=lambda _: endpoint)
    operations = Operations(**{"": operation(page=True)})
    for method in ("GET", "HEAD"):
        assert handled(endpoint, request(operations, method=method)).status_code == 200
    assert handled(endpoint, request(operations, query="unknown=1")).status_code == 422
    media = {"content-type": "application/x-www-form-urlencoded"}
    assert handled(endpoint, request(operations, method="POST", headers=media)).status_code == 403
    assert reached == ["GET", "HEAD"]


def test_the_visit_of_a_request_is_one() -> None:
    one = request()
    assert asyncio.run(visit._visiting(one)) is asyncio.run(visit._visiting(one))  # pyright: ignore


def test_a_page_is_an_ordinary_answer_unless_it_says_otherwise() -> None:
    one = Visit(request(caller=READER))
    problem = {"title": "T", "detail": "because"}
    assert one.show("failure.html", problem=problem, status=404).status_code == 200
    assert one.show("failure.html", 404, problem=problem, status=404).status_code == 404


def test_what_nobody_sees_is_marked_and_stays_what_it_was() -> None:
    page = (
        "<title>a\u200bb</title><p title='\u202e'>x\u202ey \U0001f468\u200d\U0001f469 z\u200dz 1\u202f000</p>"
        "<svg><text>\u00ad</text></svg><textarea>\u200b</textarea><option>\u200b</option>"
    )
    assert words.marked(page) == (
        "<title>a[U+200B]b</title><p title='\u202e'>"
        'x<span class="unseen" title="right-to-left override" data-code="U+202E">\u202e</span>y '
        '\U0001f468\u200d\U0001f469 z<span class="unseen" title="zero width joiner" data-code="U+200D">\u200d</span>z '
        "1\u202f000</p><svg><text>[U+00AD]</text></svg><textarea>\u200b</textarea><option>\u200b</option>"
    )
    assert words.marked("<p>plain \u05e9</p>") == "<p>plain \u05e9</p>"
