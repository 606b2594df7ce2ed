"""Who is ready for what: by the state of the database and by what is known of names, each with each."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from app.base.errors import Unavailable
from app.base.settings import Settings
from app.configurations.service import Configurations
from app.db.database import Database
from app.service import health
from app.workers.dispatcher import Dispatcher
from tests.support.instead import Instead

AS_OF = datetime(2026, 11, 22, 12, tzinfo=UTC)


class Wired:
    """Stands for what the app is wired with. ``migration``: what the database is at; None: it is away."""

    def __init__(self, migration: str | None, names: str) -> None:
        self.migration = migration
        self.asked: list[float] = []
        self.heads = SimpleNamespace(is_known=names != "unknown", is_stale=self._stale, as_of=AS_OF)
        self._names = names
        self._outages = health.Outages()
        self.failing: dict[int, datetime] = {}

    def __call__(self, request: Any, kind: type[Any]) -> Any:
        state = SimpleNamespace(migration_state=self._state)
        found = {
            Database: state, Configurations: self, Settings: SimpleNamespace(heads_stale_seconds=7, workers=2),
            health.Outages: self._outages, Dispatcher: SimpleNamespace(failing=lambda: self.failing),
        }  # fmt: skip
        return found[cast("Any", kind)]

    def _stale(self, seconds: float) -> bool:
        assert seconds == 7
        return self._names == "stale"

    def _state(self, seconds: float) -> tuple[str, str]:
        self.asked.append(seconds)
        if self.migration is None:
            raise Unavailable("the database is away")
        return self.migration, "0002"


@pytest.fixture(autouse=True)
def newer(instead: Instead) -> None:
    def known_by_newer_code(migration: str) -> bool:
        return migration > "0002"

    instead(health, is_newer=known_by_newer_code)


@pytest.mark.parametrize("names", ["current", "stale", "unknown"])
@pytest.mark.parametrize(
    ("migration", "database", "migrated", "detail"),
    [
        ("0002", "ok", True, ""), ("0003", "ok", True, ""), ("0001", "ok", False, "run `make migrate`"),
        (None, "unreachable", False, "the database is away"),
    ],
)  # fmt: skip
def test_everything_needs_the_database_and_decisions_need_names(
    names: str, migration: str | None, database: str, migrated: bool, detail: str, instead: Instead
) -> None:
    wired = Wired(migration, names)
    instead(health, service=wired)
    for purpose, ready in (("everything", migrated), ("decisions", migrated or names != "unknown")):
        answer = asyncio.run(health.readiness(cast("Any", None), cast("Any", purpose)))
        assert (answer.status_code, answer.headers.get("Retry-After")) == ((200, None) if ready else (503, "5"))
        said = msgspec.json.decode(bytes(answer.body))
        assert [(part["part"], part["detail"]) for part in said.pop("unable")] == (
            [] if migrated else [("database", detail)]
        )
        assert said == {
            "status": "ready" if ready else "unready", "database": database, "migration": migration,
            "needed": None if migration is None else "0002", "configurations": names,
            "configurations_as_of": None if names == "unknown" else "2026-11-22T12:00:00Z", "detail": detail,
        }  # fmt: skip
    assert wired.asked == [1.5, 1.5]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_solver_processes_that_fail_are_named_and_decisions_need_one(failing: int, instead: Instead) -> None:
    wired = Wired("0002", "current")
    wired.failing = dict.fromkeys(range(failing), AS_OF)
    instead(health, service=wired)
    detail = f"{failing} of 2 solver processes ended or hang, and have answered nothing since"
    for purpose, ready in (("everything", failing == 0), ("decisions", failing < 2)):
        answer = asyncio.run(health.readiness(cast("Any", None), cast("Any", purpose)))
        assert answer.status_code == (200 if ready else 503)
        assert msgspec.json.decode(bytes(answer.body))["unable"] == (
            [{"part": "workers", "since": "2026-11-22T12:00:00Z", "detail": detail}] if failing else []
        )


def test_it_is_asked_for_everything_unless_told_otherwise_and_four_look_at_once(
    instead: Instead,
) -> None:
    instead(health, service=Wired(None, "current"))
    assert asyncio.run(health.readiness(cast("Any", None))).status_code == 503
    assert health._LOOKS.total_tokens == 4  # pyright: ignore[reportPrivateUsage]
    alive = asyncio.run(health.health())
    assert (alive.status_code, alive.body) == (200, b'{"status":"ok"}')
