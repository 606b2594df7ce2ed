"""Scopes. Which one an operation needs is said where the operation is: ``needs`` in ``app.http.openapi.operation``.

``decide``: questions and kept states. ``read``: what changes nothing. ``admin``: the rest, tokens and the audit log;
it includes the other two.
"""

from typing import Literal

Scope = Literal["decide", "read", "admin"]
SCOPES: tuple[Scope, ...] = ("decide", "read", "admin")


def allows(held: frozenset[str], needed: str) -> bool:
    """Whether ``held`` scopes are enough."""
    return needed in held or "admin" in held
