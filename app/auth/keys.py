"""The published keys of an OpenID Connect provider: fetched by one thread of their own, one fetch at a time.

A provider that hangs keeps nobody waiting but those whose key nobody knows, and those not for long and not in numbers:
a known key is given at once, whatever its age, while a fetch goes on.
"""

import asyncio
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

import jwt

from app.base.errors import Unavailable

Published = dict[str, jwt.PyJWK]

_SOCKET_SECONDS = 5
_FETCH_SECONDS = 10.0
_PIECE = 1 << 14
_MOST_BYTES = 1 << 20
_FRESH_SECONDS = 600.0
_AT_MOST_EVERY_SECONDS = 10.0
"""So long what the provider published last is all there is: a key that is not in it is none."""
_AGAIN_SECONDS = 1.0
_WAIT_SECONDS = 2.0
_MOST_WAITING = 64


class Keys:
    """Keys by id. ``find`` finds the keys' document, off the event loop; ``clock``: seconds that never go back."""

    def __init__(self, find: Callable[[], Any], clock: Callable[[], float] = time.monotonic) -> None:
        self._find = find
        self._clock = clock
        self._known: Published = {}
        self._fetched: float | None = None
        self._begun: float | None = None
        self._running: Future[Published] | None = None
        self._waiting = 0
        self._lock = threading.Lock()

    async def key(self, identity: str) -> jwt.PyJWK | None:
        """The key of that id; None where the provider publishes none. Raises Unavailable where that can't be told."""
        known = self._known.get(identity)
        if known is not None:
            if self._age(self._fetched) > _FRESH_SECONDS:
                self._fetch()
            return known
        if self._fetched is not None and self._age(self._fetched) <= _AT_MOST_EVERY_SECONDS:
            return None
        running = self._fetch()
        if running is None:
            raise _away()
        return (await self._awaited(running)).get(identity)

    def _age(self, at: float | None) -> float:
        return float("inf") if at is None else self._clock() - at

    async def _awaited(self, running: Future[Published]) -> Published:
        """What is being fetched. Raises Unavailable where it takes too long, fails, or too many wait already."""
        if self._waiting >= _MOST_WAITING:
            raise _away()
        self._waiting += 1
        try:
            # Not cancelled with whoever waits: others wait for the same.
            await asyncio.wait({asyncio.wrap_future(running)}, timeout=_WAIT_SECONDS)
        finally:
            self._waiting -= 1
        if not running.done() or running.exception() is not None:
            raise _away()
        return running.result()

    def _fetch(self) -> Future[Published] | None:
        """The fetch that goes on, or a new one; None where the last one failed a moment ago."""
        with self._lock:
            if self._running is not None and not self._running.done():
                return self._running
            failed = self._running is not None and self._running.exception() is not None
            pause = _AT_MOST_EVERY_SECONDS if self._known else _AGAIN_SECONDS
            if failed and self._age(self._begun) <= pause:
                return None
            self._begun = self._clock()
            self._running = future = Future[Published]()
        # No pool: leaving the process must not wait for a provider that hangs.
        threading.Thread(target=self._run, args=(future,), name="oidc-keys", daemon=True).start()
        return future

    def _run(self, future: Future[Published]) -> None:
        try:
            found = read_keys(self._find())
        except Exception as error:  # whatever a stranger's document makes of it, no request may wait for ever
            future.set_exception(error)
            return
        self._known, self._fetched = found, self._clock()
        future.set_result(found)


def read_keys(document: Any) -> Published:
    """Public keys for signatures in a JWKS document, by id; others are left out. Raises KeyError, TypeError."""
    keys: Published = {}
    for described in document["keys"]:
        if described.get("use", "sig") == "sig" and described.get("kty") != "oct":
            try:
                keys[str(described.get("kid", ""))] = jwt.PyJWK(described)
            except jwt.PyJWTError:
                continue
    return keys


def fetch(url: str, form: Mapping[str, str] | None = None) -> Any:
    """The JSON document at ``url``, or its answer to a form, within 10 seconds. Raises OSError, ValueError."""
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"{url}: not an http address")
    end = time.monotonic() + _FETCH_SECONDS
    pieces = list[bytes]()
    sent = None if form is None else urlencode(form).encode()
    with _opened(urllib.request.Request(url, sent, {"Accept": "application/json"})) as response:
        while piece := response.read1(_PIECE):
            pieces.append(piece)
            if time.monotonic() > end:
                raise TimeoutError(f"{url} takes too long")
            if sum(map(len, pieces)) > _MOST_BYTES:
                raise ValueError(f"{url} is too long")
    return json.loads(b"".join(pieces))


def _opened(request: urllib.request.Request) -> Any:
    try:
        return urllib.request.urlopen(request, timeout=_SOCKET_SECONDS)
    except HTTPError as refused:
        refused.close()  # it is an answer too, with a connection of its own
        raise


def _away() -> Unavailable:
    return Unavailable("the keys of the token issuer can't be fetched")
