"""OpenID Connect bearer tokens: signature by the issuer's published keys, then issuer, audience and times."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jwt

from app.auth.keys import Keys, fetch
from app.auth.scopes import SCOPES
from app.auth.service import Caller

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
