"""What every request passes through, as plain ASGI, so that bodies pass untouched."""

import asyncio
import gzip
import re
import secrets
import time
from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import unquote_to_bytes, urlsplit

import structlog
import zstandard
from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.base.errors import ArbiterError, BadRequest, Forbidden, Misdirected
from app.base.identifiers import Proxies, network_of
from app.base.ticket import TakingTurns, allowing, asked_by, released_at_the_end, spend_timeout
from app.http.body import release
from app.http.responses import answer_to, problem
from app.http.routing import names_of
from app.solver.model import base

log = structlog.stdlib.get_logger("arbiter.request")

_WAITED = "arbiter.waited"
"""Where a scope has how long it waited for its turn, in seconds."""
HEADER = "Request-Timeout"
_LOOPBACKS = frozenset({"127.0.0.1", "::1"})
_SECONDS = re.compile(r"[0-9]+\.?[0-9]*|\.[0-9]+")


class TimeoutMiddleware:
    """``Request-Timeout``, how long the caller waits; solving stops then. Reads the header once; a value that is no
    positive duration is 400."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        value = Headers(scope=scope).get(HEADER) if scope["type"] == "http" else None
        allowed = None if value is None else _parsed(value)
        if value is not None and allowed is None:
            detail = f"{HEADER} is a positive number of seconds or a duration like 500ms"
            await problem(Request(scope), 400, "Bad request", detail)(scope, receive, send)
            return
        with allowing(allowed):
            if allowed is not None and _WAITED in scope:
                spend_timeout(scope[_WAITED], allowed)
            await self.app(scope, receive, send)


def _parsed(value: str) -> float | None:
    try:
        allowed = float(value) if _SECONDS.fullmatch(value) else base.parse_duration(value) / 1e6
    except base.DurationError:
        return None
    return allowed if 0 < allowed < 1e9 else None


def address_of(scope: Scope) -> str:
    """Where a request comes from: its address, or the network of one of IPv6; empty where it has none."""
    client = scope.get("client")
    return network_of(str(client[0])) if client else ""


class ForwardedMiddleware:
    """Whom a proxy asks for, and whether they came over TLS: as ``proxies`` say, and nobody else does.

    Who could say so of themselves would be as many callers as they like. Whether it was TLS bears on the caller's own
    cookies and links alone: a proxy on this machine is believed without a name.
    """

    def __init__(self, app: ASGIApp, proxies: Proxies) -> None:
        self.app = app
        self._proxies = proxies
        self._said = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("client"):
            self._heed(scope)
        await self.app(scope, receive, send)

    def _heed(self, scope: Scope) -> None:
        hops: list[bytes] = []
        scheme = b""
        for name, value in scope["headers"]:
            if name == b"x-forwarded-for":
                hops.append(value)
            elif name == b"x-forwarded-proto":
                scheme = value.strip().lower()
        if not hops and not scheme:
            return
        peer = str(scope["client"][0])
        is_proxy = self._proxies.believe(peer)
        if scheme in (b"http", b"https") and (is_proxy or network_of(peer) in _LOOPBACKS):
            scope["scheme"] = scheme.decode()
        if hops and is_proxy:
            scope["client"] = self._proxies.client(peer, b",".join(hops).decode("latin-1")), 0
        elif hops and not self._said:
            self._said = True
            log.warning("X-Forwarded-For counts from ARBITER_TRUSTED_PROXIES alone, and this is none", address=peer)


QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked every few seconds: not worth a line or a span."""
_BEGIN = 4
"""Requests that begin in one turn of the event loop: some milliseconds of it."""


class TurnsMiddleware:
    """Whose request is next, where many arrive at once: a few begin in each turn of the event loop, of one address
    after the other. Whoever asks ten thousand things waits for himself; who asks one thing waits for a few others.

    What is asked of probes counts as one more address: whoever watches the service asks from anywhere.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begun = 0
        self._waiting: TakingTurns[asyncio.Future[None]] = TakingTurns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        who = address_of(scope)
        if (turn := self._turn("" if scope["path"] in QUIET else who)) is not None:
            began = time.monotonic()
            await turn
            scope[_WAITED] = time.monotonic() - began
        with asked_by(who):
            await self.app(scope, receive, send)

    def _turn(self, who: str) -> asyncio.Future[None] | None:
        """When it may begin; None: now."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # none of what waited in another one is left
            self._loop, self._begun, self._waiting = loop, 0, TakingTurns()
        if not self._begun:
            loop.call_soon(self._next)
        if self._begun < _BEGIN:  # nobody waits: as long as anybody does, each turn begins all that it may
            self._begun += 1
            return None
        turn = loop.create_future()
        self._waiting.add(who, turn)
        return turn

    def _next(self) -> None:
        assert self._loop is not None
        self._begun = 0
        while self._waiting and self._begun < _BEGIN:
            turn = self._waiting.pop()
            if not turn.done():
                turn.set_result(None)
                self._begun += 1
        if self._begun:
            self._loop.call_soon(self._next)


_ACCEPTABLE = re.compile(r"[A-Za-z0-9._:-]{1,128}")
FAULT = "arbiter.fault"
"""Where a scope has what nobody foresaw."""


class RequestMiddleware:
    """The request's id, its log line, its count, and an answer when the code breaks.

    ``X-Request-ID`` is taken over when it is short and plain, made here otherwise, and always sent back.
    """

    def __init__(self, app: ASGIApp, answered: Callable[[str, str, int, float], None]) -> None:
        """``answered`` is told of each answer: method and path template of its operation, status, seconds."""
        self.app = app
        self._answered = answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = _request_id(Headers(scope=scope).get("x-request-id"))
        app = self.app if _is_text(scope) else _not_text
        status = 0

        async def respond(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        with released_at_the_end(), structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await app(scope, receive, respond)
            except Exception as error:
                scope[FAULT] = error
                log.exception("request failed", method=scope["method"], path=scope["path"])
                if status:
                    raise
                answer = problem(
                    Request(scope), 500, "Internal error", f"unexpected; request {request_id} is in the log"
                )
                await answer(scope, receive, respond)
            finally:
                seconds = time.perf_counter() - began
                release(scope)
                if status:
                    self._answered(*names_of(scope), status, seconds)
                _line(scope, status, seconds)


def _is_text(scope: Scope) -> bool:
    """Whether the path is UTF-8: what is not was made so for the application, and would name something else."""
    if "\ufffd" not in scope["path"]:
        return True
    try:
        unquote_to_bytes(scope["raw_path"]).decode()
    except (KeyError, UnicodeDecodeError):
        return False
    return True


async def _not_text(scope: Scope, receive: Receive, send: Send) -> None:
    answer = problem(Request(scope), 400, "Bad request", "the path is not UTF-8")
    await answer(scope, receive, send)


def _request_id(given: str | None) -> str:
    return given if given is not None and _ACCEPTABLE.fullmatch(given) else secrets.token_hex(8)


def _line(scope: Scope, status: int, seconds: float) -> None:
    write = log.debug if scope["path"] in QUIET else log.info
    write("request", method=scope["method"], path=scope["path"], status=status, milliseconds=round(seconds * 1000, 2))


_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_PROBES = frozenset({"/healthz", "/readyz"})
"""Asked by address, of whatever is there: they say nothing that is worth a name."""
_FOREIGN = frozenset({"cross-site", "same-site"})
_LOOPBACK = "localhost"
ANY = "*"


class SitesMiddleware:
    """What a web page of somebody else's may not do with a service that its visitor can reach.

    A page can have a browser send requests anywhere. Where nobody has to say who they are, being asked from a browser
    on the right machine is all it takes: so an open service answers to its own names alone (a name that somebody else
    made point here is none of them: DNS rebinding), and takes no writes that a browser says come from another site.
    Sessions are cookies, which browsers send by themselves: the same holds for whatever is asked with one.

    ``hosts``: by which an open service may be called, beside loopback; None where everybody says who they are.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str] | None) -> None:
        self.app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._refusal(scope)) is not None:
            await (await answer_to(Request(scope), refusal))(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _refusal(self, scope: Scope) -> ArbiterError | None:
        headers = Headers(scope=scope)
        host, *others = headers.getlist("host") or [""]
        if others:  # RFC 9112, section 3.2: whoever stands between may have gone by another one
            return BadRequest("a request has one Host")
        if self._hosts is not None and scope["path"] not in _PROBES and not self._is_ours(host):
            return Misdirected(
                f"an open service answers to {_LOOPBACK} and the hosts of ARBITER_ALLOWED_HOSTS, not to {host[:100]!r}"
            )
        if scope["method"] in _READS or (self._hosts is None and "cookie" not in headers):
            return None
        if headers.get("sec-fetch-site", "").lower() in _FOREIGN or not _is_own(headers.get("origin"), host):
            return Forbidden("a page of another site may not write here")
        return None

    def _is_ours(self, host: str) -> bool:
        assert self._hosts is not None
        name = name_of(host)
        if name in self._hosts or ANY in self._hosts or name == _LOOPBACK or name.endswith(f".{_LOOPBACK}"):
            return True
        try:
            return ip_address(name).is_loopback
        except ValueError:
            return False


def name_of(host: str) -> str:
    """``host`` as a header has it, without its port and brackets, in lower case."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _is_own(origin: str | None, host: str) -> bool:
    """Whether a page of ours asks, or nobody's: programs name no origin."""
    return origin is None or urlsplit(origin.strip().lower()).netloc == host.strip().lower()


_SMALLEST = 4096
_INLINE = 1 << 16
_COMPRESSIBLE = ("application/json", "application/problem+json", "application/javascript", "image/svg+xml", "text/")


class CompressionMiddleware:
    """zstd or gzip, whichever the client takes, for bodies worth it: those that come in one piece. Streams pass as they
    are."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        coding = preferred(Headers(scope=scope).get("accept-encoding", "")) if scope["type"] == "http" else None
        if coding is None:
            await self.app(scope, receive, send)
            return
        start: Message | None = None

        async def respond(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            if start is not None and message["type"] == "http.response.body":
                body: bytes = message.get("body", b"")
                if not message.get("more_body") and _worthwhile(Headers(raw=start["headers"]), body):
                    message = {**message, "body": await _compressed(coding, body)}
                    _relabel(MutableHeaders(raw=start["headers"]), coding, len(message["body"]))
                head, start = start, None
                await send(head)
            await send(message)

        await self.app(scope, receive, respond)


def preferred(accepted: str) -> str | None:
    """zstd before gzip, of what ``Accept-Encoding`` allows."""
    allowed = set[str]()
    for item in accepted.lower().split(","):
        name, _, parameters = item.partition(";")
        if parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            allowed.add(name.strip())
    return next((coding for coding in ("zstd", "gzip") if coding in allowed), None)


def _worthwhile(headers: Headers, body: bytes) -> bool:
    return (
        len(body) >= _SMALLEST
        and "content-encoding" not in headers
        and headers.get("content-type", "").startswith(_COMPRESSIBLE)
    )


async def _compressed(coding: str, body: bytes) -> bytes:
    if len(body) <= _INLINE:
        return compress(coding, body)
    return await to_thread.run_sync(compress, coding, body)


def compress(coding: str, body: bytes) -> bytes:
    if coding == "zstd":
        return zstandard.ZstdCompressor(level=1).compress(body)
    return gzip.compress(body, compresslevel=1, mtime=0)


def _relabel(headers: MutableHeaders, coding: str, length: int) -> None:
    headers["Content-Encoding"] = coding
    headers["Content-Length"] = str(length)
    headers.add_vary_header("Accept-Encoding")
