"""What tests of oidc share with those beside them."""

import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

ISSUER, AUDIENCE = "https://login.example", "arbiter"


def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


OURS, THEIRS = key(), key()


def published(private: rsa.RSAPrivateKey, kid: str) -> dict[str, Any]:
    return {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(private.public_key())), "kid": kid, "use": "sig"}


def token(private: Any = OURS, kid: str = "k1", algorithm: str = "RS256", **claims: Any) -> str:
    now = int(time.time())
    payload = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": now + 300, "scope": "read decide", **claims}
    return jwt.encode({k: v for k, v in payload.items() if v is not None}, private, algorithm, headers={"kid": kid})


class Issuer:
    """The provider's web site."""

    def __init__(self) -> None:
        self.keys = [published(OURS, "k1")]
        self.asked: list[str] = []
        self.down = False

    def __call__(self, url: str) -> Any:
        self.asked.append(url)
        if self.down:
            raise OSError("unreachable")
        return {"jwks_uri": f"{ISSUER}/keys"} if url.endswith("openid-configuration") else {"keys": self.keys}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now
