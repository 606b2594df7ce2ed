"""Clients that shut down their writing side: who has asked is answered, who leaves is gone."""

import asyncio
from typing import Any

import pytest

from app.http.protocol import ENDED
from tests.support.wire import HEAD, Peer, run


def test_who_says_no_more_is_answered_what_was_asked_whole() -> None:
    """With one request under way and two behind it the last answer closes; what nobody has asked whole ends at once."""

    async def test() -> None:
        peer = Peer()
        await peer.says(*[HEAD + b"Content-Length: 1\r\n\r\na"] * 3)
        assert peer.protocol.eof_received()
        assert [ENDED in request for request in peer.requests] == [False]
        assert (peer.wire.told, peer.protocol.phase) == (["paused"], "answer")
        peer.go.set()
        await peer.turns(60)
        assert (peer.wire.written.count(b"HTTP/1.1 200"), peer.wire.written.count(b"connection: close")) == (3, 1)
        assert [ENDED in request for request in peer.requests] == [False, False, True]
        assert peer.wire.told[-1] == "closed"
        assert not peer.protocol.eof_received(), "heard again"

    run(test)


@pytest.mark.parametrize(
    "said", [b"", b"POST /x", HEAD, HEAD + b"Content-Length: 2\r\n\r\n", HEAD + b"Content-Length: 2\r\n\r\na"]
)
def test_who_says_no_more_in_the_middle_is_gone(said: bytes) -> None:
    async def test() -> None:
        peer = Peer()
        await peer.says(said)
        assert not peer.protocol.eof_received()
        peer = Peer()
        peer.go.set()
        await peer.says(HEAD + b"Content-Length: 1\r\n\r\na", said)
        assert peer.status == 200
        assert not peer.protocol.eof_received()

    run(test)


@pytest.mark.parametrize(("head", "waits"), [(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n", False), (HEAD, True)])
def test_who_leaves_a_stream_is_gone_and_a_batch_goes_on(head: bytes, waits: bool) -> None:
    """What has no body and is being answered is a page that was closed."""
    go = asyncio.Event()

    async def streams(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await go.wait()

    async def test() -> None:
        peer = Peer(application=streams)
        await peer.says(head + (b"Content-Length: 1\r\n\r\na" if waits else b""))
        assert (peer.status, peer.protocol.eof_received()) == (200, waits)
        go.set()
        await peer.turns()

    run(test)


def test_who_says_no_more_and_has_an_answer_left_to_take_is_not_waited_for() -> None:
    async def test() -> None:
        peer = Peer()
        peer.wire.stuck = peer.protocol
        peer.go.set()
        await peer.says(HEAD + b"Content-Length: 1\r\n\r\na")
        assert (peer.wire.unsent, peer.protocol.phase) == (2, "answer")
        assert not peer.protocol.eof_received(), "closing sends what is left"

    run(test)
