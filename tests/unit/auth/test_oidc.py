"""OpenID Connect: what is forged, expired or meant for somebody else gets nobody in."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from app.auth.audit import Caller
from app.auth.oidc import OpenId, Provider
from app.base.errors import Unavailable
from tests.support.oidc import AUDIENCE, ISSUER, OURS, THEIRS, Clock, Issuer, key, published, token


class Sync:
    """An OpenId whose callers wait."""

    def __init__(self, openid: OpenId) -> None:
        self._openid = openid

    def caller(self, secret: str) -> Caller | None:
        return asyncio.run(self._openid.caller(secret))


def provider(**fields: Any) -> tuple[Sync, Issuer, Clock]:
    issuer, clock = Issuer(), Clock()
    return Sync(OpenId(Provider(ISSUER, AUDIENCE, **fields), clock, issuer)), issuer, clock


def test_a_good_token_names_its_subject_and_scopes() -> None:
    openid, _, _ = provider()
    caller = openid.caller(token())
    assert caller is not None
    assert (caller.name, caller.scopes) == ("oidc:ann", {"read", "decide"})


@pytest.mark.parametrize("scopes", ["arbiter:admin other", ["arbiter:admin", "arbiter:unknown"]])
def test_scopes_come_from_a_claim_and_may_have_a_prefix(scopes: object) -> None:
    openid, _, _ = provider(claim="roles", prefix="arbiter:")
    caller = openid.caller(token(roles=scopes))
    assert caller is not None
    assert caller.scopes == {"admin"}


@pytest.mark.parametrize("scopes", [None, 5, {"admin": True}, [], "", ["reader", 7]])
def test_a_claim_that_names_no_scopes_grants_none(scopes: object) -> None:
    openid, _, _ = provider()
    caller = openid.caller(token(scope=scopes))
    assert caller is not None
    assert caller.scopes == frozenset()


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": -25}, {"iat": 25}, {"nbf": 25}, {"sub": "a" * 512}, {"aud": ["other", AUDIENCE]},
    ],
)  # fmt: skip
def test_clocks_may_differ_by_half_a_minute_and_names_be_long(claims: Any) -> None:
    openid, _, _ = provider()
    now = int(time.time())
    caller = openid.caller(token(**{k: now + v if isinstance(v, int) else v for k, v in claims.items()}))
    assert caller is not None
    assert caller.name == f"oidc:{claims.get('sub', 'ann')}"


@pytest.mark.parametrize("claim", ["exp", "iat", "nbf"])
def test_clocks_may_not_differ_by_more(claim: str) -> None:
    openid, _, _ = provider()
    assert openid.caller(token(**{claim: int(time.time()) + (-35 if claim == "exp" else 60)})) is None


def test_keys_are_where_the_issuers_document_says_or_where_we_are_told() -> None:
    issuer = Issuer()
    for one, asked in (
        (Provider(f"{ISSUER}/", AUDIENCE), [f"{ISSUER}/.well-known/openid-configuration", f"{ISSUER}/keys"]),
        (Provider(ISSUER, AUDIENCE, jwks_url="https://elsewhere"), ["https://elsewhere"]),
    ):
        issuer.asked.clear()
        Sync(OpenId(one, Clock(), issuer)).caller(token(iss=one.issuer))
        assert issuer.asked == asked


def unsigned() -> str:
    def part(document: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")

    payload = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": int(time.time()) + 300, "scope": "admin"}
    return f"{part({'alg': 'none', 'kid': 'k1'})}.{part(payload)}."


def signed_with_the_public_key() -> str:
    public = OURS.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    head = unsigned().replace(unsigned().split(".")[0], "", 1)
    header = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"k1"}').decode().rstrip("=")
    message = header + head.rstrip(".")
    return (
        message + "." + base64.urlsafe_b64encode(hmac.new(public, message.encode(), hashlib.sha256).digest()).decode()
    )


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(token(THEIRS), id="forged key"),
        pytest.param(unsigned(), id="alg none"),
        pytest.param(signed_with_the_public_key(), id="public key as a shared secret"),
        pytest.param(token(aud="somebody-else"), id="wrong audience"),
        pytest.param(token(iss="https://evil.example"), id="wrong issuer"),
        pytest.param(token(exp=int(time.time()) - 3600), id="expired"),
        pytest.param(token(exp=None), id="never expires"),
        pytest.param(token(sub=None), id="nobody"),
        pytest.param(token(sub="ann\x00"), id="a name that can't be stored"),
        pytest.param(token(sub="ann\nadmin"), id="a name of two lines"),
        pytest.param(token(sub="a" * 513), id="a name without end"),
        pytest.param(token(iat=int(time.time()) + 3600), id="from the future"),
        pytest.param(token(nbf=int(time.time()) + 3600), id="not yet"),
        pytest.param(token(kid="k9"), id="unknown key"),
        pytest.param(token()[:-4] + "AAAA", id="broken signature"),
        pytest.param("not.a.token", id="no token"),
        pytest.param("x" * 5000, id="noise"),
    ],
)
def test_nobody_gets_in_with(bad: str) -> None:
    openid, _, _ = provider()
    assert openid.caller(bad) is None


def test_the_algorithm_must_be_that_of_the_key() -> None:
    openid, issuer, _ = provider()
    curve = ec.generate_private_key(ec.SECP256R1())
    elliptic = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(curve.public_key()))
    issuer.keys = [published(OURS, "k1"), {**elliptic, "kid": "e1"}]
    assert openid.caller(token(curve, "e1", "ES256")) is not None
    assert openid.caller(token(OURS, "e1")) is None
    assert openid.caller(token(curve, "k1", "ES256")) is None


def test_keys_are_cached_and_fetched_again_when_they_rotate_but_not_at_every_guess() -> None:
    openid, issuer, clock = provider(jwks_url=f"{ISSUER}/keys")
    assert openid.caller(token()) is not None
    for _ in range(5):
        assert openid.caller(token(kid="guess")) is None
    assert len(issuer.asked) == 1
    fresh = key()
    issuer.keys = [published(fresh, "k2")]
    clock.now = 11
    assert openid.caller(token(fresh, "k2")) is not None
    assert openid.caller(token()) is None
    assert len(issuer.asked) == 2


def test_an_issuer_that_is_away_does_not_lock_out_known_keys() -> None:
    openid, issuer, clock = provider()
    issuer.down = True
    with pytest.raises(Unavailable):
        openid.caller(token())
    issuer.down, clock.now = False, 2
    assert openid.caller(token()) is not None
    issuer.down, clock.now = True, 10_000
    assert openid.caller(token()) is not None
    assert openid.caller(token()) is not None


def test_shared_secrets_among_the_published_keys_are_ignored() -> None:
    openid, issuer, _ = provider()
    issuer.keys = [{"kty": "oct", "k": "c2VjcmV0", "kid": "k1"}, {"kty": "??", "kid": "k3"}]
    assert openid.caller(token()) is None
