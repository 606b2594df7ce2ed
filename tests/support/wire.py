"""A connection of the service's own protocol, on a transport that only remembers."""

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn import Config
from uvicorn.server import ServerState

from app.http.protocol import BulkProtocol, Connections, Limits

Json = dict[str, Any]
HEAD = b"POST /x HTTP/1.1\r\nHost: a\r\n"


class Wire(asyncio.Transport):
    """What was written, and whether it is still open."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.told: list[str] = []
        self.unsent = 0
        self.marks: list[int | None] = []
        self.stuck: asyncio.BaseProtocol | None = None
        """Whose other side takes heads alone."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def write(self, data: Any) -> None:
        self.written += data
        if self.stuck is not None and not data.startswith(b"HTTP/"):
            self.unsent += len(data)
            self.stuck.pause_writing()

    def take(self) -> None:
        """The other side takes all of it."""
        assert self.stuck is not None
        taking, self.stuck, self.unsent = self.stuck, None, 0
        taking.resume_writing()

    def close(self) -> None:
        self.told.append("closed")

    def abort(self) -> None:
        self.told.append("aborted")

    def is_closing(self) -> bool:
        return bool(set(self.told) & {"closed", "aborted"})

    def pause_reading(self) -> None:
        self.told.append("paused")

    def resume_reading(self) -> None:
        self.told.append("resumed")

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.marks = [high, low]


class Peer:
    """A connection, and the requests that reached the application."""

    def __init__(self, limits: Limits | None = None, application: Any = None) -> None:
        self.requests: list[Json] = []
        self.bodies: list[bytes] = []
        self.go = asyncio.Event()
        self.clock = [0.0]
        self.among = Connections(limits or Limits(), lambda: self.clock[0])
        config = Config(application or self._application, interface="asgi3", log_config=None, access_log=False)
        config.load()
        self.wire = Wire()
        self.protocol = BulkProtocol(config=config, server_state=ServerState(), app_state={}, among=self.among)
        self.protocol.connection_made(self.wire)

    async def _application(self, scope: Any, receive: Any, send: Any) -> None:
        self.requests.append(scope)
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.bodies.append(body)
        await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def says(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.protocol.data_received(piece)
            await self.turns()

    async def turns(self, count: int = 20) -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    @property
    def status(self) -> int:
        return int(self.wire.written.split(b" ", 2)[1]) if self.wire.written else 0


def run(test: Callable[[], Any]) -> None:
    asyncio.run(test())
