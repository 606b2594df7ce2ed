"""``/v1/tokens``, ``/v1/sessions`` and ``/v1/audit``, with their bodies."""

from typing import Annotated, Any
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request, Response

from app.auth.callers import Scope
from app.auth.sessions import Sessions
from app.auth.tokens import Tokens
from app.base.decoding import decode
from app.base.errors import Forbidden
from app.base.settings import Settings
from app.http.body import Body
from app.http.openapi import operation
from app.http.parameters import Cursor, Limit, decode_cursor, encode_cursor
from app.http.responses import json_response
from app.http.routing import service
from app.solver.model.base import Time, Wire


class TokenRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/tokens``."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    """Whom it is for; the audit log names it."""
    scopes: Annotated[list[Scope], msgspec.Meta(min_length=1, max_length=4)]
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


DOCUMENTED = (TokenRequest, TokenCreated, TokenInfo, TokenList, SessionInfo, SessionList, AuditPage, AuditLine)
_EXAMPLE = {"name": "scheduler", "scopes": ["decide"], "expires_at": "2027-01-01T00:00:00Z"}

router = APIRouter(prefix="/v1", tags=["access"])


def _tokens(request: Request) -> Tokens:
    return service(request, Tokens)


async def _settings(request: Request) -> Settings:
    return service(request, Settings)


Service = Annotated[Tokens, Depends(_tokens)]
Configured = Annotated[Settings, Depends(_settings)]


def _sessions(request: Request) -> Sessions:
    return service(request, Sessions)


Signed = Annotated[Sessions, Depends(_sessions)]
SessionId = Annotated[UUID, Path(description="`id` of a session")]
Id = Annotated[UUID, Path(description="`id` of a token")]


@router.post(
    "/tokens",
    operation_id="create_token",
    summary="Create a token",
    **operation(needs="admin", request=TokenRequest, responses={201: TokenCreated}, errors=(503,), example=_EXAMPLE),
)
def create_token(body: Body, service: Service, settings: Configured) -> Response:
    """The secret is in this answer and nowhere else."""
    if settings.authentication == "open":
        raise Forbidden(
            "an open service makes no tokens, which would be good once it is open no more: `arbiter token create`"
        )
    wanted = decode(body, TokenRequest)
    secret, row = service.create(wanted.name, list(dict.fromkeys(wanted.scopes)), wanted.expires_at)
    return json_response(TokenCreated(token=secret, **row._asdict()), 201, {"Cache-Control": "no-store"})


@router.get(
    "/tokens",
    operation_id="list_tokens",
    summary="All tokens",
    **operation(needs="admin", responses={200: TokenList}, errors=(503,)),
)
def list_tokens(service: Service) -> Response:
    """Without their secrets, revoked ones too."""
    return json_response(TokenList(items=[TokenInfo(**row._asdict()) for row in service.every()]))


@router.delete(
    "/tokens/{id}",
    operation_id="revoke_token",
    summary="Revoke a token",
    **operation(needs="admin", responses={200: TokenInfo}, errors=(404, 503)),
)
def revoke_token(id: Id, service: Service) -> Response:  # noqa: A002
    """At once here, within seconds on other replicas."""
    return json_response(TokenInfo(**service.revoke(id)._asdict()))


@router.get(
    "/sessions",
    operation_id="list_sessions",
    summary="Who is signed in",
    **operation(needs="admin", responses={200: SessionList}, errors=(503,)),
)
def list_sessions(sessions: Signed) -> Response:
    """Sessions of the console that are not over. Those of a token that is revoked end with it."""
    return json_response(SessionList(items=[SessionInfo(**row._asdict()) for row in sessions.every()]))


@router.delete(
    "/sessions/{id}",
    operation_id="revoke_session",
    summary="End a session",
    **operation(needs="admin", responses={200: SessionInfo}, errors=(404, 503)),
)
def revoke_session(id: SessionId, sessions: Signed) -> Response:  # noqa: A002
    """At once here, within seconds on other replicas."""
    return json_response(SessionInfo(**sessions.revoke(id)._asdict()))


@router.get(
    "/audit",
    operation_id="list_audit",
    summary="Who did what",
    **operation(needs="admin", responses={200: AuditPage}, errors=(503,)),
)
def list_audit(
    service: Service,
    actor: Annotated[str | None, Query(max_length=256, description="Whose doings, as `actor` of a line")] = None,
    action: Annotated[str | None, Query(max_length=64, description="What was done, as `action` of a line")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """Every write and a sample of the refusals, newest first. Lines are never changed or removed."""
    before = None if cursor is None else int(decode_cursor(cursor, int)[0])
    rows = service.audit_lines(before, limit + 1, actor, action)
    more = encode_cursor(rows[limit - 1].id) if len(rows) > limit else None
    return json_response(AuditPage(items=[AuditLine(**r._asdict()) for r in rows[:limit]], next_cursor=more))
