"""What each name and label means, as far as this process knows."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from threading import Lock
from typing import NamedTuple

from app.configurations.heads.repository import HeadRow


class _Known(NamedTuple):
    revision: int | None
    change: int


class Heads:
    """Names and labels with the revisions that they mean. Thread-safe.

    The follower reports what it reads, writers of this process what they have committed; the later change wins. Where
    nobody follows the database nothing is kept: it would never be corrected. ``clock``: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._known: dict[tuple[str, str | None], _Known] = {}
        self._followed = False
        self._meanwhile: list[HeadRow] | None = None
        self._seen = 0
        self._looked_at: float | None = None
        self._looked: datetime | None = None
        self._connected = False

    @property
    def seen(self) -> int:
        """The last change that the follower has read."""
        return self._seen

    @property
    def is_known(self) -> bool:
        """Whether the table was ever read."""
        return self._looked_at is not None

    @property
    def as_of(self) -> datetime | None:
        """When it was last known to be what the database says."""
        return self._looked

    @property
    def age(self) -> float:
        """Seconds since then; infinite where it was never read."""
        looked = self._looked_at
        return float("inf") if looked is None else self._clock() - looked

    def is_stale(self, seconds: float) -> bool:
        """Whether the database could not be followed for ``seconds``, or is known to be away."""
        return not self._connected or self.age > seconds

    def __len__(self) -> int:
        with self._lock:
            entries = self._known.items()
            return sum(label is None and known.revision is not None for (_, label), known in entries)

    def find(self, name: str, label: str | None = None) -> int | None:
        """The revision that a name or one of its labels means; None where nothing of that name is known here."""
        found = self._known.get((name, label))
        return None if found is None else found.revision

    def expect(self) -> None:
        """From now on somebody follows the database."""
        self._followed = True

    def learn(self, rows: Iterable[HeadRow]) -> None:
        """What a writer of this process has just committed."""
        with self._lock:
            for row in rows:
                if self._meanwhile is not None:
                    self._meanwhile.append(row)
                if self._followed:
                    _newer(self._known, row)

    def start_over(self) -> None:
        """The follower is about to read everything; what writers report until then is kept for it."""
        with self._lock:
            self._meanwhile = []

    def replace(self, rows: Iterable[HeadRow]) -> None:
        """Everything, as the follower has read it since ``start_over``."""
        table: dict[tuple[str, str | None], _Known] = {}
        with self._lock:
            self._seen = 0
            for row in rows:
                self._seen = max(self._seen, row.change)
                _newer(table, row)
            for row in self._meanwhile or ():
                _newer(table, row)
            self._known, self._meanwhile = table, None
            self._look()

    def follow(self, rows: Iterable[HeadRow]) -> None:
        """Every change past ``seen``."""
        with self._lock:
            for row in rows:
                self._seen = max(self._seen, row.change)
                _newer(self._known, row)
            self._look()

    def lost(self) -> bool:
        """The database is away: what is known stays, and is stale. Whether that is news."""
        was, self._connected = self._connected, False
        return was

    def _look(self) -> None:
        self._looked_at, self._looked, self._connected = self._clock(), datetime.now(UTC), True


def _newer(table: dict[tuple[str, str | None], _Known], row: HeadRow) -> None:
    before = table.get((row.name, row.label))
    if before is None or row.change >= before.change:
        table[row.name, row.label] = _Known(row.revision, row.change)
