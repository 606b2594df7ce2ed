"""``python -m benchmarks.watched FILE serve …``: the service, which writes down what holds its event loop up.

A line for each time that callbacks ran for more than ``_WORTH`` seconds of the loop's own processor time without the
loop getting its turn: when (seconds since the epoch), and how many milliseconds."""

import asyncio
import socket
import sys
import time
from typing import TextIO

from app.cli import main
from app.service import serve

_EVERY = 0.001
_WORTH = 0.005


class Watched(serve.Server):
    """``told``: where the lines go."""

    told: TextIO

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Watch from when it listens: what it imports before that is nobody's request."""
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self._used = time.thread_time()
        self._beat()

    def _beat(self) -> None:
        used = time.thread_time()
        if used - self._used > _WORTH:
            self.told.write(f"{time.time():.3f} {(used - self._used) * 1000:.1f}\n")
            self.told.flush()
        self._used = time.thread_time()
        self._loop.call_later(_EVERY, self._beat)


if __name__ == "__main__":
    with open(sys.argv.pop(1), "a") as Watched.told:
        serve.Server = Watched
        sys.exit(main())
