"""Bodies as they come: which media types are taken, up to where, in which time, and what is held of them."""

import asyncio
import gzip
import threading
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import Request

from app.base.errors import (
    ArbiterError,
    BadRequest,
    DeadlinePassed,
    RequestTimeout,
    TooLarge,
    TooManyRequests,
    UnsupportedMediaType,
)
from app.base.settings import Settings
from app.base.ticket import asked_by, requested_timeout
from app.http import body as module
from app.http.body import (
    FREE,
    Budget,
    Hold,
    hold_of,
    parts,
    read_body,
    read_files,
    read_form,
    read_in_turn,
    read_manifest,
    require_lines,
)
from app.http.routing import provide
from tests.support.bounds import Bounded
from tests.support.instead import Clock, Instead
from tests.support.services import services

Json = dict[str, Any]
LIMIT = 100_000
Reading = Callable[[Request], Awaitable[Any]]


class Sent:
    """A request whose body comes in ``pieces``; then whoever sent it is there, gone or silent."""

    def __init__(
        self,
        *pieces: bytes,
        media: str | None = "application/json",
        then: str = "there",
        seconds: float = 30,
        **headers: str,
    ) -> None:
        self.pieces, self.then, self.budget = list(pieces), then, Budget(1 << 30)
        app = SimpleNamespace(state=SimpleNamespace())
        times = {"body_timeout": seconds, "request_timeout": seconds}
        self.settings = Settings(max_body_bytes=LIMIT).model_copy(update=times)
        provide(app.state, services(self.settings, self.budget))  # pyright: ignore[reportArgumentType]
        given = headers | ({} if media is None else {"content-type": media})
        named = [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]
        self.scope: Json = {"type": "http", "method": "POST", "path": "/", "headers": named, "app": app}

    async def receive(self) -> Json:
        if self.pieces:
            return {
                "type": "http.request",
                "body": self.pieces.pop(0),
                "more_body": bool(self.pieces) or self.then != "there",
            }
        if self.then == "silent":
            await asyncio.Event().wait()
        return {"type": "http.disconnect"} if self.then == "gone" else {"type": "http.request", "body": b""}

    def read(self, reading: Reading = read_body) -> Any:
        return asyncio.run(reading(Request(self.scope, self.receive)))  # pyright: ignore[reportArgumentType]

    def refused(self, reading: Reading = read_body) -> ArbiterError:
        with pytest.raises(ArbiterError) as refused:
            self.read(reading)
        return refused.value


def told(error: ArbiterError) -> tuple[type, str, Json]:
    return type(error), error.detail, error.headers


TOO_LARGE = f"the body is larger than {LIMIT} bytes, as sent or decompressed (ARBITER_MAX_BODY_BYTES)"


def test_a_body_is_read_whole_up_to_the_limit() -> None:
    whole = b"x" * LIMIT
    sent = Sent(whole)
    assert sent.read() is whole, "in one piece it is not copied"
    assert sent.budget.taken == LIMIT - FREE
    assert Sent(b"ab", b"", b"cd").read() == b"abcd"
    assert Sent().read() == b""
    assert Sent(whole, content_length=str(LIMIT)).read() == whole
    for over in (Sent(whole + b"x"), Sent(whole, b"x"), Sent(b"", content_length=str(LIMIT + 1))):
        assert told(over.refused()) == (TooLarge, TOO_LARGE, {})
    assert told(Sent(b"", content_length="9" * 40).refused())[0] is TooLarge
    assert Sent(b"a", content_length="many").read() == b"a", "what is no length is no announcement"
    assert Sent(b"a", content_length="٩٩٩٩٩٩").read() == b"a"


def test_a_body_that_does_not_come() -> None:
    gone = Sent(b"a", then="gone").refused()
    assert told(gone) == (BadRequest, "the connection closed before the body was complete", {})
    silent = Sent(b"a", then="silent", seconds=0.01)
    assert told(silent.refused()) == (RequestTimeout, "the body did not arrive in time", {})


def test_a_long_body_has_more_time() -> None:
    """A second for every 64 KiB that have come."""
    sent = Sent(b"x" * 65_536, then="silent", seconds=0.01)
    clocks: list[float] = []

    async def timed(request: Request) -> bytes:
        began = asyncio.get_running_loop().time()
        try:
            return await read_body(request)
        finally:
            clocks.append(asyncio.get_running_loop().time() - began)

    with pytest.MonkeyPatch.context() as patch:
        Bounded(patch)(module, LEAST_BYTES_A_SECOND=65_536 * 20)  # a twentieth of a second for as much
        assert isinstance(sent.refused(timed), RequestTimeout)
    assert clocks[0] >= 0.06


@pytest.mark.parametrize(
    ("media", "taken"),
    [
        ("application/json", True), ("Application/JSON; charset=utf-8", True),
        ("application/merge-patch+json", True), ("text/plain", False), ("application/jsonl", False),
    ],
)  # fmt: skip
def test_what_is_json(media: str | None, taken: bool) -> None:
    sent = Sent(b"{}", media=media)
    if taken:
        assert sent.read() == b"{}"
        return
    assert told(sent.refused()) == (
        UnsupportedMediaType, f"send application/json, not {media!r}", {"Accept": "application/json"},
    )  # fmt: skip


def test_media_types_of_manifests_and_lines() -> None:
    for media in (*module.MANIFESTS, "application/x+yaml", "application/x+json"):
        assert Sent(b"a: 1", media=media).read(read_manifest) == b"a: 1"
    assert told(Sent(b"", media="image/png").refused(read_manifest)) == (
        UnsupportedMediaType, "send application/yaml or application/json, not 'image/png'",
        {"Accept": "application/yaml, application/json, application/x-yaml, text/yaml, text/x-yaml, text/plain, "
                   "application/x-yt-yson-text, application/x-yt-yson-binary"},
    )  # fmt: skip

    async def lines(request: Request) -> None:
        require_lines(request)

    for media in ("application/x-ndjson", "application/jsonl", "application/json"):
        Sent(media=media).read(lines)
    assert Sent(media=None).refused(lines).detail == "say what the body is: Content-Type is missing"
    assert told(Sent(media="x" * 99).refused(lines)) == (
        UnsupportedMediaType, f"send application/x-ndjson, not {'x' * 64!r}",
        {"Accept": "application/x-ndjson, application/jsonl, application/json"},
    )  # fmt: skip
    assert told(Sent(content_encoding="gzip").refused(lines)) == (
        UnsupportedMediaType, "lines are sent plain", {"Accept-Encoding": "identity"},
    )  # fmt: skip
    Sent(content_encoding=" Identity ").read(lines)


@pytest.mark.parametrize(
    ("reading", "names"),
    [(read_body, "application/json"), (read_manifest, "application/yaml or application/json"),
     (read_files, "application/x-ndjson or multipart/form-data")],
)  # fmt: skip
def test_of_a_long_name_of_a_kind_of_body_so_much_is_said(reading: Reading, names: str) -> None:
    assert Sent(media="x" * 99).refused(reading).detail == f"send {names}, not {'x' * 64!r}"
    refused = Sent(media=names.partition(" ")[0], content_encoding="x" * 99).refused(reading)
    assert refused.detail == f"content coding {'x' * 64!r} is not one of gzip, zstd"


def test_forms_have_a_limit_of_their_own() -> None:
    async def form(request: Request) -> bytes:
        return await read_form(request, 5)

    media = "application/x-www-form-urlencoded"
    assert Sent(b"a=1&b", media=media).read(form) == b"a=1&b"
    for over in (Sent(b"a=1&bc", media=media), Sent(b"", media=media, content_length="6")):
        assert told(over.refused(form)) == (TooLarge, "the form is larger than 5 bytes", {})
    assert told(Sent(b"").refused(form)) == (UnsupportedMediaType, f"a form is {media}", {"Accept": media})


def test_what_is_compressed_is_held_as_it_is_inflated() -> None:
    plain = b"x" * LIMIT
    sent = Sent(gzip.compress(plain), content_encoding="GZIP")
    assert sent.read() == plain
    assert sent.budget.taken == LIMIT - FREE, "what was sent is not held any more"
    assert told(Sent(gzip.compress(plain + b"x"), content_encoding="gzip").refused()) == (TooLarge, TOO_LARGE, {})
    assert told(Sent(b"", content_encoding="br").refused()) == (
        UnsupportedMediaType, "content coding 'br' is not one of gzip, zstd", {"Accept-Encoding": "gzip, zstd"},
    )  # fmt: skip


def test_inflating_is_a_part_of_what_the_request_may_take(clock: Clock, instead: Instead) -> None:
    clock.drives(module)
    clock.shows([100.0, 100.25])
    found: list[float | None] = []
    bounds: list[Any] = []

    def inflated(body: bytes, coding: str, given: Any) -> bytes:
        bounds.append(given)
        return b"{}"

    instead(module, inflate=inflated)

    async def reading(request: Request) -> None:
        await read_body(request)
        found.append(requested_timeout())

    Sent(b"coded", content_encoding="gzip").read(reading)
    assert found == [29.75]
    assert (bounds[0].most, bounds[0].end, bounds[0].seconds) == (LIMIT, 130.0, 30)


def test_inflating_that_does_not_begin_in_time_is_late() -> None:
    sent = Sent(gzip.compress(b"{}"), content_encoding="gzip", seconds=0.01)

    async def reading(request: Request) -> bytes:
        async with _Other(sent.budget), _Other(sent.budget):
            return await read_body(request)

    refused = sent.refused(reading)
    assert told(refused) == (DeadlinePassed, "no answer within 0.01 s; nothing was changed", {})


def test_nobody_waits_for_inflating_past_the_deadline(instead: Instead) -> None:
    told, waited = threading.Event(), list[bool]()

    def endless(body: bytes, coding: str, given: Any) -> bytes:
        waited.append(told.wait(20))
        return b""

    instead(module, inflate=endless)
    sent = Sent(gzip.compress(b"{}"), content_encoding="gzip", seconds=0.01)

    async def reading(request: Request) -> None:
        try:
            await read_body(request)
        finally:
            waiting = not waited
            told.set()
            assert waiting

    assert isinstance(sent.refused(reading), DeadlinePassed)


class _Other:
    """One of the two places for inflating, taken by somebody else."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    async def __aenter__(self) -> None:
        await self._budget.inflating.acquire_on_behalf_of(self)

    async def __aexit__(self, *_: object) -> None:
        self._budget.inflating.release_on_behalf_of(self)


def multipart(*fields: tuple[str, bytes], end: bytes = b"--b--\r\n") -> bytes:
    head = b'--b\r\nContent-Disposition: form-data; name="%b"\r\nContent-Type: x/y\r\n\r\n%b\r\n'
    return b"".join(head % (name.encode(), content) for name, content in fields) + end


MULTIPART = "multipart/form-data; boundary=b"


def test_files_of_a_body() -> None:
    sent = Sent(multipart(("a", b"1" * 70_000), ("b", gzip.compress(b"zipped"))), media=MULTIPART)
    body = len(sent.pieces[0])
    assert sent.read(read_files) == {"a": b"1" * 70_000, "b": b"zipped"}
    held = body + 70_000 + len(gzip.compress(b"zipped")) + len(b"zipped")
    assert sent.budget.taken == held - FREE
    backwards = b'--b\r\nContent-Type: x/y\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b--\r\n'
    assert Sent(backwards, media=MULTIPART).read(read_files) == {"a": b"1"}, "in whichever order a part says it"
    whole = Sent(b"lines", media="text/plain")
    assert whole.read(read_files) == {"": b"lines"}
    assert Sent(gzip.compress(b"lines"), media="application/gzip").read(read_files) == {"": b"lines"}
    kinds = "application/x-ndjson, application/jsonl, text/plain, text/csv, application/octet-stream, application/gzip,"
    assert told(Sent(b"", media="image/png").refused(read_files)) == (
        UnsupportedMediaType, "send application/x-ndjson or multipart/form-data, not 'image/png'",
        {"Accept": f"{kinds} application/x-gzip, multipart/form-data"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("body", "media", "detail"),
    [
        (b"", "multipart/form-data", "multipart/form-data without its boundary"),
        (b"nothing", MULTIPART, "the body is not valid multipart/form-data: Expected boundary"),
        (multipart(("a", b"1"), end=b""), MULTIPART, "the body is not valid multipart/form-data: it ends early"),
        (multipart(("", b"1")), MULTIPART, "part '': without a name, or there twice"),
        (multipart(("a", b"1"), ("a", b"2")), MULTIPART, "part 'a': without a name, or there twice"),
        (multipart(*((f"f{i}", b"") for i in range(17))), MULTIPART, "a part without a name, or more than 16 parts"),
        (multipart(("x" * 99, b""), ("x" * 99, b"")), MULTIPART, f"part {'x' * 64!r}: without a name, or there twice"),
        (b"--b\r\n\r\n\r\n" * 3 + b"--b--\r\n", MULTIPART, "a part without a name, or more than 16 parts"),
        (b"--b\r\n\r\n1\r\n--b--\r\n", MULTIPART, "a part without a name"),
        (b"--b\r\n" + b"x: y\r\n" * 99 + b"\r\n1\r\n--b--\r\n", MULTIPART, "the body is not valid multipart"),
        (b"--b\r\nx: " + b"y" * 9999 + b"\r\n\r\n1\r\n--b--\r\n", MULTIPART, "the body is not valid multipart"),
    ],
)  # fmt: skip
def test_what_is_no_body_of_files(body: bytes, media: str, detail: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parts(body, media)
    assert refused.value.detail.startswith(detail)


def test_as_many_files_as_there_may_be() -> None:
    fields = [(f"f{i}", b"%d" % i) for i in range(16)]
    assert parts(multipart(*fields), MULTIPART) == dict(fields)


def test_of_large_bodies_few_are_worked_on_here_at_once() -> None:
    """Two, of one caller after the other; a small one waits for nobody, and who waits too long is late."""
    large, began = b"x" * (FREE + 1), list[str]()
    first = Sent(large)

    def another(body: bytes, seconds: float = 30) -> Sent:
        sent = Sent(body, seconds=seconds)
        provide(sent.scope["app"].state, services(sent.settings, first.budget))  # pyright: ignore[reportArgumentType]
        return sent

    async def work(who: str, sent: Sent, ends: asyncio.Event) -> None:
        with asked_by(who):
            async with asynccontextmanager(read_in_turn)(Request(sent.scope, sent.receive)) as body:  # pyright: ignore[reportArgumentType]
                began.append(f"{who} {len(body)}")
                await ends.wait()

    async def test() -> None:
        ends = [asyncio.Event() for _ in range(6)]
        asked = [("a", first), ("a", another(large)), ("a", another(large)), ("a", another(large)),
                 ("b", another(large)), ("c", another(b"y"))]  # fmt: skip
        tasks = [asyncio.create_task(work(who, sent, ends[i])) for i, (who, sent) in enumerate(asked)]
        await asyncio.sleep(0.01)
        with pytest.raises(DeadlinePassed):
            await work("d", another(large, seconds=0.05), ends[0])
        for end in ends:
            assert len(began) >= 3
            end.set()
            await asyncio.sleep(0.01)
        await asyncio.gather(*tasks)

    asyncio.run(test())
    size = FREE + 1
    assert began == [f"a {size}", f"a {size}", "c 1", f"a {size}", f"b {size}", f"a {size}"]


def test_a_body_that_gives_way_is_read_no_further() -> None:
    silent = Sent(b"[" + b" " * FREE, then="silent")
    silent.budget = Budget(100)
    provide(silent.scope["app"].state, services(silent.settings, silent.budget))  # pyright: ignore[reportArgumentType]

    async def both() -> ArbiterError:
        with asked_by("many"):
            reading = asyncio.ensure_future(read_body(Request(silent.scope, silent.receive)))  # pyright: ignore[reportArgumentType]
        while not silent.budget.taken:
            await asyncio.sleep(0)
        with pytest.raises(TooManyRequests):  # which is as much as that one has
            Hold(silent.budget).change(FREE + 100)
        silent.budget.change(hold_of(silent.scope), 90)
        Hold(silent.budget).change(FREE + 50)
        with pytest.raises(ArbiterError) as refused:
            await asyncio.wait_for(reading, 10)
        return refused.value

    assert told(asyncio.run(both())) == (
        TooManyRequests, "request bodies use all the memory that there is for them", {"Retry-After": "1"}
    )  # fmt: skip
    assert silent.budget.taken == 50
