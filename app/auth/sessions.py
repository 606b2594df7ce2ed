"""Sessions of people at a browser: a signed cookie, a token against forged forms, and an end that holds everywhere.

The cookie holds the token that its owner signed in with, or whom the OpenID provider named. A revoked token ends its
sessions; a session that is signed out of is written down, so that a copy of its cookie is worth nothing.
"""

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any

from itsdangerous import BadData, URLSafeTimedSerializer

from app.auth import audit, repository
from app.auth.service import Caller, Tokens
from app.base.errors import Unavailable
from app.db import Database

_FRESH_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Session:
    """``caller``: None before signing in, and on an open service."""

    id: str
    caller: Caller | None


class Sessions:
    """``key``: signs cookies, the same on every replica; None: one of this process. ``seconds``: how long they last."""

    def __init__(
        self, database: Database, tokens: Tokens, key: str | None, seconds: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._database = database
        self._tokens = tokens
        self._seconds = seconds
        self._clock = clock
        self._key = key or secrets.token_urlsafe(32)
        self._signer = URLSafeTimedSerializer(self._key, salt="arbiter session")
        self._ended: frozenset[str] = frozenset()
        self._looked: float | None = None
        self._lock = Lock()

    def anonymous(self) -> tuple[str, Session]:
        """A session of nobody yet, whose forms can be told from forged ones: its cookie, and what it is."""
        identity = secrets.token_hex(16)
        return self._signer.dumps({"id": identity}), Session(identity, None)

    def with_token(self, secret: str) -> str | None:
        """The cookie of whoever holds ``secret``; None where nobody may. Raises Unavailable."""
        caller = self._tokens.caller(secret)
        return None if caller is None else self._begun(caller, {"token": secret})

    def with_caller(self, caller: Caller) -> str:
        """The cookie of somebody whom a provider named."""
        return self._begun(caller, {"name": caller.name, "scopes": sorted(caller.scopes)})

    def find(self, cookie: str) -> Session | None:
        """The session of ``cookie``; None where it is forged, too old or over. Raises Unavailable."""
        said = self._read(cookie)
        if said is None or said["id"] in self._over():
            return None
        if "token" in said:
            caller = self._tokens.caller(said["token"])
            return None if caller is None else Session(said["id"], caller)
        if "name" in said:
            return Session(said["id"], Caller(said["name"], frozenset(said["scopes"])))
        return Session(said["id"], None)

    def end(self, cookie: str) -> None:
        """From now on nobody gets in with it; other replicas notice within seconds. Raises Unavailable."""
        said = self._read(cookie)
        if said is None:
            return
        until = datetime.now(UTC) + timedelta(seconds=self._seconds)
        with self._database.session() as session:
            repository.end_session(session, said["id"], until)
            audit.record(session, "session.end", said["id"][:8], None)
        with self._lock:
            self._ended |= {said["id"]}

    def stamp(self, session: Session) -> str:
        """What every form of the session carries: nobody without its cookie can know it."""
        return hmac.new(self._key.encode(), f"form {session.id}".encode(), "sha256").hexdigest()

    def is_stamp(self, session: Session, given: str) -> bool:
        """Whether a form comes from a page of that session."""
        return hmac.compare_digest(self.stamp(session).encode(), given.encode())

    def sealed(self, said: dict[str, Any], purpose: str) -> str:
        """``said``, for a cookie that comes back within minutes."""
        return self._signer.dumps({"purpose": purpose, **said})

    def unsealed(self, text: str, purpose: str, seconds: int) -> dict[str, Any] | None:
        """What was sealed for that purpose, at most ``seconds`` ago."""
        try:
            said: dict[str, Any] = self._signer.loads(text, max_age=seconds)
        except BadData:
            return None
        return said if said.get("purpose") == purpose else None

    def _begun(self, caller: Caller, said: dict[str, Any]) -> str:
        identity = secrets.token_hex(16)
        with self._database.session() as session:
            audit.record(session, "session.begin", identity[:8], {"who": caller.name})
        return self._signer.dumps({"id": identity, **said})

    def _read(self, cookie: str) -> dict[str, Any] | None:
        try:
            said: dict[str, Any] = self._signer.loads(cookie, max_age=self._seconds)
        except BadData:
            return None
        return said if "id" in said else None

    def _over(self) -> frozenset[str]:
        """Sessions that were ended; with the database away, those that are known."""
        if self._looked is None or self._clock() - self._looked > _FRESH_SECONDS:
            try:
                with self._database.session() as session:
                    found = repository.every_ended_session(session)
            except Unavailable:
                return self._ended
            with self._lock:
                self._ended, self._looked = found, self._clock()
        return self._ended
