"""Bodies of the token and audit endpoints."""

from typing import Annotated, Any
from uuid import UUID

import msgspec

from app.auth.scopes import Scope
from app.solver.model.base import Time, Wire


class TokenRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/tokens``."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    """Whom it is for; the audit log names it."""
    scopes: Annotated[list[Scope], msgspec.Meta(min_length=1, max_length=3)]
    """What it may do; `admin` includes the others."""
    expires_at: Time | None = None
    """When it stops working. Absent: never."""


class TokenInfo(Wire, frozen=True, kw_only=True):
    """A token without its secret."""

    id: UUID
    """The id of the token."""
    name: str
    """Whom it is for."""
    scopes: list[Scope]
    """What it may do."""
    created_at: Time
    """When it was made."""
    created_by: str
    """Who made it."""
    expires_at: Time | None = None
    """When it stops working. Absent: never."""
    revoked_at: Time | None = None
    """When it was revoked. Absent: it was not."""


class TokenCreated(TokenInfo, frozen=True, kw_only=True):
    """``token`` is shown this once; only its hash is kept."""

    token: str
    """The secret, shown this once; only its hash is kept."""


class TokenList(Wire, frozen=True, kw_only=True):
    """Every token, revoked ones too."""

    items: list[TokenInfo]
    """Every token, revoked ones too."""


class SessionInfo(Wire, frozen=True, kw_only=True):
    """Somebody who is signed in at the console."""

    id: UUID
    """The id of the session. It opens nothing."""
    name: str
    """Who: `token:NAME` or `oidc:SUBJECT`."""
    scopes: list[Scope]
    """What they may do."""
    address: str
    """Where they signed in from."""
    created_at: Time
    """When they did."""
    expires_at: Time
    """When it ends by itself."""


class SessionList(Wire, frozen=True, kw_only=True):
    """Sessions that are not over."""

    items: list[SessionInfo]
    """Oldest first."""


class AuditLine(Wire, frozen=True, kw_only=True):
    """Who did what, or was refused; ``actor`` is ``token:NAME``, ``oidc:SUBJECT``, ``cli:USER`` or ``anonymous``."""

    id: int
    """Counts up."""
    at: Time
    """When."""
    actor: str
    """Who: `token:NAME`, `oidc:SUBJECT`, `cli:USER`, `service` or `anonymous`."""
    action: str
    """What was done or refused."""
    target: str
    """To what."""
    detail: dict[str, Any] | None = None
    """What else is known of it."""


class AuditPage(Wire, frozen=True, kw_only=True):
    """Newest first; ``next_cursor`` is absent on the last page."""

    items: list[AuditLine]
    """Newest first."""
    next_cursor: str | None = None
    """Give it as `cursor` for the next page. Absent: this is the last."""
