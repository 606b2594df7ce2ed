"""The cookie of a session: no script reads it, and no other site's link or form sends it."""

from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

NAME = "arbiter_session"
_LONGEST = 4000


def cookie_of(scope: Scope, name: str = NAME) -> str | None:
    """What the request of ``scope`` sends under ``name``."""
    jar = SimpleCookie()
    try:
        jar.load(Headers(scope=scope).get("cookie", ""))
    except CookieError:
        return None
    found = jar.get(_named(scope, name))
    return found.value if found is not None and 0 < len(found.value) <= _LONGEST else None


def set_cookie(answer: Response, scope: Scope, value: str, seconds: int | None, name: str = NAME) -> None:
    """Have the browser keep ``value``; for ``seconds``, or as long as it is open."""
    answer.set_cookie(
        _named(scope, name), value, max_age=seconds, path="/", secure=_is_secure(scope), httponly=True,
        samesite="strict" if name == NAME else "lax",
    )  # fmt: skip


def drop_cookie(answer: Response, scope: Scope, name: str = NAME) -> None:
    """Have the browser forget it."""
    answer.delete_cookie(
        _named(scope, name), path="/", secure=_is_secure(scope), httponly=True,
        samesite="strict" if name == NAME else "lax",
    )  # fmt: skip


def _is_secure(scope: Scope) -> bool:
    return scope["scheme"] == "https"


def _named(scope: Scope, name: str) -> str:
    """Over TLS with the prefix that keeps neighbours from setting it."""
    return f"__Host-{name}" if _is_secure(scope) else name
