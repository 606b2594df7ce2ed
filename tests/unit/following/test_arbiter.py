"""What a follower asks of the service, and what it makes of each answer."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from app.following.keeping import ApiError, ApiUnavailable, Arbiter


class Server(HTTPServer):
    """Answers everything with ``answer``; status 0: hangs up. ``asked``: method, path, headers and body of each."""

    answer: tuple[int, dict[str, str], bytes] = 200, {}, b""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.command, self.path, dict(self.headers), body))
        status, headers, said = self.server.answer
        if not status:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(said)), "Connection": "close"}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(said)

    do_PUT = do_GET  # noqa: N815

    def log_message(self, *args: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    server = Server()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def server(running: Server) -> Server:
    running.asked.clear()
    return running


def test_a_question_has_its_path_its_token_and_its_body(server: Server) -> None:
    server.answer = 200, {"ETag": '"7"'}, b'{"a":1}'
    reply = Arbiter(server.url + "/", "secret").ask(
        "PUT", "configurations", "a/b c", body={"x": [1]}, headers={"If-None-Match": "*"}
    )
    assert reply == (b'{"a":1}', '"7"')
    ((method, path, headers, body),) = server.asked
    assert (method, path, body) == ("PUT", "/v1/configurations/a%2Fb%20c", b'{"x":[1]}')
    assert headers["Authorization"] == "Bearer secret"
    assert (headers["Accept"], headers["Content-Type"]) == ("application/json", "application/json")
    assert headers["If-None-Match"] == "*"
    server.answer = 204, {}, b""
    assert Arbiter(server.url, None).ask("GET", "snapshots") == (b"", None)
    method, path, headers, body = server.asked[-1]
    assert (method, path, body) == ("GET", "/v1/snapshots", b"")
    assert "Authorization" not in headers
    assert "If-None-Match" not in headers


@pytest.mark.parametrize(
    ("status", "raised"),
    [(200, None), (299, None), (300, ApiError), (404, ApiError), (428, ApiError), (429, ApiUnavailable),
     (430, ApiError), (499, ApiError), (500, ApiUnavailable), (503, ApiUnavailable)],
)  # fmt: skip
def test_what_may_pass_is_told_apart_from_a_refusal(
    server: Server, status: int, raised: type[Exception] | None
) -> None:
    server.answer = status, {}, json.dumps({"code": "some_code", "title": "T", "detail": "because"}).encode()
    arbiter = Arbiter(server.url, None)
    if raised is None:
        arbiter.ask("GET", "x")
        return
    with pytest.raises(raised) as caught:
        arbiter.ask("GET", "x")
    assert str(caught.value) == f"GET {server.url}/v1/x: {status} because"
    if isinstance(caught.value, ApiError):
        assert (caught.value.status, caught.value.code) == (status, "some_code")


def test_a_refusal_tells_the_first_errors_and_no_more_than_fits(server: Server) -> None:
    errors = [{"pointer": f"/{number}", "detail": "wrong"} for number in range(6)]
    server.answer = 422, {}, json.dumps({"title": "Invalid", "errors": errors}).encode()
    with pytest.raises(ApiError) as caught:
        Arbiter(server.url, None).ask("PUT", "x")
    listed = "".join(f"; /{number}: wrong" for number in range(5))
    assert str(caught.value) == f"PUT {server.url}/v1/x: 422 Invalid{listed}"
    assert caught.value.code == ""
    server.answer = 422, {}, json.dumps({"detail": "x" * 3000}).encode()
    with pytest.raises(ApiError) as caught:
        Arbiter(server.url, None).ask("PUT", "x")
    assert len(str(caught.value)) == 1900, "it must fit into a report, whose texts have 2000 characters"


@pytest.mark.parametrize("body", [b"<html>", b"\xff", b"[]"])
def test_an_answer_that_is_no_problem_is_told_by_its_status(server: Server, body: bytes) -> None:
    server.answer = 403, {}, body
    with pytest.raises(ApiError, match=r"/v1/x: 403 $") as caught:
        Arbiter(server.url, None).ask("GET", "x")
    assert caught.value.code == ""


def test_a_service_that_hangs_up_or_sends_elsewhere_is_asked_once(server: Server) -> None:
    server.answer = 0, {}, b""
    with pytest.raises(ApiUnavailable, match=f"{server.url}/v1: "):
        Arbiter(server.url, None).ask("GET", "x")
    assert len(server.asked) == 1
    server.answer = 307, {"Location": "/v1/y"}, b""
    with pytest.raises(ApiError):
        Arbiter(server.url, None).ask("GET", "x")
    assert [path for _, path, *_ in server.asked] == ["/v1/x", "/v1/x"]
