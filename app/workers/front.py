"""Who answers: this process for what is small, a worker for what is large or asks about a kept snapshot."""

from datetime import datetime

import msgspec

from app.decisions.sources import Used
from app.workers.deadline import deadline
from app.workers.desk import Desk, Reply
from app.workers.pool import Pool

_NAMED = b'"snapshot"'


class _StateName(msgspec.Struct, frozen=True):
    snapshot: str | None = None


class _Peek(msgspec.Struct, frozen=True):
    state: _StateName = _StateName()
    configuration: msgspec.Raw = msgspec.Raw(b"null")


_PEEK = msgspec.json.Decoder(_Peek)


class Front:
    """The operations of ``Desk``, wherever they run. Without a pool everything runs here.

    ``small``: bodies up to this many bytes are answered here; ``seconds``: the longest anything may take.
    """

    def __init__(self, desk: Desk, pool: Pool | None, *, small: int, seconds: float) -> None:
        self._desk = desk
        self._pool = pool
        self._small = small
        self._seconds = seconds

    @property
    def desk(self) -> Desk:
        """What runs here."""
        return self._desk

    def run(
        self, kind: str, body: bytes, now: datetime, name: str = "", *, pinned: Used | None = None,
        seconds: float | None = None,
    ) -> Reply:  # fmt: skip
        """``name``: of the snapshot, for the snapshot operations. Raises DeadlinePassed and what it does."""
        limit = self._seconds if seconds is None else min(seconds, self._seconds)
        snapshot, reference = (name, None) if name else named_in(body)
        if self._pool is None or (snapshot is None and len(body) <= self._small):
            with deadline(limit):
                return self._desk.run(kind, body, now, name, pinned)
        return self._pool.call(kind, body, now, snapshot=snapshot, pinned=pinned, seconds=limit, reference=reference)

    def everywhere(self, kind: str, now: datetime) -> list[Reply]:
        """Run an operation in every process that keeps snapshots."""
        if self._pool is None:
            return [self._desk.run(kind, b"", now)]
        return [self._pool.call(kind, b"", now, worker=worker) for worker in range(len(self._pool))]

    def start(self) -> None:
        """Start the workers."""
        if self._pool is not None:
            self._pool.start()

    def close(self) -> None:
        """Stop the workers."""
        if self._pool is not None:
            self._pool.close()


def named_in(body: bytes) -> tuple[str | None, str | None]:
    """The snapshot that a body names, and with one also its configuration, unless that is written out. What can't be
    read names none: whoever decodes it will say so."""
    if body.rfind(_NAMED) < 0:
        return None, None
    try:
        found = _PEEK.decode(body)
        raw = bytes(found.configuration)
        reference = msgspec.json.decode(raw, type=str) if raw.startswith(b'"') else None
        return found.state.snapshot, reference
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None, None
