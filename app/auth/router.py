"""``/v1/tokens``, ``/v1/sessions`` and ``/v1/audit``."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from app.auth.schemas import (
    AuditLine,
    AuditPage,
    SessionInfo,
    SessionList,
    TokenCreated,
    TokenInfo,
    TokenList,
    TokenRequest,
)
from app.auth.service import Tokens
from app.auth.sessions import Sessions
from app.base.decoding import decode
from app.base.errors import Forbidden
from app.base.settings import Settings
from app.http.body import Body
from app.http.openapi import operation
from app.http.pages import Cursor, Limit, decode_cursor, encode_cursor
from app.http.responses import json_response
from app.http.services import service

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
