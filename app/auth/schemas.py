"""Bodies of the token and audit endpoints."""

from typing import Annotated, Any
from uuid import UUID

import msgspec

from app.auth.scopes import Scope
from app.solver.model.base import Time, Wire


class TokenRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/tokens``."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    scopes: Annotated[list[Scope], msgspec.Meta(min_length=1, max_length=3)]
    expires_at: Time | None = None


class TokenInfo(Wire, frozen=True, kw_only=True):
    """A token without its secret."""

    id: UUID
    name: str
    scopes: list[Scope]
    created_at: Time
    created_by: str
    expires_at: Time | None = None
    revoked_at: Time | None = None


class TokenCreated(TokenInfo, frozen=True, kw_only=True):
    """``token`` is shown this once; only its hash is kept."""

    token: str


class TokenList(Wire, frozen=True, kw_only=True):
    """Every token, revoked ones too."""

    items: list[TokenInfo]


class AuditLine(Wire, frozen=True, kw_only=True):
    """Who did what, or was refused; ``actor`` is ``token:NAME``, ``oidc:SUBJECT``, ``cli:USER`` or ``anonymous``."""

    id: int
    at: Time
    actor: str
    action: str
    target: str
    detail: dict[str, Any] | None = None


class AuditPage(Wire, frozen=True, kw_only=True):
    """Newest first; ``next_cursor`` is absent on the last page."""

    items: list[AuditLine]
    next_cursor: str | None = None
