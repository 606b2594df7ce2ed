"""A batch at the level of its bytes: lines however they are cut, what is held of them, and how far ahead it reads."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fastapi import Request

from app.base.errors import NotFound, TooLarge, TooManyRequests, UnsupportedMediaType
from app.base.settings import Settings
from app.decisions.batch import _Line, decide_batch  # pyright: ignore[reportPrivateUsage]
from app.decisions.service import Decider
from app.http.body import FREE, Budget
from app.http.routing import provide
from tests.support.instead import Instead
from tests.support.services import services

Json = dict[str, Any]
Answering = Callable[[Request, bytes], Awaitable[bytes]]
LIMIT = 100_000


class Batch:
    """A request whose body comes in ``pieces``, each when it is asked for; after them the caller is there still."""

    def __init__(self, *pieces: bytes, most: int = 1 << 20, gone: bool = False) -> None:
        self.pieces = list(pieces)
        self.gone = gone
        self.budget = Budget(most)
        self.sent: list[Json] = []
        app = SimpleNamespace(state=SimpleNamespace())
        provide(app.state, services(Settings(max_body_bytes=LIMIT), self.budget, object.__new__(Decider)))  # pyright: ignore[reportArgumentType]
        self.scope: Json = {
            "type": "http", "method": "POST", "path": "/v1/decisions:batch", "query_string": b"", "app": app,
            "headers": [(b"content-type", b"application/x-ndjson")], "server": ("test", 80), "scheme": "http",
        }  # fmt: skip

    async def receive(self) -> Json:
        if self.gone and not self.pieces:
            return {"type": "http.disconnect"}
        piece = self.pieces.pop(0) if self.pieces else b""
        return {"type": "http.request", "body": piece, "more_body": bool(self.pieces) or self.gone}

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def answered(self) -> list[tuple[int, int, Any]]:
        """Line, status, and the answer or the detail of the problem, of each line out."""
        response = await decide_batch(Request(self.scope, self.receive))
        await response(self.scope, self.receive, self.send)
        start, *pieces, end = self.sent
        assert start["status"] == 200
        assert (b"content-type", b"application/x-ndjson") in start["headers"]
        assert end == {"type": "http.response.body", "body": b"", "more_body": False}
        assert all(piece["more_body"] and piece["body"].endswith(b"\n") for piece in pieces)
        lines = [json.loads(piece["body"]) for piece in pieces]
        return [
            (one["line"], one["status"], one["answer"] if "answer" in one else one["problem"]["detail"])
            for one in lines
        ]


def answer_by(monkeypatch: pytest.MonkeyPatch, answering: Answering) -> None:
    Instead(monkeypatch)(Decider, answer=answering)


async def length(_: Request, body: bytes) -> bytes:
    return b"%d" % len(body)


def test_lines_are_what_lies_between_line_feeds_however_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    async def echo(_: Request, body: bytes) -> bytes:
        return json.dumps(body.decode()).encode()

    answer_by(monkeypatch, echo)
    for pieces in ((b"ab\n\n c \r\nd",), (b"a", b"b\n", b"\n c", b" \r", b"\nd", b""), (b"ab\n\n", b" c \n", b"d\n")):
        assert asyncio.run(Batch(*pieces).answered()) == [(1, 200, "ab"), (2, 200, "c"), (3, 200, "d")]


def test_a_line_has_as_many_bytes_as_a_body_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_by(monkeypatch, length)
    fits, over = b"x" * LIMIT, b"x" * (LIMIT + 1)
    said = f"the line is larger than {LIMIT} bytes"
    for pieces in (
        (fits + b"\n" + over + b"\nzz",),
        (fits[:5], fits[5:], b"\n", over[:7], over[7:], b"more", b"\nz", b"z\n"),
    ):
        assert asyncio.run(Batch(*pieces).answered()) == [(1, 200, LIMIT), (2, 413, said), (3, 200, 2)]


def test_a_line_is_held_until_it_is_answered_and_one_for_which_there_is_no_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch = Batch(b" " + b"x" * (LIMIT - 2), b" \n", b"y" * 50_000 + b"\n", b"z\n", most=LIMIT - FREE)
    held: list[int] = []

    async def look(_: Request, body: bytes) -> bytes:
        held.append(batch.budget.taken)
        while len(batch.pieces) > 1 and body[:1] == b"x":
            await asyncio.sleep(0)
        return b"%d" % len(body)

    answer_by(monkeypatch, look)
    full = "request bodies use all the memory that there is for them"
    assert asyncio.run(batch.answered()) == [(1, 200, LIMIT - 2), (2, 429, full), (3, 200, 1)]
    assert held[0] == LIMIT - 2 + 1 - FREE, "of the first line what is left of it, and the last one"
    assert batch.budget.taken == 0


def test_everything_that_a_line_held_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answered, refused while it was read, or refused by whoever answers: an exact budget is enough again and again."""

    async def refuse(_: Request, body: bytes) -> bytes:
        if body[:1] == b"n":
            raise NotFound("no such thing")
        return b"1"

    answer_by(monkeypatch, refuse)
    whole = b"x" * LIMIT + b"\n"
    batch = Batch(*(line for _ in range(3) for line in (whole, b"n" * LIMIT + b"\n", b"x" * LIMIT + b"xx\n")), most=1)
    batch.budget = Budget(LIMIT - FREE)
    provide(batch.scope["app"].state, services(Settings(max_body_bytes=LIMIT), batch.budget, object.__new__(Decider)))

    async def one_by_one() -> list[tuple[int, int, Any]]:
        pieces, batch.pieces = batch.pieces, []
        found: list[tuple[int, int, Any]] = []
        for piece in pieces:
            batch.pieces, batch.sent = [piece], []
            found += await batch.answered()
        return found

    statuses = [status for _, status, _ in asyncio.run(one_by_one())]
    assert statuses == [200, 404, 413] * 3
    assert batch.budget.taken == 0


def test_it_reads_no_further_than_a_few_lines_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = Batch(*(b"%d\n" % i for i in range(20)))
    begun: list[bytes] = []

    async def run() -> list[tuple[int, int, Any]]:
        go = asyncio.Event()

        async def wait(_: Request, body: bytes) -> bytes:
            begun.append(body)
            await go.wait()
            return body

        answer_by(monkeypatch, wait)
        answering = asyncio.create_task(batch.answered())
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(begun) == 6, "one is awaited, four wait for it, and one more is read"
        assert len(batch.pieces) == 14
        go.set()
        return await answering

    found = asyncio.run(run())
    assert [(line, status) for line, status, _ in found] == [(i + 1, 200) for i in range(20)]
    assert begun == [b"%d" % i for i in range(20)]


def test_whoever_hangs_up_gets_what_was_asked_whole_and_nothing_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_by(monkeypatch, length)
    assert asyncio.run(Batch(b"abc\n", b"half", gone=True).answered()) == [(1, 200, 3)]


def test_when_sending_fails_no_line_is_worked_on_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = Batch(*(b"%d\n" % i for i in range(20)))
    ended: list[str] = []

    async def first_only(_: Request, body: bytes) -> bytes:
        if body == b"0":
            await asyncio.sleep(0)
            return body
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            ended.append(body.decode())
            raise
        raise AssertionError

    async def broken(message: Any) -> None:
        if message.get("body"):
            await asyncio.sleep(0)
            raise OSError("gone")

    async def run() -> None:
        response = await decide_batch(Request(batch.scope, batch.receive))
        with pytest.raises(OSError, match="gone"):
            await response(batch.scope, batch.receive, broken)
        for _ in range(10):
            await asyncio.sleep(0)
        running = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in running:
            task.cancel()
        assert running == []

    answer_by(monkeypatch, first_only)
    asyncio.run(run())
    assert ended


def test_an_error_of_the_program_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_: Request, body: bytes) -> bytes:
        raise ZeroDivisionError(body)

    answer_by(monkeypatch, broken)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(Batch(b"a\n").answered())


def test_what_is_no_lines_is_refused_before_anything_is_read() -> None:
    batch = Batch(b"a\n")
    batch.scope["headers"] = [(b"content-type", b"text/csv")]
    with pytest.raises(UnsupportedMediaType):
        asyncio.run(batch.answered())
    assert batch.pieces == [b"a\n"]


class Held:
    """What a request holds; at ``most`` bytes there is no memory."""

    def __init__(self, most: int) -> None:
        self.total, self._most = 0, most

    def change(self, size: int) -> None:
        """Hold more, or less."""
        if self.total + size > self._most:
            raise TooManyRequests("no memory")
        self.total += size


def test_a_line_holds_what_there_is_of_it_and_nothing_once_it_is_refused() -> None:
    hold = Held(20)
    line = _Line(10, cast("Any", hold))
    for pieces, told, held in (
        ((b" 1234", b"5 "), b"12345", 5), ((b"123456", b"12345", b"1"), TooLarge, 5), ((b" ", b""), None, 5),
        ((b"1234567890",), b"1234567890", 15), ((b"1234", b"12"), TooManyRequests, 15), ((b"12345",), b"12345", 20),
    ):  # fmt: skip
        for piece in pieces:
            line.add(piece)
        found = line.end()
        assert (type(found) if isinstance(found, Exception) else found) == told
        assert hold.total == held
