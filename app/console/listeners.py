"""Open pages that are told what happens: a bounded number, for which each topic is looked at once."""

import asyncio
from hashlib import sha256

from app.base.errors import ArbiterError, TooManyRequests
from app.console.api import Api, Query, Refused

EVERY_SECONDS = 2.0
TOPICS: dict[str, tuple[str, Query]] = {
    "decisions": ("/v1/decisions", {"limit": 1}),
    "simulations": ("/v1/simulations", {"limit": 50}),
}
"""What pages follow: the list whose newest entries tell whether anything has happened."""


class Listeners:
    """Open pages, at most ``most``. A topic is looked at while anybody listens to it, however many do."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open = 0
        self._marks: dict[str, str] = {}
        self._looked: dict[str, float] = {}

    @property
    def open(self) -> int:
        """How many listen."""
        return self._open

    def join(self) -> None:
        """Raises TooManyRequests where as many listen as may; such a page stays as it was loaded."""
        if self._open >= self._most:
            raise TooManyRequests(f"{self._open} pages listen already", retry_after=60)
        self._open += 1

    def leave(self) -> None:
        """One page less."""
        self._open -= 1

    async def mark(self, topic: str, api: Api) -> str:
        """Changes when something has happened, as of at most a moment ago; with the database away the one that is
        known."""
        now = asyncio.get_running_loop().time()
        if now - self._looked.get(topic, -EVERY_SECONDS) >= EVERY_SECONDS:
            self._looked[topic] = now
            try:
                found = await api.call("GET", *TOPICS[topic])
            except (ArbiterError, Refused):
                return self._marks.get(topic, "")
            finally:
                api.calls.clear()  # one page may stay for long
            self._marks[topic] = sha256(found.body).hexdigest()
        return self._marks.get(topic, "")
