"""What is counted, and in which unit it is shown."""

from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.base.errors import BadInput, BadRequest, Conflict, DeadlinePassed, NotFound, TooManyRequests, Unavailable
from app.base.settings import Settings
from app.base.ticket import CLASSES
from app.decisions.guard import _outcome  # pyright: ignore[reportPrivateUsage]
from app.metrics import Metrics
from app.service.health import Outages, _heads, _readiness  # pyright: ignore[reportPrivateUsage]
from tests.support.instead import Instead


def shown(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    """Values by name and labels; buckets and processes left out."""
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
        if sample.name.startswith("arbiter_") and not sample.name.endswith(("_bucket", "_created"))
    }


def test_a_decision_is_counted_with_all_that_it_answered() -> None:
    metrics = Metrics()
    for _ in range(2):
        metrics.decided(
            "kueue", ["start", "wait"], ["Fits", "NoRoom"], {"Reclaimed": 3}, {"solve": 0.5, "decode": 0.25}
        )
    metrics.shadowed("kai", "agreed", "same")
    found = shown(metrics)
    assert found["arbiter_decisions_total", ("kueue", "start", "Fits")] == 2
    assert found["arbiter_decisions_total", ("kueue", "wait", "NoRoom")] == 2
    assert found["arbiter_victims_total", ("kueue", "Reclaimed")] == 6
    assert found["arbiter_decision_solve_seconds_sum", ("kueue",)] == 1.0
    assert found["arbiter_decision_decode_seconds_count", ("kueue",)] == 2
    assert found["arbiter_shadow_total", ("same", "kai", "agreed")] == 1
    (build,) = [value for (name, _), value in found.items() if name == "arbiter_build_info"]
    assert build == 1


def test_answers_are_counted_and_timed() -> None:
    metrics = Metrics()
    for status in (200, 200, 404):
        metrics.answered("GET", "/v1/x", status, 0.5)
    found = shown(metrics)
    assert found["arbiter_requests_total", ("200",)] == 2
    assert found["arbiter_requests_total", ("404",)] == 1
    assert found["arbiter_request_seconds_sum", ("GET", "/v1/x")] == 1.5


class Heads:
    """Names as they were last known."""

    age, is_known, as_of = 7.5, True, None

    def __init__(self, stale: bool = False) -> None:
        self._stale = stale

    def is_stale(self, seconds: float) -> bool:
        assert seconds == 9.0
        return self._stale

    def __len__(self) -> int:
        return 3


def test_names_that_are_followed_are_shown() -> None:
    for stale in (False, True):
        metrics, heads = Metrics(), Heads(stale)
        metrics.follow(heads, 9.0)  # pyright: ignore[reportArgumentType]
        found = shown(metrics)
        assert found["arbiter_configurations_stale", ()] == stale
        assert found["arbiter_configurations_age_seconds", ()] == 7.5
        assert found["arbiter_configurations_known", ()] == 3


def test_who_waits_and_who_works_is_shown() -> None:
    waiting = {of: i for i, of in enumerate(CLASSES, 1)}
    dispatcher: Any = SimpleNamespace(
        workers=lambda: (3, 2),
        snapshot_totals=lambda: (5, 700),
        waiting=lambda: waiting,
    )
    metrics = Metrics()
    metrics.work(dispatcher)
    found = shown(metrics)
    assert {of: found["arbiter_requests_waiting", (of,)] for of in CLASSES} == waiting
    assert [found[f"arbiter_{name}", ()] for name in ("workers", "workers_busy", "snapshots", "snapshots_bytes")] == [
        3, 2, 5, 700,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(NotFound("x"), "not_found"), (DeadlinePassed(1), "late"), (Unavailable("x"), "unavailable"),
     (TooManyRequests("x"), "unavailable"), (BadInput([]), "refused"), (Conflict("x"), "refused"),
     (BadRequest("x"), "refused"), (ValueError(), "invalid")],
)  # fmt: skip
def test_what_became_of_a_question_without_an_answer(error: Exception, outcome: str) -> None:
    assert _outcome(error) == outcome


def asking(heads: Any) -> Any:

    settings = Settings(configuration_poll_seconds=2.25)
    kept = {"Configurations": SimpleNamespace(heads=heads), "Settings": settings}
    services = SimpleNamespace(of=lambda kind: kept[kind.__name__])
    return SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace(services=services)))


def test_readiness_says_how_well_names_are_known() -> None:
    unknown = Heads()
    unknown.is_known = False
    assert _heads(asking(unknown)) == ("unknown", None)
    assert _heads(asking(Heads())) == ("current", None)
    assert _heads(asking(Heads(stale=True))) == ("stale", None)


def test_readiness_is_of_the_database(instead: Instead) -> None:
    seconds: list[float] = []
    states: list[Any] = [("1", "1"), ("9", "1"), ("0", "1"), (None, "1"), Unavailable("away")]

    def migration_state(within: float) -> Any:
        seconds.append(within)
        state = states.pop(0)
        if isinstance(state, Exception):
            raise state
        return state

    instead("app.service.health", is_newer=lambda migration: migration == "9")
    database: Any = SimpleNamespace(migration_state=migration_state)
    outages = Outages()
    found = [_readiness(database, outages, "stale", None) for _ in range(5)]
    migrate = "run `make migrate`"
    told = [[(part.part, part.detail) for part in one.unable] for one in found]
    assert [(one.database, one.migration, one.needed, *said) for one, said in zip(found, told, strict=True)] == [
        ("ok", "1", "1"), ("ok", "9", "1"), ("ok", "0", "1", ("database", migrate)),
        ("ok", None, "1", ("database", migrate)), ("unreachable", None, None, ("database", "away")),
    ]  # fmt: skip
    begun = {part.since for one in found for part in one.unable}
    assert len(begun) == 1, "it has not been able since the first of these looks"
    assert (seconds, {one.configurations for one in found}) == ([1.5] * 5, {"stale"})
