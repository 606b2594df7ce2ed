"""OpenID Connect bearer tokens: signature by the issuer's published keys, then issuer, audience and times."""

import json
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import jwt

from app.auth.scopes import SCOPES
from app.auth.service import Caller
from app.errors import Unavailable

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Public keys only: with a shared secret, or with none, whoever can check a token can also forge one."""

_FETCH_SECONDS = 5
_MOST_BYTES = 1 << 20
_KEYS_FRESH_SECONDS = 600.0
_AT_MOST_EVERY_SECONDS = 10.0
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
    """Checks tokens of one provider. Keys are cached; an unknown key id fetches them again, but not too often."""

    def __init__(
        self, provider: Provider, clock: Callable[[], float] = time.monotonic, fetch: Callable[[str], Any] | None = None
    ) -> None:
        self._provider = provider
        self._clock = clock
        self._fetch = fetch or _fetch
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched: float | None = None
        self._lock = Lock()

    def caller(self, token: str) -> Caller | None:
        """Who holds ``token``; None where it is expired, forged or meant for somebody else.

        Raises Unavailable when the issuer's keys can't be had.
        """
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                return None
            key = self._key(str(header.get("kid", "")))
            if key is None:
                return None
            claims = jwt.decode(
                token, key.key, algorithms=[header["alg"]], audience=self._provider.audience,
                issuer=self._provider.issuer, leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )  # fmt: skip
        except (jwt.PyJWTError, ValueError, TypeError):
            return None
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

    def _key(self, identity: str) -> jwt.PyJWK | None:
        with self._lock:
            now = self._clock()
            age = None if self._fetched is None else now - self._fetched
            stale = age is None or age > _KEYS_FRESH_SECONDS
            rotated = identity not in self._keys and age is not None and age > _AT_MOST_EVERY_SECONDS
            if stale or rotated:
                try:
                    self._keys = self._published()
                    self._fetched = now
                except (OSError, ValueError, KeyError, TypeError, jwt.PyJWTError) as error:
                    if not self._keys:
                        raise Unavailable("the keys of the token issuer can't be fetched") from error
                    self._fetched = now - _KEYS_FRESH_SECONDS + _AT_MOST_EVERY_SECONDS
            return self._keys.get(identity)

    def _published(self) -> dict[str, jwt.PyJWK]:
        url = self._provider.jwks_url
        if url is None:
            where = self._provider.issuer.rstrip("/") + "/.well-known/openid-configuration"
            url = str(self._fetch(where)["jwks_uri"])
        keys: dict[str, jwt.PyJWK] = {}
        for document in self._fetch(url)["keys"]:
            if document.get("use", "sig") == "sig" and document.get("kty") != "oct":
                try:
                    keys[str(document.get("kid", ""))] = jwt.PyJWK(document)
                except jwt.PyJWTError:
                    continue
        return keys


def _fetch(url: str) -> Any:
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"{url}: not an http address")
    with urllib.request.urlopen(url, timeout=_FETCH_SECONDS) as response:
        return json.loads(response.read(_MOST_BYTES))
