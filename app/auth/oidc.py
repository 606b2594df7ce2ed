"""OpenID Connect: its published keys, its bearer tokens, and signing in at the provider.

Keys are fetched by one thread of their own, one fetch at a time. A provider that hangs keeps nobody waiting but those
whose key nobody knows, and those not for long and not in numbers: a known key is given at once, whatever its age, while
a fetch goes on. Tokens are checked by signature, then issuer, audience and times.

People sign in by the authorization code flow (RFC 6749, section 4.1) with PKCE (RFC 7636). The provider sends the
browser back with a code; this service exchanges it for tokens and checks them as the API checks its own. What ties the
three steps together (state, nonce, verifier) is kept in the database, and a cookie names it.
"""

import asyncio
import base64
import json
import secrets
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast
from urllib.error import HTTPError
from urllib.parse import urlencode

import jwt
from anyio import CapacityLimiter, Semaphore, fail_after, to_thread

from app.auth.audit import SCOPES, Caller
from app.base.errors import Unavailable

Published = dict[str, jwt.PyJWK]

SOCKET_SECONDS = 5
_FETCH_SECONDS = 10.0
_PIECE = 1 << 14
_MOST_BYTES = 1 << 20
_FRESH_SECONDS = 600.0
AT_MOST_EVERY_SECONDS = 10.0
"""So long what the provider published last is all there is: a key that is not in it is none."""
_AGAIN_SECONDS = 1.0
WAIT_SECONDS = 2.0
MOST_WAITING = 64


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
        if self._fetched is not None and self._age(self._fetched) <= AT_MOST_EVERY_SECONDS:
            return None
        running = self._fetch()
        if running is None:
            raise _away()
        return (await self._awaited(running)).get(identity)

    def _age(self, fetched: float | None) -> float:
        return float("inf") if fetched is None else self._clock() - fetched

    async def _awaited(self, running: Future[Published]) -> Published:
        """What is being fetched. Raises Unavailable where it takes too long, fails, or too many wait already."""
        if self._waiting >= MOST_WAITING:
            raise _away()
        self._waiting += 1
        try:
            # Not cancelled with whoever waits: others wait for the same.
            await asyncio.wait({asyncio.wrap_future(running)}, timeout=WAIT_SECONDS)
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
            pause = AT_MOST_EVERY_SECONDS if self._known else _AGAIN_SECONDS
            if failed and self._age(self._begun) <= pause:
                return None
            self._begun = self._clock()
            self._running = future = Future[Published]()
        # No pool: leaving the process must not wait for a provider that hangs.
        try:
            threading.Thread(target=self._run, args=(future,), name="oidc-keys", daemon=True).start()
        except RuntimeError as error:  # no thread to be had now: a fetch that never ends would be waited for each time
            future.set_exception(error)
        return future

    def _run(self, future: Future[Published]) -> None:
        try:
            published = read_keys(self._find())
        except Exception as error:  # whatever a stranger's document makes of it, no request may wait for ever
            future.set_exception(error)
            return
        self._known, self._fetched = published, self._clock()
        future.set_result(published)


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
        return urllib.request.urlopen(request, timeout=SOCKET_SECONDS)
    except HTTPError as refused:
        refused.close()  # it is an answer too, with a connection of its own
        raise


def _away() -> Unavailable:
    return Unavailable("the keys of the token issuer can't be fetched")


ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Public keys only: with a shared secret, or with none, whoever can check a token can also forge one."""

_LEEWAY_SECONDS = 30
_LONGEST_SUBJECT = 512


@dataclass(frozen=True, slots=True)
class Provider:
    """``jwks_url``: None to find it at the issuer. ``claim``: the one that names scopes, as a list or a string."""

    issuer: str
    audience: str
    jwks_url: str | None = None
    claim: str = "scope"
    prefix: str = ""


class OpenId:
    """Checks tokens of one provider. ``fetch`` gives the JSON document at an address."""

    def __init__(
        self, provider: Provider, clock: Callable[[], float] = time.monotonic, fetch: Callable[[str], Any] = fetch
    ) -> None:
        self._provider = provider
        self._fetch = fetch
        self._keys = Keys(self._published, clock)

    async def caller(self, token: str) -> Caller | None:
        """Who holds ``token``; None where it is expired, forged or meant for somebody else.

        Raises Unavailable when the issuer's keys can't be had.
        """
        claims = await self.claims(token)
        return None if claims is None else self.named(claims)

    async def claims(self, token: str) -> dict[str, Any] | None:
        """What ``token`` says, where it is the issuer's, for us and in time. Raises Unavailable."""
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                return None
            key = await self._keys.key(str(header.get("kid", "")))
            if key is None:
                return None
            return jwt.decode(
                token, key.key, algorithms=[header["alg"]], audience=self._provider.audience,
                issuer=self._provider.issuer, leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )  # fmt: skip
        except (jwt.PyJWTError, ValueError, TypeError):
            return None

    def named(self, claims: dict[str, Any]) -> Caller | None:
        """Whom the claims of a token name, with the scopes that they grant."""
        subject = str(claims["sub"])
        if (
            not subject.isprintable() or len(subject) > _LONGEST_SUBJECT
        ):  # it goes into logs and stays with what it wrote
            return None
        return Caller(f"oidc:{subject}", self._scopes(claims))

    def _scopes(self, claims: dict[str, Any]) -> frozenset[str]:
        value: str | list[Any] | None = claims.get(self._provider.claim, "")
        named = value.split() if isinstance(value, str) else list(map(str, value)) if isinstance(value, list) else []
        prefix = self._provider.prefix
        return frozenset(n.removeprefix(prefix) for n in named if n.startswith(prefix)) & frozenset(SCOPES)

    def _published(self) -> Any:
        """The document with the keys, which is where the provider's own document says."""
        url = self._provider.jwks_url
        if url is None:
            where = self._provider.issuer.rstrip("/") + "/.well-known/openid-configuration"
            url = str(self._fetch(where)["jwks_uri"])
        return self._fetch(url)


_DISCOVERY_SECONDS = 600.0
_AT_ONCE = 4
"""Questions to the provider at once, in threads of their own: one that hangs must not take those of all requests."""
PLACE_SECONDS, _ANSWER_SECONDS = 4.0, 12.0
"""For a place among those who ask, and then for an answer. Who has waited too long for a place must not ask: as many as
gave up together would ask together, in threads that nobody waits for."""


@dataclass(frozen=True, slots=True)
class Client:
    """This service at the provider. ``secret``: None for a public client."""

    issuer: str
    id: str
    secret: str | None
    scope: str = "openid profile"


class CodeFlow:
    """``api`` checks access tokens as the API does, ``own`` id tokens, whose audience is the client. ``ask``: the JSON
    at an address, or its answer to a form."""

    def __init__(
        self, client: Client, api: OpenId, own: OpenId, *, ask: Callable[..., Any] = fetch,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._client = client
        self._api = api
        self._own = own
        self._ask = ask
        self._clock = clock
        self._places, self._threads = Semaphore(_AT_ONCE), CapacityLimiter(_AT_ONCE)
        self._discovered: tuple[float, dict[str, Any]] | None = None

    async def begin(self, back: str) -> tuple[str, dict[str, str]]:
        """Where to send the browser, and what to keep until it comes ``back``. Raises Unavailable."""
        secret = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
        challenge = base64.urlsafe_b64encode(sha256(secret["verifier"].encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code", "client_id": self._client.id, "redirect_uri": back, "scope": self._client.scope,
            "state": secret["state"], "nonce": secret["nonce"], "code_challenge": challenge,
            "code_challenge_method": "S256",
        }  # fmt: skip
        where = (await self._provider())["authorization_endpoint"]
        return f"{where}{'&' if '?' in where else '?'}{urlencode(query)}", secret

    async def finish(self, code: str, secret: dict[str, Any], back: str) -> Caller | None:
        """Whom the provider names; None where it names nobody whom we can check. Raises Unavailable."""
        fields = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": back, "client_id": self._client.id,
            "code_verifier": str(secret["verifier"]),
        }  # fmt: skip
        if self._client.secret is not None:
            fields["client_secret"] = self._client.secret
        where = (await self._provider())["token_endpoint"]
        answer = await self._asked(where, fields)
        identity = str(answer.get("id_token", ""))
        claims = await self._own.claims(identity)
        if claims is None or not secrets.compare_digest(str(claims.get("nonce", "")), str(secret["nonce"])):
            return None
        caller = self._own.named(claims)
        access = await self._api.caller(str(answer.get("access_token", "")))
        return access if access is not None and caller is not None and access.name == caller.name else caller

    async def _provider(self) -> dict[str, Any]:
        """The provider's own description (OpenID Connect Discovery), kept for minutes."""
        if self._discovered is None or self._clock() - self._discovered[0] > _DISCOVERY_SECONDS:
            where = self._client.issuer.rstrip("/") + "/.well-known/openid-configuration"
            self._discovered = (self._clock(), await self._asked(where))
        return self._discovered[1]

    async def _asked(self, *question: Any) -> dict[str, Any]:
        try:
            with fail_after(PLACE_SECONDS):
                await self._places.acquire()
            try:
                with fail_after(_ANSWER_SECONDS):
                    answer = await to_thread.run_sync(
                        self._ask, *question, abandon_on_cancel=True, limiter=self._threads
                    )
            finally:
                self._places.release()
        except (OSError, ValueError):
            raise Unavailable("the provider can't be reached, or refuses") from None
        if not isinstance(answer, dict):
            raise Unavailable("the provider answers something else than expected")
        return cast(dict[str, Any], answer)
