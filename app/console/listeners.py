"""Open pages that are told what happens: a bounded number, for which the log is looked at once."""

import asyncio

from app.console.api import Api, Refused
from app.errors import ArbiterError, TooManyRequests

EVERY_SECONDS = 2.0


class Listeners:
    """Open pages, at most ``most``. ``newest`` is the id of the newest decision, looked up while anybody listens."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open = 0
        self._newest: str | None = None
        self._looked = 0.0

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

    async def newest(self, api: Api) -> str | None:
        """The newest decision, as of at most a moment ago; with the database away the one that is known."""
        now = asyncio.get_running_loop().time()
        if now - self._looked >= EVERY_SECONDS:
            self._looked = now
            try:
                found = (await api.get("/v1/decisions", {"limit": 1}))["items"]
            except (ArbiterError, Refused):
                return self._newest
            finally:
                api.calls.clear()  # one page may stay for long
            self._newest = found[0]["id"] if found else None
        return self._newest
