"""Tokens, and nobody past here without a name and the scope that the request needs.

A token is 32 random bytes, stored as SHA-256, compared in constant time, looked up again every few seconds.

Whoever guesses at them is slowed down, by the address that the guesses come from.
"""

import hmac
import math
import secrets
import time
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from threading import Lock
from uuid import UUID, uuid4

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.auth import audit, repository
from app.auth.audit import ANONYMOUS, Caller, Kind, Refusals, Visitors, acting, allows, current_actor, welcome
from app.auth.oidc import OpenId
from app.auth.repository import AuditRow, TokenRow
from app.base.errors import ArbiterError, BadInput, Forbidden, NotFound, TooManyRequests, Unauthorized, Unavailable
from app.db.database import Database
from app.http.middleware import address_of
from app.http.responses import answer_to
from app.http.routing import Resolved, is_for_people
from app.solver.model.problems import Problem

PREFIX = "arb_"
FRESH_SECONDS = 2.0
_STALE_SECONDS = 600.0
_SECOND_LOOK_SECONDS = 1.0
"""How long whoever is known waits for a database that has not answered anybody yet."""
MOST_KEPT = 1024


@dataclass(frozen=True, slots=True)
class _Known:
    caller: Caller | None
    expires: datetime | None
    since: float


class Tokens:
    """The service's own tokens. ``clock``: seconds that never go back."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._nobody: OrderedDict[bytes, _Known] = OrderedDict()  # apart: guesses must not push out those who are known
        self._lock = Lock()

    def create(self, name: str, scopes: list[str], expires: datetime | None) -> tuple[str, TokenRow]:
        """A new token: its secret, which is shown this once, and what is stored. Raises BadInput, Unavailable."""
        if not name.isprintable():  # it goes into logs, lists and the database, whose texts hold no NUL
            raise BadInput([Problem(pointer="/name", detail="a letter that can't be printed")])
        secret = PREFIX + secrets.token_urlsafe(32)
        with self._database.session() as session:
            row = repository.add(session, uuid4(), name, scopes, digest_of(secret), current_actor(), expires)
            audit.record(session, "token.create", str(row.id), {"name": name, "scopes": scopes})
        return secret, row

    def every(self) -> list[TokenRow]:
        """Raises Unavailable."""
        with self._database.session() as session:
            return repository.every_token(session)

    def revoke(self, identity: UUID) -> TokenRow:
        """From now on nobody gets in with it; other replicas notice within seconds. Raises NotFound, Unavailable."""
        with self._database.session() as session:
            row = repository.revoke(session, identity)
            if row is None:
                raise NotFound(f"no token {identity}")
            audit.record(session, "token.revoke", str(identity), {"name": row.name})
        with self._lock:
            self._known.clear()
        return row

    def caller(self, secret: str) -> Caller | None:
        """Who holds ``secret``; None where nobody may. With the database away, what was known minutes ago holds.

        Raises Unavailable.
        """
        digest = digest_of(secret)
        known = self._recall(digest)
        if known is None or not self._suffices(known):
            try:
                known = self._look_up(digest, None if known is None else _SECOND_LOOK_SECONDS)
            except Unavailable:
                if known is None or self._age(known) > _STALE_SECONDS:
                    raise
        return _welcome(known)

    def remembered(self, secret: str) -> Caller | None:
        """Who holds ``secret``, where that is known without a look at the database: ``caller`` has the last word."""
        known = self._recall(digest_of(secret))
        return _welcome(known) if known is not None and self._suffices(known) else None

    def _suffices(self, known: _Known) -> bool:
        return self._age(known) <= (_STALE_SECONDS if self._database.is_silent else FRESH_SECONDS)

    def _age(self, known: _Known) -> float:
        return self._clock() - known.since

    def audit_lines(self, before: int | None, limit: int, who: str | None, action: str | None) -> list[AuditRow]:
        """Newest first. Raises Unavailable."""
        with self._database.session() as session:
            return repository.lines(session, before, limit, who, action)

    def refused(self, who: str, action: str, target: str, why: str, unwritten: int = 0) -> None:
        """Write a refusal down, and how many like it were not. Raises Unavailable."""
        with self._database.session() as session:
            detail = {"why": why} | ({"unwritten": unwritten} if unwritten else {})
            repository.record(session, who, action, target, detail)

    def _recall(self, digest: bytes) -> _Known | None:
        with self._lock:
            return self._known.get(digest) or self._nobody.get(digest)

    def _look_up(self, digest: bytes, seconds: float | None) -> _Known:
        with self._database.session(seconds) as session:
            row = repository.by_hash(session, digest)
        caller, expires = None, None
        if row is not None and hmac.compare_digest(row[0], digest) and row[1].revoked_at is None:
            caller = Caller(f"token:{row[1].name}", frozenset(row[1].scopes))
            expires = row[1].expires_at
        known = _Known(caller, expires, self._clock())
        with self._lock:
            self._known.pop(digest, None)
            self._nobody.pop(digest, None)
            cache = self._nobody if caller is None else self._known
            cache[digest] = known
            while len(cache) > MOST_KEPT:
                cache.popitem(last=False)
        return known


def _welcome(known: _Known) -> Caller | None:
    return None if known.expires is not None and known.expires <= datetime.now(UTC) else known.caller


def digest_of(secret: str) -> bytes:
    """What is stored of a secret."""
    return sha256(secret.encode()).digest()


_AT_ONCE = 10.0
_SECONDS_EACH = 6.0
"""So long until one more may be wrong."""
_MOST_ADDRESSES = 10_000


class Guesses:
    """Wrong tokens by address: ten at once, then ten a minute. ``clock``: seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def check(self, address: str) -> None:
        """Raises TooManyRequests where too many were wrong: then nothing is looked up, right or not."""
        with self._lock:
            left = self._now(address)
        if left < 1:
            raise TooManyRequests(
                "too many wrong tokens came from this address", retry_after=math.ceil((1 - left) * _SECONDS_EACH)
            )

    def wrong(self, address: str) -> None:
        """One more was."""
        with self._lock:
            self._left[address] = (self._now(address) - 1, self._clock())
            self._left.move_to_end(address)
            while len(self._left) > _MOST_ADDRESSES:
                self._left.popitem(last=False)

    def _now(self, address: str) -> float:
        left, since = self._left.get(address, (_AT_ONCE, self._clock()))
        return min(left + (self._clock() - since) / _SECONDS_EACH, _AT_ONCE)


_LOOKUPS = 10
"""Tokens looked up at once, in threads of their own: requests that wait for the database may take all others."""
_WRITES = 2
"""Refusals written down at once."""


class AuthenticationMiddleware:
    """Bearer tokens: the service's own, or those of an OpenID Connect provider. On pages, sessions too.

    ``visitors``: who looks at pages; None where there are none.
    """

    def __init__(
        self,
        app: ASGIApp,
        tokens: Tokens,
        provider: OpenId | None,
        refusals: Refusals,
        guesses: Guesses,
        visitors: Visitors | None = None,
    ) -> None:
        self.app = app
        self._visitors = visitors
        self._tokens = tokens
        self._provider = provider
        self._refusals = refusals
        self._guesses = guesses
        self._lookups = CapacityLimiter(_LOOKUPS)
        self._writes = CapacityLimiter(_WRITES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match = scope["app"].state.operations.resolve(scope) if scope["type"] == "http" else None
        if match is None or _is_public(match):
            await self.app(scope, receive, send)
            return
        who = ANONYMOUS
        try:
            caller = await self._visitor(scope, match) or await self._caller(scope, match)
            who = caller.name
            welcome(scope, caller)
            needed = () if match.operation is None else match.operation.needs
            if needed and not allows(caller.scopes, *needed):
                raise Forbidden(
                    f"this needs scope {' or '.join(needed)}; {who} has {', '.join(sorted(caller.scopes)) or 'none'}"
                )
        except ArbiterError as refusal:
            await self._refuse(who, refusal, scope, receive, send)
            return
        with acting(who):
            await self.app(scope, receive, send)

    async def _visitor(self, scope: Scope, match: Resolved) -> Caller | None:
        """Whose session a page is asked for with. The API takes no cookies: no other site can make use of one."""
        if self._visitors is None or not is_for_people(scope, match):
            return None
        return await to_thread.run_sync(self._visitors.caller, scope, limiter=self._lookups)

    async def _caller(self, scope: Scope, match: Resolved) -> Caller:
        """Whose token it is. Raises Unauthorized, TooManyRequests, Unavailable."""
        basic = match.operation is not None and match.operation.basic
        secret = _secret(Headers(scope=scope).get("authorization") or "", basic=basic)
        if not secret:
            raise Unauthorized("send Authorization: Bearer with a token")
        known = self._tokens.remembered(secret) if secret.startswith(PREFIX) else None
        if known is not None:
            return known
        address = address_of(scope)
        self._guesses.check(address)
        if secret.startswith(PREFIX):
            caller = await to_thread.run_sync(self._tokens.caller, secret, limiter=self._lookups)
        elif self._provider is not None:
            caller = await self._provider.caller(secret)
        else:
            caller = None
        if caller is None:
            self._guesses.wrong(address)
            raise Unauthorized("the token is unknown, expired or revoked", invalid=True)
        return caller

    async def _refuse(self, who: str, refusal: ArbiterError, scope: Scope, receive: Receive, send: Send) -> None:
        match: Resolved = scope["app"].state.operations.resolve(scope)
        page = self._visitors is not None and is_for_people(scope, match)
        if page and isinstance(refusal, Unauthorized):
            assert self._visitors is not None
            await self._visitors.ask_in(scope)(scope, receive, send)
            return
        if not isinstance(refusal, Unavailable):
            kind: Kind = "forbidden" if isinstance(refusal, Forbidden) else "unauthenticated"
            missed = self._refusals.add(who, kind)
            if missed is not None:
                target = f"{scope['method']} {scope['path']}"[:512]
                write = partial(self._tokens.refused, who, f"refused.{kind}", target, refusal.detail, missed)
                with suppress(Unavailable):  # refusing does not wait for the log; the request log has the line
                    await to_thread.run_sync(write, limiter=self._writes)
        answer = self._visitors.refusal(scope, refusal) if self._visitors is not None and page else None
        await (answer or await answer_to(Request(scope), refusal))(scope, receive, send)


def _secret(header: str, *, basic: bool) -> str:
    """The token: as a bearer's; where ``basic`` credentials are taken also as the password of callers that know no
    other way than a user and a password in an address, as kube-scheduler's extenders. Nobody is asked for one, so that
    no browser sends it by itself."""
    kind, _, rest = header.strip().partition(" ")
    if kind.lower() == "bearer":
        return rest.strip()
    if kind.lower() != "basic" or not basic:
        return ""
    try:
        return b64decode(rest.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _is_public(match: Resolved) -> bool:
    """Whether nobody has to say who they are; what is not there at all is for callers with a name."""
    if match.operation is not None:
        return not match.operation.needs
    return match.place is not None and match.place.is_public
