"""What stands around every request: its time, its id, its line, compression; and how errors are told."""

import asyncio
import gzip
import json
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from structlog.testing import capture_logs

from app.base.decoding import Malformed
from app.base.errors import ArbiterError, BadInput, Conflict, Unavailable
from app.base.identifiers import Proxies
from app.base.ticket import requested_timeout, spend_timeout, timeout_within
from app.http import middleware as requests
from app.http import responses
from app.http.body import Budget, hold_of
from app.http.middleware import (
    FAULT,
    CompressionMiddleware,
    ForwardedMiddleware,
    RequestMiddleware,
    TimeoutMiddleware,
    TurnsMiddleware,
)
from app.http.routing import provide
from app.solver.model.problems import Finding, InvalidInput, Problem
from tests.support.instead import Clock
from tests.support.services import services

Json = dict[str, Any]


def called(
    middleware: Callable[[Any], Any], application: Any, scope: Json | None = None, **headers: str
) -> tuple[int, Headers, bytes]:
    """What comes out of one request; the status is 0 where nothing does."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    raw = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    given = {"type": "http", "method": "GET", "path": "/v1/x", "headers": raw, "query_string": b"", **(scope or {})}
    asyncio.run(middleware(application)(given, receive, send))
    if not sent:
        return 0, Headers(), b""
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], Headers(raw=sent[0]["headers"]), body


def says(body: bytes, media: str = "application/json", **headers: str) -> Any:
    return Response(body, media_type=media, headers={name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("2", 2.0), ("0.5", 0.5), ("500ms", 0.5), ("1m30s", 90.0), ("999999999", 999999999.0), ("5.", 5.0)],
)
def test_how_long_the_caller_waits(value: str, seconds: float) -> None:
    found: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        found.extend((requested_timeout(), timeout_within(1.0), timeout_within(1e12)))
        spend_timeout(1.5, 2.0)
        found.append(requested_timeout())
        spend_timeout(2.5, 2.0)
        found.append(requested_timeout())

    called(TimeoutMiddleware, application, request_timeout=value)
    assert found == [seconds, min(seconds, 1.0), seconds, 0.5, 0.001]
    assert requested_timeout() is None


def test_what_one_request_allows_is_not_for_the_next() -> None:
    found: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        found.append(requested_timeout())

    async def receive() -> Any:
        raise AssertionError

    async def both() -> None:
        scope = {"type": "http", "headers": [(b"request-timeout", b".5")]}
        await TimeoutMiddleware(application)(scope, receive, receive)  # pyright: ignore[reportArgumentType]
        found.append(requested_timeout())

    asyncio.run(both())
    assert found == [0.5, None]


@pytest.mark.parametrize("value", ["0", "-1", "soon", "", "0s", "1e9", "1000000000", "nan", "٣", "1.2.3", "."])
def test_what_is_no_time_to_wait(value: str) -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError

    raw = [(b"request-timeout", value.encode())]
    status, headers, body = called(TimeoutMiddleware, application, {"headers": raw})
    assert (status, headers["content-type"]) == (400, "application/problem+json")
    assert json.loads(body) == {
        "type": "about:blank", "title": "Bad request", "status": 400, "instance": "/v1/x",
        "detail": "Request-Timeout is a positive number of seconds or a duration like 500ms",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("listed", "peer", "client", "scheme"),
    [
        ("", ("127.0.0.1", 5), ("127.0.0.1", 5), "https"), ("", ("::1", 5), ("::1", 5), "https"),
        ("", ("10.0.0.1", 5), ("10.0.0.1", 5), "http"), ("10.0.0.2", ("10.0.0.1", 5), ("10.0.0.1", 5), "http"),
        ("10.0.0.1", ("10.0.0.1", 5), ("192.0.2.7", 0), "https"), ("", None, None, "http"), ("*", None, None, "http"),
        ("*", ("10.0.0.1", 5), ("192.0.2.7", 0), "https"), ("127.0.0.1", ("127.0.0.1", 5), ("192.0.2.7", 0), "https"),
    ],
)  # fmt: skip
def test_whom_a_proxy_asks_for_is_believed_of_those_who_are_named(
    listed: str, peer: tuple[str, int] | None, client: tuple[str, int] | None, scheme: str
) -> None:
    seen: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["client"], scope["scheme"]))

    raw = [
        (b"x-forwarded-for", b"6.6.6.6"), (b"x-forwarded-proto", b" HTTPS "), (b"x-forwarded-for", b"192.0.2.7"),
    ]  # fmt: skip

    async def three_times() -> None:
        behind = ForwardedMiddleware(application, Proxies.named(listed))
        for headers in (raw, raw, [(b"x-forwarded-proto", b"gopher")]):
            scope: Any = {"type": "http", "headers": headers, "client": peer, "scheme": "http"}
            await behind(scope, None, None)  # pyright: ignore[reportArgumentType]

    with capture_logs() as lines:
        asyncio.run(three_times())
    assert seen == [(client, scheme), (client, scheme), (peer, "http")]
    ignored = peer is not None and client == peer
    assert [line["address"] for line in lines] == ([peer[0]] if ignored and peer else []), "said once, to be mended"


def begun(arrivals: list[tuple[str, str]]) -> list[int]:
    """Which of requests that arrive at once begins when; each comes from an address for a path."""
    order: list[int] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        order.append(scope["number"])

    async def silent() -> Any:
        raise AssertionError

    async def all_at_once() -> None:
        turns = TurnsMiddleware(application)
        scopes = [
            {"type": "http", "path": path, "client": (address, 1), "number": number}
            for number, (address, path) in enumerate(arrivals)
        ]
        await asyncio.gather(*(turns(scope, silent, silent) for scope in scopes))  # pyright: ignore[reportArgumentType]

    asyncio.run(all_at_once())
    return order


@given(
    st.lists(st.tuples(st.sampled_from(["10.0.0.1", "10.0.0.2", "fe80::1"]), st.sampled_from(["/v1/x", "/healthz"])))
)
def test_each_address_has_its_turn(arrivals: list[tuple[str, str]]) -> None:
    """Everything begins once, an address' own in the order in which they came, and none waits for more of another
    address than of its own, and of all others together no more than one each for each of its own."""
    order = begun(arrivals)
    assert sorted(order) == list(range(len(arrivals)))
    at_once = 4
    assert order[:at_once] == list(range(len(arrivals)))[:at_once]
    owners = ["" if path == "/healthz" else address for address, path in arrivals]
    of = {owner: [number for number in order[at_once:] if owners[number] == owner] for owner in owners}
    place = {number: i for i, number in enumerate(order[at_once:])}
    for numbers in of.values():
        assert numbers == sorted(numbers)
        for rank, number in enumerate(numbers):
            assert place[number] < (rank + 1) * len(of)


def test_a_few_begin_in_each_turn_of_the_loop() -> None:
    seen: list[int] = []
    turn = 0

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(turn)

    async def silent() -> Any:
        raise AssertionError

    async def many() -> None:
        nonlocal turn
        turns = TurnsMiddleware(application)
        scope = {"type": "http", "path": "/", "client": ("a", 1)}
        waiting = [asyncio.ensure_future(turns(dict(scope), silent, silent)) for _ in range(40)]  # pyright: ignore
        while not all(task.done() for task in waiting):
            await asyncio.sleep(0)
            turn += 1

    asyncio.run(many())
    assert len(seen) == 40
    assert max(Counter(seen).values()) <= 4


def test_waiting_for_a_turn_is_part_of_what_the_caller_waits() -> None:
    left: list[float | None] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        left.append(requested_timeout())

    called(TimeoutMiddleware, application, {"arbiter.waited": 1.5}, request_timeout="2")
    called(TimeoutMiddleware, application, {"arbiter.waited": 3.0}, request_timeout="2")
    called(TimeoutMiddleware, application, {"arbiter.waited": 3.0})
    assert left == [0.5, 0.001, None]


def test_who_says_nothing_waits_for_as_long_as_it_takes() -> None:
    found: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        found.extend((requested_timeout(), timeout_within(7.0)))

    called(TimeoutMiddleware, application)
    called(TimeoutMiddleware, application, {"type": "lifespan", "headers": [(b"request-timeout", b"1")]})
    assert found == [None, 7.0, None, 7.0]


LONG = b'{"x": "' + b"y" * 4087 + b'"}'
assert len(LONG) == 4096


@pytest.mark.parametrize(
    ("response", "accepted", "coding"),
    [
        (says(LONG), "gzip", "gzip"), (says(LONG), "gzip, zstd", "zstd"), (says(LONG), "br", None),
        (says(LONG[:-1]), "gzip", None), (says(LONG, "application/problem+json"), "zstd", "zstd"),
        (says(LONG, "text/html"), "zstd", "zstd"),
        (says(LONG, "application/javascript"), "gzip", "gzip"), (says(LONG, "image/png"), "zstd", None),
        (says(LONG, content_encoding="br"), "zstd", None), (says(LONG * 17), "zstd", "zstd"),
        (says(LONG * 17), "gzip", "gzip"), (says(LONG), "zstd;q=0.00, gzip; q=0.000", None),
    ],
)  # fmt: skip
def test_answers_are_compressed_where_that_is_worth_it(response: Response, accepted: str, coding: str | None) -> None:
    status, headers, body = called(CompressionMiddleware, response, accept_encoding=accepted)
    assert (status, headers["content-length"]) == (200, str(len(body)))
    if coding is None:
        assert (body, headers.get("vary")) == (response.body, None)
        return
    plain = gzip.decompress(body) if coding == "gzip" else zstandard.decompress(body)
    assert (plain, headers["content-encoding"], headers["vary"]) == (response.body, coding, "Accept-Encoding")
    assert len(body) < len(LONG)
    assert coding == "zstd" or body[4:8] == b"\0\0\0\0", "no time in it: the same bytes each time"


def test_streams_pass_as_they_are() -> None:
    sent = [
        {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]},
        {"type": "http.response.body", "body": LONG, "more_body": True},
        {"type": "http.response.body", "body": LONG},
    ]

    async def application(scope: Any, receive: Any, send: Any) -> None:
        for message in sent:
            await send(message)

    status, headers, body = called(CompressionMiddleware, application, accept_encoding="zstd")
    assert (status, body, "content-encoding" in headers) == (200, LONG * 2, False)


def test_what_is_no_request_is_not_looked_at() -> None:
    seen: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    given = {"type": "lifespan", "headers": [(b"accept-encoding", b"zstd")]}
    called(CompressionMiddleware, application, given)
    called(lambda app: RequestMiddleware(app, _nobody), application, given)
    assert seen == ["lifespan"] * 2


def _nobody(*_: Any) -> None:
    raise AssertionError


class Around:
    """The middleware around every request, and what it told."""

    def __init__(self) -> None:
        self.answered: list[tuple[str, str, int]] = []
        self.seconds: list[float] = []
        self.lines: list[Any] = []
        self.budget = Budget(1 << 30)
        app = SimpleNamespace(state=SimpleNamespace())
        provide(app.state, services(self.budget))  # pyright: ignore[reportArgumentType]
        self.scope: Json = {"app": app}

    def call(self, application: Any, scope: Json | None = None, **headers: str) -> tuple[int, Headers, bytes]:
        self.scope |= scope or {}

        def middleware(app: Any) -> Any:
            return RequestMiddleware(app, self._told)

        with capture_logs() as lines:
            try:
                return called(middleware, _Kept(self, application), dict(self.scope), **headers)
            finally:
                self.lines = lines

    def _told(self, method: str, template: str, status: int, seconds: float) -> None:
        assert seconds >= 0
        self.answered.append((method, template, status))
        self.seconds.append(seconds)


class _Kept:
    """The application, and the scope that it was called with."""

    def __init__(self, around: Around, application: Any) -> None:
        self._around = around
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._around.scope = scope
        hold_of(scope).change(1 << 20)
        assert self._around.budget.taken > 0
        await self._application(scope, receive, send)


@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc-1.2:3_", True), ("x" * 128, True), ("x" * 129, False), ("a b", False), ("", False), ("ä", False)],
)
def test_a_request_has_an_id(given: str, kept: bool) -> None:
    around = Around()
    _, headers, _ = around.call(says(b"{}"), x_request_id=given)
    made = headers["x-request-id"]
    assert (made == given) is kept
    assert kept or (len(made) == 16 and int(made, 16) >= 0)
    assert around.budget.taken == 0, "what it held is given back"
    (line,) = around.lines
    assert (line["event"], line["method"], line["path"], line["status"], line["log_level"]) == (
        "request", "GET", "/v1/x", 200, "info",
    )  # fmt: skip
    assert 0 <= line["milliseconds"] < 60_000
    assert around.answered == [("other", "other", 200)]


def test_how_long_an_answer_took_is_told_and_written(clock: Clock) -> None:
    clock.drives(requests)
    clock.shows([1.0, 1.0123456])
    around = Around()
    around.call(says(b"{}"))
    assert (around.seconds, around.lines[0]["milliseconds"]) == ([pytest.approx(0.0123456)], 12.35)


def test_questions_about_health_are_quiet() -> None:
    for path, level in (("/healthz", "debug"), ("/readyz", "debug"), ("/metrics", "debug"), ("/v1/rules", "info")):
        around = Around()
        around.call(says(b"{}"), {"path": path})
        assert [line["log_level"] for line in around.lines] == [level]


def test_what_nobody_foresaw_is_a_problem_with_the_id_to_look_for() -> None:
    error = ZeroDivisionError("x")

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise error

    around = Around()
    status, headers, body = around.call(broken, x_request_id="r1")
    assert (status, headers["x-request-id"]) == (500, "r1")
    document = json.loads(body)
    assert (document["title"], document["detail"]) == ("Internal error", "unexpected; request r1 is in the log")
    assert around.scope[FAULT] is error
    assert [line["event"] for line in around.lines] == ["request failed", "request"]
    assert (around.lines[0]["method"], around.lines[0]["path"], around.lines[1]["status"]) == ("GET", "/v1/x", 500)
    assert (around.answered, around.budget.taken) == ([("other", "other", 500)], 0)


def test_an_answer_that_has_begun_is_cut_off() -> None:
    async def begun(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    around = Around()
    with pytest.raises(ZeroDivisionError):
        around.call(begun)
    assert around.answered == [("other", "other", 200)]
    silent = Around()

    async def nothing(scope: Any, receive: Any, send: Any) -> None:
        return

    assert silent.call(nothing)[0] == 0
    assert (silent.answered, silent.lines[0]["status"]) == ([], 0), "whoever hung up got no answer"


@pytest.mark.parametrize(
    ("raw", "refused"),
    [(b"/v1/%ff", True), (b"/v1/%EF%BF%BD", False), (b"/v1/plain", False)],
)
def test_a_path_is_text(raw: bytes, refused: bool) -> None:
    around = Around()
    path = raw.decode().replace("%ff", "\ufffd").replace("%EF%BF%BD", "\ufffd")
    status, _, body = around.call(says(b"{}"), {"path": path, "raw_path": raw})
    assert status == (400 if refused else 200)
    assert not refused or json.loads(body)["detail"] == "the path is not UTF-8"


def test_without_its_raw_bytes_a_path_with_a_replacement_is_refused() -> None:
    assert Around().call(says(b"{}"), {"path": "/v1/\ufffd"})[0] == 400


REQUEST = Request({"type": "http", "method": "GET", "path": "/v1/x", "headers": [], "query_string": b"",
                   "server": ("h", 80), "scheme": "http"})  # fmt: skip
WRONG = [Problem(pointer="/a", detail="no"), Problem(pointer="", detail="never")]


@pytest.mark.parametrize(
    ("error", "status", "document", "headers"),
    [
        (BadInput(WRONG, extra={"code": "c"}), 422,
         {"title": "Invalid input", "detail": "2 fields are wrong", "code": "c"}, {}),
        (Conflict("moved", problems=WRONG[:1], extra={"generation": 3}), 409,
         {"title": "Conflict", "detail": "moved", "generation": 3}, {}),
        (Unavailable("away", retry_after=7), 503, {"title": "Service unavailable", "detail": "away"},
         {"retry-after": "7"}),
        (InvalidInput(WRONG[:1]), 422, {"title": "Invalid input", "detail": "/a: no"}, {}),
        (Malformed(WRONG[1:]), 400, {"title": "Malformed body", "detail": "the document: never"}, {}),
    ],
)  # fmt: skip
def test_errors_are_problems(error: Any, status: int, document: Json, headers: Json) -> None:
    answer = asyncio.run(responses.answer_to(REQUEST, error))
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert {name: answer.headers[name] for name in headers} == headers
    listed = [{"pointer": one.pointer, "detail": one.detail} for one in getattr(error, "problems", ())]
    expected = {"type": "about:blank", "status": status, "instance": "/v1/x"} | document
    assert json.loads(bytes(answer.body)) == expected | ({"errors": listed} if listed else {})


def test_of_many_errors_the_first_are_listed_and_all_are_counted() -> None:
    wrong = [Problem(pointer=f"/{i}", detail="no") for i in range(1_001)]
    findings = [Finding(rule="x", severity="error", pointer=one.pointer, detail="no") for one in wrong]
    answer = asyncio.run(responses.answer_to(REQUEST, BadInput(wrong, extra={"findings": findings})))
    document = json.loads(bytes(answer.body))
    assert document["detail"] == "1001 fields are wrong"
    for listed in (document["errors"], document["findings"]):
        assert [one["pointer"] for one in listed] == [one.pointer for one in wrong[:1_000]]


def test_others_are_nobodys_answer() -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(responses.answer_to(REQUEST, ZeroDivisionError()))


def test_what_the_framework_refuses_is_told_in_the_same_way() -> None:
    handlers: dict[Any, Any] = {}
    responses.install(SimpleNamespace(add_exception_handler=handlers.__setitem__))  # pyright: ignore[reportArgumentType]
    assert set(handlers) == {ArbiterError, InvalidInput, RequestValidationError, HTTPException}
    wrong = RequestValidationError([
        {"loc": ("query", "limit"), "msg": "too many"}, {"loc": ("path", "id"), "msg": "no id"},
    ])  # fmt: skip
    answer = asyncio.run(handlers[RequestValidationError](REQUEST, wrong))
    assert json.loads(bytes(answer.body)) == {
        "type": "about:blank", "title": "Invalid parameters", "status": 422, "detail": "limit: too many; id: no id",
        "instance": "/v1/x",
        "errors": [{"parameter": "limit", "detail": "too many"}, {"parameter": "id", "detail": "no id"}],
    }  # fmt: skip
    answer = asyncio.run(handlers[HTTPException](REQUEST, HTTPException(405, headers={"Allow": "GET"})))
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert json.loads(bytes(answer.body))["title"] == "Method Not Allowed"
