"""Bodies of the token and audit endpoints."""

from datetime import datetime
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
    scopes: list[str]
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


class TokenCreated(TokenInfo, frozen=True, kw_only=True):
    """``token`` is shown this once; only its hash is kept."""

    token: str


class TokenList(Wire, frozen=True, kw_only=True):
    items: list[TokenInfo]


class AuditLine(Wire, frozen=True, kw_only=True):
    id: int
    at: datetime
    actor: str
    action: str
    target: str
    detail: dict[str, Any] | None = None


class AuditPage(Wire, frozen=True, kw_only=True):
    items: list[AuditLine]
    next_cursor: str | None = None
