"""Sessions of people at a browser. A cookie holds an identifier and nothing else: what it stands for is in the
database, where it ends, for every replica and every copy of the cookie at once.

Before signing in a cookie stands for nobody: its signed identifier only tells our forms from forged ones.
"""

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any
from uuid import UUID, uuid4

from itsdangerous import BadData, URLSafeTimedSerializer

from app.auth import audit, repository
from app.auth.callers import Caller
from app.auth.repository import SessionRow
from app.auth.tokens import Tokens, digest_of
from app.base.errors import NotFound, Unavailable
from app.db.database import Database

PREFIX = "arbs_"
_FRESH_SECONDS = 2.0
_STALE_SECONDS = 600.0
_KEPT = 4096


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
            found, at = self._known.get(digest, (None, -_STALE_SECONDS))
        age = self._clock() - at
        if age <= (_STALE_SECONDS if self._database.is_silent else _FRESH_SECONDS):
            return found
        try:
            with self._database.session() as session:
                row = repository.session_by_hash(session, digest)
        except Unavailable:
            if age > _STALE_SECONDS:
                raise
            return found
        found = None if row is None else Session(row.id.hex, Caller(row.name, frozenset(row.scopes)))
        with self._lock:
            self._known[digest] = (found, self._clock())
            self._known.move_to_end(digest)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return found

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
