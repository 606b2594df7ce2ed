"""Signing in at an OpenID provider: the authorization code flow (RFC 6749, section 4.1) with PKCE (RFC 7636).

The provider sends the browser back with a code; this service exchanges it for tokens and checks them as the API checks
its own. What ties the three steps together (state, nonce, verifier) is kept in the database, and a cookie names it.
"""

import base64
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast
from urllib.parse import urlencode

from anyio import CapacityLimiter, Semaphore, fail_after, to_thread

from app.auth.keys import fetch
from app.auth.oidc import OpenId
from app.auth.service import Caller
from app.base.errors import Unavailable

_FRESH_SECONDS = 600.0
_AT_ONCE = 4
"""Questions to the provider at once, in threads of their own: one that hangs must not take those of all requests."""
_WAIT_SECONDS, _SECONDS = 4.0, 12.0
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
        self._found: tuple[float, dict[str, Any]] | None = None

    async def begin(self, back: str) -> tuple[str, dict[str, str]]:
        """Where to send the browser, and what to keep until it comes ``back``. Raises Unavailable."""
        kept = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
        challenge = base64.urlsafe_b64encode(sha256(kept["verifier"].encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code", "client_id": self._client.id, "redirect_uri": back, "scope": self._client.scope,
            "state": kept["state"], "nonce": kept["nonce"], "code_challenge": challenge,
            "code_challenge_method": "S256",
        }  # fmt: skip
        where = (await self._provider())["authorization_endpoint"]
        return f"{where}{'&' if '?' in where else '?'}{urlencode(query)}", kept

    async def finish(self, code: str, kept: dict[str, Any], back: str) -> Caller | None:
        """Whom the provider names; None where it names nobody whom we can check. Raises Unavailable."""
        fields = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": back, "client_id": self._client.id,
            "code_verifier": str(kept["verifier"]),
        }  # fmt: skip
        if self._client.secret is not None:
            fields["client_secret"] = self._client.secret
        where = (await self._provider())["token_endpoint"]
        answer = await self._asked(where, fields)
        identity = str(answer.get("id_token", ""))
        claims = await self._own.claims(identity)
        if claims is None or not secrets.compare_digest(str(claims.get("nonce", "")), str(kept["nonce"])):
            return None
        caller = self._own.named(claims)
        access = await self._api.caller(str(answer.get("access_token", "")))
        return access if access is not None and caller is not None and access.name == caller.name else caller

    async def _provider(self) -> dict[str, Any]:
        """The provider's own description (OpenID Connect Discovery), kept for minutes."""
        if self._found is None or self._clock() - self._found[0] > _FRESH_SECONDS:
            where = self._client.issuer.rstrip("/") + "/.well-known/openid-configuration"
            self._found = (self._clock(), await self._asked(where))
        return self._found[1]

    async def _asked(self, *question: Any) -> dict[str, Any]:
        try:
            with fail_after(_WAIT_SECONDS):
                await self._places.acquire()
            try:
                with fail_after(_SECONDS):
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
