"""Response compression: zstd or gzip, whichever the client takes, for bodies worth it. Plain ASGI."""

import gzip

import zstandard
from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SMALLEST = 4096
_INLINE = 1 << 16
_COMPRESSIBLE = ("application/json", "application/problem+json", "text/")


class CompressionMiddleware:
    """Compresses bodies that come in one piece; streams pass as they are."""

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
        return _compress(coding, body)
    return await to_thread.run_sync(_compress, coding, body)


def _compress(coding: str, body: bytes) -> bytes:
    if coding == "zstd":
        return zstandard.ZstdCompressor(level=1).compress(body)
    return gzip.compress(body, compresslevel=1, mtime=0)


def _relabel(headers: MutableHeaders, coding: str, length: int) -> None:
    headers["Content-Encoding"] = coding
    headers["Content-Length"] = str(length)
    headers.add_vary_header("Accept-Encoding")
