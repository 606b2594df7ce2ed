"""The protocol byte by byte, on a transport that only remembers: limits, phases, offers of other protocols."""

import asyncio
import inspect
import json
from typing import Any

import pytest
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.http.protocol import Limits
from tests.support.wire import HEAD, Peer, Wire, run

Json = dict[str, Any]
MOST_HEAD = 32 << 10


def refusal(of: Wire) -> tuple[bytes, list[bytes], Json]:
    head, _, body = of.written.partition(b"\r\n\r\n")
    status, *fields = head.split(b"\r\n")
    assert f"content-length: {len(body)}".encode() in fields
    return status, fields, json.loads(body)


def test_a_request_goes_through_its_phases() -> None:
    async def test() -> None:
        peer = Peer()
        assert peer.protocol.phase == "head"
        await peer.says(HEAD)
        assert peer.protocol.phase == "head"
        await peer.says(b"Content-Length: 6\r\n\r\n", b"abc")
        assert (peer.protocol.phase, len(peer.requests)) == ("body", 1)
        await peer.says(b"def")
        assert (peer.protocol.phase, peer.bodies) == ("answer", [b"abcdef"])
        peer.go.set()
        await peer.turns()
        assert (peer.protocol.phase, peer.status, peer.wire.written[-2:]) == ("idle", 200, b"ok")
        assert peer.protocol.timeout_keep_alive_task is not None
        await peer.says(b"G")
        assert peer.protocol.phase == "head"
        assert peer.protocol.timeout_keep_alive_task is None, "an idle connection's time does not end a request"
        assert peer.wire.told == []
        peer.protocol.connection_lost(None)
        assert len(peer.among) == 0

    run(test)


def test_a_body_in_many_pieces_is_whole() -> None:
    async def test() -> None:
        peer = Peer()
        pieces = [bytes([65 + i]) * (i + 1) for i in range(5)]
        await peer.says(HEAD + b"Content-Length: 15\r\n\r\n" + pieces[0] + pieces[1], pieces[2] + pieces[3], pieces[4])
        assert peer.bodies == [b"".join(pieces)]
        chunked = Peer()
        await chunked.says(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n3\r\ndef\r\n0\r\n\r\n")
        assert chunked.bodies == [b"abcdef"]

    run(test)


def test_pieces_that_wait_are_gathered_without_copying_what_is_there() -> None:
    async def test() -> None:
        peer = Peer(application=_answers_never)
        gathered: list[Any] = []
        await peer.says(HEAD + b"Content-Length: 9\r\n\r\na")
        for piece in (b"b", b"c", b"d"):
            peer.clock[0] += 1
            await peer.says(piece)
            gathered.append(peer.protocol.cycle.body)
            assert peer.protocol.since == peer.clock[0], "which is progress"
        assert bytes(gathered[0]) == b"abcd"
        assert gathered[0] is gathered[1] is gathered[2]

    run(test)


async def _answers_never(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.Event().wait()


def test_what_nobody_has_asked_for_yet_is_held_back_early_and_the_rest_late() -> None:
    """64 KiB before the application reads, a mebibyte once it does."""

    async def test() -> None:
        asked, held = asyncio.Event(), asyncio.Event()

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            await asked.wait()
            await receive()
            held.set()
            await asyncio.Event().wait()

        head = HEAD + b"Content-Length: 9999999\r\n\r\n"
        peer = Peer(application=slow)
        await peer.says(head + b"x" * (1 << 16))
        assert peer.wire.told == []
        await peer.says(b"x")
        assert peer.wire.told == ["paused"]
        assert peer.protocol.reading_is_paused()
        asked.set()
        await peer.turns()
        assert held.is_set()
        assert peer.wire.told == ["paused", "resumed"]
        await peer.says(b"x" * (1 << 20))
        assert peer.wire.told == ["paused", "resumed"]
        await peer.says(b"x")
        assert peer.wire.told == ["paused", "resumed", "paused"]

    run(test)


def test_heads_have_bounds() -> None:
    most = b"GET /" + b"x" * (MOST_HEAD - 1) + b" HTTP/1.1\r\n\r\n"

    async def status(*pieces: bytes) -> int:
        peer = Peer()
        peer.go.set()
        await peer.says(*pieces)
        return peer.status

    async def test() -> None:
        names = [b"h%d: v\r\n" % i for i in range(101)]
        assert await status(b"GET / HTTP/1.1\r\n" + b"".join(names[:100]) + b"\r\n") == 200
        assert await status(b"GET / HTTP/1.1\r\n" + b"".join(names) + b"\r\n") == 431
        assert await status(most) == 200
        assert await status(most.replace(b"GET /", b"GET /x")) == 431
        value = b"x" * (MOST_HEAD - 2)
        assert await status(b"GET / HTTP/1.1\r\nh: " + value + b"\r\n\r\n") == 200, "target, name and value"
        assert await status(b"GET / HTTP/1.1\r\nh: x" + value + b"\r\n\r\n") == 431
        # Trickling: what has come of a head that goes on counts together.
        start = b"GET / HTTP/1.1\r\nh: "
        piece = b"x" * ((MOST_HEAD - len(start)) // 2)
        rest = b"x" * (MOST_HEAD - len(start) - 2 * len(piece))
        assert await status(start, piece, piece, rest) == 0
        assert await status(start, piece, piece, rest, b"x") == 431
        assert await status(b"nonsense\r\n\r\n") == 400

    run(test)


def test_trailers_are_counted_and_not_read() -> None:
    async def test() -> None:
        body = b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
        peer = Peer()
        await peer.says(HEAD + body + b"late: 1\r\n\r\n")
        assert [name for name, _ in peer.requests[0]["headers"]] == [b"host", b"transfer-encoding"]
        peer = Peer()
        await peer.says(HEAD + body + b"".join(b"t%d: %b\r\n" % (i, b"x" * 400) for i in range(100)))
        status, _, document = refusal(peer.wire)
        assert (status, document["status"]) == (b"HTTP/1.1 431 Request Header Fields Too Large", 431)
        assert peer.wire.told == ["closed"]

    run(test)


def test_so_many_requests_are_taken_ahead() -> None:
    async def test() -> None:
        peer = Peer()
        one = b"GET / HTTP/1.1\r\n\r\n"
        await peer.says(one * 17)
        assert not peer.wire.is_closing()
        assert peer.protocol.phase == "answer"
        await peer.says(one * 1000)
        assert not peer.wire.is_closing()
        assert peer.protocol.flow.read_paused
        peer.go.set()
        await peer.turns(20_000)
        assert peer.wire.written.count(b"HTTP/1.1 200 OK") == 1017, "reading only waits"
        assert not peer.protocol.flow.read_paused

    run(test)


def test_a_refusal_is_a_problem_and_the_end() -> None:
    async def test() -> None:
        peer = Peer()
        await peer.says(b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n")
        status, fields, document = refusal(peer.wire)
        assert status == b"HTTP/1.1 400 Bad Request"
        assert {b"content-type: application/problem+json", b"connection: close"} <= set(fields)
        assert not any(field.startswith(b"retry-after") for field in fields)
        assert document == {
            "type": "about:blank", "title": "Bad Request", "status": 400, "detail": "this is not HTTP/1.1",
        }  # fmt: skip
        assert (peer.wire.told, peer.requests) == (["closed"], [])

    run(test)


def test_where_all_are_busy_a_new_one_is_sent_away() -> None:
    async def test() -> None:
        peer = Peer(Limits(connections=0))
        status, fields, document = refusal(peer.wire)
        assert status == b"HTTP/1.1 503 Service Unavailable"
        assert b"retry-after: 1" in fields
        assert document["detail"] == "there are too many connections; all of them are busy"
        await peer.says(b"GET / HTTP/1.1\r\n\r\n")
        assert (peer.wire.told, peer.requests) == (["closed"], [])

    run(test)


def test_whose_time_is_up() -> None:
    async def test() -> None:
        silent = Peer()
        silent.protocol.overdue()
        assert (silent.wire.written, silent.wire.told) == (b"", ["aborted"]), "nothing was asked"
        begun = Peer()
        await begun.says(b"GET / HT")
        begun.protocol.overdue()
        assert (begun.status, begun.wire.told) == (408, ["closed"])
        between = Peer()
        between.go.set()
        await between.says(b"\r\n")
        between.protocol.overdue()
        assert (between.wire.written, between.wire.told) == (b"", ["aborted"]), "a line break asks for nothing"
        answered = Peer()
        answered.go.set()
        await answered.says(b"GET / HTTP/1.1\r\n\r\n")
        said = answered.wire.written
        await answered.says(b"\r\n")
        answered.protocol.overdue()
        assert (answered.wire.written, answered.wire.told) == (said, ["aborted"])
        half = Peer()
        await half.says(HEAD + b"Content-Length: 6\r\n\r\nab")
        half.protocol.overdue()
        assert (half.wire.written, half.wire.told) == (b"", ["aborted"])
        idle = Peer()
        idle.go.set()
        await idle.says(b"GET / HTTP/1.1\r\n\r\n")
        assert idle.protocol.phase == "idle"
        idle.protocol.overdue()
        assert idle.wire.told == ["aborted"]

    run(test)


async def _answers_first(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await receive()
    await asyncio.Event().wait()


def test_a_body_that_is_answered_already_is_a_stream() -> None:
    async def test() -> None:
        peer = Peer(application=_answers_first)
        await peer.says(HEAD + b"Content-Length: 9\r\n\r\n")
        assert peer.protocol.phase == "body", "it came before the answer began"
        peer.protocol.overdue()
        assert (peer.protocol.phase, peer.wire.told) == ("stream", [])
        await peer.says(b"a")
        assert peer.protocol.phase == "stream"
        assert peer.protocol.unsent() == 0
        peer.wire.unsent = 7
        assert peer.protocol.unsent() == 7

    run(test)


def test_what_is_left_of_a_body_that_nobody_reads() -> None:
    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def test() -> None:
        peer = Peer(application=refuse)
        await peer.says(HEAD + b"Content-Length: 4\r\n\r\na")
        assert peer.protocol.phase == "rest"
        await peer.says(b"b")
        assert peer.protocol.phase == "rest"
        await peer.says(b"cd")
        assert (peer.protocol.phase, peer.wire.told) == ("idle", [])

    run(test)


@pytest.mark.parametrize("cut", [1, 30, 60, 95, 200])
def test_an_offer_of_another_protocol_is_no_more_than_a_request(cut: int) -> None:
    async def test() -> None:
        sent = (
            b"POST /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings, keep-alive\r\nUpgrade: h2c\r\n"
            b"HTTP2-Settings: AA\r\nContent-Length: 5\r\n\r\nhello"
        )
        peer = Peer()
        peer.go.set()
        await peer.says(sent[:cut], sent[cut:], b"GET /y HTTP/1.1\r\n\r\n")
        assert [(one["method"], one["path"]) for one in peer.requests] == [("POST", "/x"), ("GET", "/y")]
        assert peer.bodies == [b"hello", b""]
        kept = dict(peer.requests[0]["headers"])
        assert kept.pop(b"connection").strip() == b"HTTP2-Settings, keep-alive"
        assert kept == {b"host": b"a", b"http2-settings": b"AA", b"content-length": b"5"}

    run(test)


def test_a_request_that_was_sent_ahead_has_its_time_from_when_it_is_next() -> None:
    async def test() -> None:
        gates = [asyncio.Event(), asyncio.Event()]
        begun: list[Any] = []

        async def in_turn(scope: Any, receive: Any, send: Any) -> None:
            begun.append(scope)
            await gates[len(begun) - 1].wait()
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})

        for rest, phase in ((b"", "body"), (b"bc", "answer")):
            peer = Peer(application=in_turn)
            begun.clear()
            for gate in gates:
                gate.clear()
            await peer.says(b"GET / HTTP/1.1\r\n\r\n" + HEAD + b"Content-Length: 3\r\n\r\na" + rest)
            assert (len(begun), peer.protocol.phase) == (1, phase)
            peer.clock[0] = 5.0
            gates[0].set()
            await peer.turns()
            assert (len(begun), peer.protocol.phase, peer.protocol.since) == (2, phase, 5.0)

    run(test)


def test_it_is_no_proxy() -> None:
    async def test() -> None:
        peer = Peer()
        await peer.says(b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (peer.status, peer.requests) == (400, [])

    run(test)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (HttpToolsProtocol, "connection_made connection_lost data_received on_message_begin on_url on_header "
         "on_headers_complete on_message_complete on_body on_response_complete _unset_keepalive_if_required"),
        (HttpToolsProtocol.__init__, "loop server_state pipeline headers parser cycle transport flow"),
        (RequestResponseCycle.__init__, "body more_body message_event disconnected response_started response_complete"),
        (FlowControl, "pause_reading resume_reading"), (FlowControl.__init__, "read_paused"),
    ],
)  # fmt: skip
def test_what_is_built_on_in_uvicorn_is_there(kind: Any, names: str) -> None:
    """By name: an update that takes one of these away is told here, and not by a hanging connection."""
    has = set(kind.__code__.co_names) if inspect.isfunction(kind) else set(dir(kind))
    assert set(names.split()) <= has


@pytest.mark.parametrize("ahead", [True, False], ids=["asked ahead", "asked meanwhile"])
def test_the_next_request_begins_when_the_answer_is_taken(ahead: bool) -> None:
    async def test() -> None:
        peer = Peer()
        peer.go.set()
        assert peer.wire.marks[0] == 0, "told of every byte that is left"
        following = HEAD + b"\r\n" + HEAD[:9]
        peer.wire.stuck = peer.protocol
        await peer.says(*([HEAD + b"\r\n" + following] if ahead else [HEAD + b"\r\n", following]))
        assert (peer.wire.written.count(b"200 OK"), peer.protocol.phase) == (1, "answer")
        peer.clock[0] += 30
        peer.among.sweep()
        assert not peer.wire.is_closing()
        peer.wire.take()
        await peer.turns()
        assert (peer.wire.written.count(b"200 OK"), peer.protocol.phase) == (2, "idle")
        assert "resumed" in peer.wire.told[-1:]
        await peer.says(HEAD[9:] + b"\r\n")
        assert peer.wire.written.count(b"200 OK") == 3

    run(test)


def test_an_answer_that_nobody_takes_ends_its_connection() -> None:
    async def test() -> None:
        peer = Peer()
        peer.wire.stuck = peer.protocol
        await peer.says(HEAD + b"\r\n")
        peer.go.set()
        await peer.turns()
        peer.clock[0] += 30
        peer.among.sweep()
        assert not peer.wire.is_closing()
        peer.clock[0] += 0.1
        peer.among.sweep()
        assert peer.wire.told[-1] == "aborted"
        peer.protocol.connection_lost(None)
        await peer.turns()
        assert len(peer.among) == 0

    run(test)


def test_an_address_is_known_without_its_port() -> None:
    async def test() -> None:
        peer = Peer()
        assert peer.protocol.address == ""
        peer.protocol.client = ("10.0.0.1", 2)
        assert peer.protocol.address == "10.0.0.1"
        peer.protocol.client = ("2001:db8::a:b:c:d", 2)
        assert peer.protocol.address == "2001:db8::", "whoever has one address of a network has all"

    run(test)
