"""The smallest client of an ASGI application: no socket, no server, no lifespan."""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self


class Asgi:
    """Calls an application in this process, one request at a time, on an event loop of its own."""

    def __init__(self, application: Any, *, hangs_up: bool = False) -> None:
        """``hangs_up``: it is gone as soon as it has asked."""
        self._application = application
        self._hangs_up = hangs_up
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._runner.close()

    def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        """Status and body of the response to a POST of ``body``."""
        return self.send("POST", path, body, headers)

    def send(self, method: str, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        """The same by any method."""
        named = {"host": "localhost", "content-type": "application/json", **(headers or {})}
        return self._runner.get_loop().run_until_complete(self._send(method, path, body, named))

    async def _send(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("test", 0),
            "server": ("test", 80),
        }
        incoming = [{"type": "http.request", "body": body, "more_body": False}]
        status, pieces = 0, list[bytes]()
        done = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if incoming:
                return incoming.pop()
            if not self._hangs_up:
                await done.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                pieces.append(message.get("body", b""))
                if not message.get("more_body"):
                    done.set()

        await self._application(scope, receive, send)
        return status, b"".join(pieces)
