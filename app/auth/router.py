"""``/v1/tokens``, ``/v1/sessions`` and ``/v1/audit``, with their bodies; sessions of people at a browser."""

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Annotated, Any
from uuid import UUID, uuid4

import msgspec
from fastapi import APIRouter, Path, Query, Response
from itsdangerous import BadData, URLSafeTimedSerializer

from app.auth import audit, repository
from app.auth.audit import Caller, Scope
from app.auth.repository import SessionRow
from app.auth.tokens import Tokens, digest_of
from app.base.decoding import decode
from app.base.errors import Forbidden, NotFound, Unavailable
from app.base.settings import Settings
from app.db.database import Database
from app.http.body import Body
from app.http.openapi import Cursor, Limit, decode_cursor, encode_cursor, operation
from app.http.responses import json_response
from app.http.routing import provided
from app.solver.model.base import Time, Wire

PREFIX = "arbs_"
_FRESH_SECONDS = 2.0
_STALE_SECONDS = 600.0
MOST_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Session:
    """``caller``: None before signing in, and on an open service. ``id`` names it and opens nothing."""

    id: str
    caller: Caller | None


class Sessions:
    """``key``: signs identifiers of nobody and stamps of forms, the same on every replica; None: one of this process.
    ``seconds``: how long a session lasts. ``clock``: seconds that never go back."""

    def __init__(
        self, database: Database, tokens: Tokens, key: str | None, seconds: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._database = database
        self._tokens = tokens
        self._seconds = seconds
        self._clock = clock
        self._key = key or secrets.token_urlsafe(32)
        self._signer = URLSafeTimedSerializer(self._key, salt="arbiter session of nobody")
        self._known: OrderedDict[bytes, tuple[Session | None, float]] = OrderedDict()
        self._forged: OrderedDict[bytes, tuple[Session | None, float]] = OrderedDict()  # apart: they push nobody out
        self._lock = Lock()

    def anonymous(self) -> tuple[str, Session]:
        """A session of nobody yet, whose forms can be told from forged ones: its cookie, and what it is."""
        identity = secrets.token_hex(16)
        return self._signer.dumps(identity), Session(identity, None)

    def with_token(self, secret: str, address: str = "") -> str | None:
        """The cookie of whoever holds ``secret``; None where nobody may. Raises Unavailable."""
        caller = self._tokens.caller(secret)
        return None if caller is None else self._begun(caller, digest_of(secret), address)

    def with_caller(self, caller: Caller, address: str = "") -> str:
        """The cookie of somebody whom a provider named. Raises Unavailable."""
        return self._begun(caller, None, address)

    def find(self, cookie: str) -> Session | None:
        """The session of ``cookie``; None where it is forged, too old or over. With the database away, what was known
        minutes ago holds. Raises Unavailable."""
        if not cookie.startswith(PREFIX):
            return self._nobody(cookie)
        digest = digest_of(cookie)
        with self._lock:
            visitor, since = self._known.get(digest) or self._forged.get(digest) or (None, -_STALE_SECONDS)
        age = self._clock() - since
        if age <= (_STALE_SECONDS if self._database.is_silent else _FRESH_SECONDS):
            return visitor
        try:
            with self._database.session() as session:
                row = repository.session_by_hash(session, digest)
        except Unavailable:
            if age > _STALE_SECONDS:
                raise
            return visitor
        visitor = None if row is None else Session(row.id.hex, Caller(row.name, frozenset(row.scopes)))
        with self._lock:
            self._known.pop(digest, None)
            self._forged.pop(digest, None)
            cache = self._forged if visitor is None else self._known
            cache[digest] = (visitor, self._clock())
            while len(cache) > MOST_KEPT:
                cache.popitem(last=False)
        return visitor

    def end(self, cookie: str) -> None:
        """From now on nobody gets in with it; other replicas notice within seconds. Raises Unavailable."""
        if not cookie.startswith(PREFIX):
            return
        with self._database.session() as session:
            row = repository.end_session(session, digest=digest_of(cookie))
            if row is not None:
                audit.record(session, "session.end", str(row.id), {"who": row.name})
        with self._lock:
            self._known.pop(digest_of(cookie), None)

    def revoke(self, identity: UUID) -> SessionRow:
        """The same by its id. Raises NotFound, Unavailable."""
        with self._database.session() as session:
            row = repository.end_session(session, identity=identity)
            if row is None:
                raise NotFound(f"no session {identity}")
            audit.record(session, "session.revoke", str(identity), {"who": row.name})
        with self._lock:
            self._known.clear()
        return row

    def every(self) -> list[SessionRow]:
        """Those that are not over, oldest first. Raises Unavailable."""
        with self._database.session() as session:
            return repository.every_session(session)

    def stamp(self, session: Session) -> str:
        """What every form of the session carries: nobody without its cookie can know it."""
        return hmac.new(self._key.encode(), f"form {session.id}".encode(), "sha256").hexdigest()

    def is_stamp(self, session: Session, given: str) -> bool:
        """Whether a form comes from a page of that session."""
        return hmac.compare_digest(self.stamp(session).encode(), given.encode())

    def remember(self, said: dict[str, Any], seconds: int) -> str:
        """Keep what ties the steps of a sign-in together for so long; the identifier that a cookie may hold. Raises
        Unavailable."""
        identifier = secrets.token_urlsafe(32)
        with self._database.session() as session:
            repository.keep_sign_in(
                session, digest_of(identifier), said, datetime.now(UTC) + timedelta(seconds=seconds)
            )
        return identifier

    def recall(self, identifier: str, state: str) -> dict[str, Any] | None:
        """What was kept under it with that ``state``, once; None where there is none. Raises Unavailable."""
        with self._database.session() as session:
            return repository.take_sign_in(session, digest_of(identifier), state)

    def _begun(self, caller: Caller, token: bytes | None, address: str) -> str:
        cookie, identity, now = PREFIX + secrets.token_urlsafe(32), uuid4(), datetime.now(UTC)
        until = now + timedelta(seconds=self._seconds)
        row = SessionRow(identity, caller.name, sorted(caller.scopes), address, now, until)
        with self._database.session() as session:
            repository.begin_session(session, digest_of(cookie), token, row)
            audit.record(session, "session.begin", str(identity), {"who": caller.name})
        return cookie

    def _nobody(self, cookie: str) -> Session | None:
        try:
            said = self._signer.loads(cookie, max_age=self._seconds)
        except BadData:
            return None
        return Session(said, None) if isinstance(said, str) else None


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


Service = Annotated[Tokens, provided(Tokens)]
Configured = Annotated[Settings, provided(Settings)]


Signed = Annotated[Sessions, provided(Sessions)]
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
