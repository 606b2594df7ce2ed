"""Scopes, and the one that each request needs."""

import re
from typing import Literal

Scope = Literal["decide", "read", "admin"]
SCOPES: tuple[Scope, ...] = ("decide", "read", "admin")
PUBLIC = frozenset({"/healthz", "/readyz", "/openapi.json", "/docs", "/docs/oauth2-redirect", "/redoc"})

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_DECIDING = re.compile(
    r"/v1/(decisions(:batch|/[^/]+/replay)?|shares|preemptibility|effective-settings|comparisons|snapshots(/.*)?|configurations:import)"
)
_ADMIN = re.compile(r"/v1/(tokens|audit)(/.*)?")


def required(method: str, path: str) -> Scope | None:
    """The scope that a request needs; None for what is public.

    ``decide``: questions and kept states. ``read``: everything else that changes nothing. ``admin``: the rest,
    tokens and the audit log; it includes the other two.
    """
    if path in PUBLIC:
        return None
    if _ADMIN.fullmatch(path):
        return "admin"
    if method in _SAFE:
        return "read"
    return "decide" if _DECIDING.fullmatch(path) else "admin"


def allows(held: frozenset[str], needed: Scope) -> bool:
    """Whether ``held`` scopes are enough."""
    return needed in held or "admin" in held
