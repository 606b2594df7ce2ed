"""A compiled state that keeps up with deltas is the one that compiling again would give."""

import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.solver.delta import Index, apply_delta
from app.solver.engine import Question
from app.solver.engines.kueue import KueueEngine
from app.solver.engines.kueue.load import Loaded
from app.solver.engines.kueue.places import Places
from app.solver.model.configuration import Configuration
from app.solver.model.delta import Delta
from app.solver.model.instant import micros
from app.solver.model.state import Ask, State
from tests.unit.solver.engines.kueue.cluster import asks, at, configuration, queue, runs

Json = dict[str, Any]
LAWS = settings(derandomize=True, max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
ENGINE = KueueEngine()
NOW = micros(datetime(2026, 1, 1, 12, tzinfo=UTC))
PREEMPTION = {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}


@pytest.fixture(autouse=True)
def small_states_are_settled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Places, "WORTHWHILE", 1)


def cluster(*, fair: bool) -> Configuration:
    names = [f"q{i}" for i in range(5)]
    queues = [queue("root"), queue("team", parent="root")]
    queues += [queue(n, 8, "team" if n < "q2" else "root", preemption=PREEMPTION) for n in names]
    queues[2]["quota"]["cpu"]["lending_limit"] = 3
    return msgspec.convert(configuration(*queues, fair=fair), Configuration)


def work(rng: random.Random, name: str) -> Json:
    of = runs(name, f"q{rng.randint(0, 4)}", rng.randint(0, 4), rng.randint(0, 3))
    of["uid"] = f"{rng.randint(0, 99999):05}"
    of["started_at"] = at(f"{rng.randint(8, 11):02}:{rng.randint(0, 59):02}")
    of["evicted"] = rng.random() < 0.1
    of["preemptible"] = rng.random() < 0.9
    if rng.random() < 0.2:
        of["tasks"].append({"name": "side", "count": rng.randint(0, 3), "requests": {"cpu": 1}})
    return of


def delta(rng: random.Random, state: State, step: int) -> Delta:
    names = [w.id for w in state.workloads]
    rng.shuffle(names)
    gone, changed = names[: rng.randint(0, 2)], names[3 : 3 + rng.randint(0, 2)]
    added = [f"n{step}-{i}" for i in range(rng.randint(0, 2))]
    return msgspec.convert(
        {
            "generation": step,
            "workloads": {
                "add": [work(rng, name) for name in added], "change": [work(rng, name) for name in changed],
                "remove": gone,
            }
        },
        Delta,
    )  # fmt: skip


def decisions(loaded: Loaded, rng: random.Random) -> list[Any]:
    pending = [asks(f"a{i}", f"q{i}", rng.randint(1, 12), 2, flavors={"cpu": "default"}) for i in range(5)]
    question = Question(NOW, msgspec.convert(pending, list[Ask]))
    return [ENGINE.plan(loaded, question) for _ in range(3)]


@LAWS
@given(st.integers(0, 2**32), st.booleans())
def test_updating_equals_loading(seed: int, fair: bool) -> None:
    rng = random.Random(seed)
    configured = ENGINE.configure(cluster(fair=fair))
    state = msgspec.convert({"workloads": [work(rng, f"w{i}") for i in range(30)]}, State)
    index, kept = Index(state), ENGINE.load(configured, state)
    for step in range(6):
        decisions(kept, random.Random(step))
        state, index, changes = apply_delta(state, index, delta(rng, state, step))
        kept = ENGINE.update(kept, configured, state, changes)
        fresh = ENGINE.load(configured, state)
        for column in ("queue", "priority"):
            assert getattr(kept, column).tolist() == getattr(fresh, column).tolist()
        assert (kept.evicted, kept.protected, kept.used) == (fresh.evicted, fresh.protected, fresh.used)
        assert [kept.amounts(i) for i in range(len(state.workloads))] == [
            fresh.amounts(i) for i in range(len(state.workloads))
        ]
        assert kept.places is not None
        sorted_anew = Places.of(state.workloads, fresh.priority)
        assert sorted_anew is not None
        assert kept.places.order.tolist() == sorted_anew.order.tolist()
        assert decisions(kept, random.Random(step)) == decisions(fresh, random.Random(step))


def test_usage_that_no_quota_covers_is_compiled_anew() -> None:
    configured = ENGINE.configure(cluster(fair=False))
    state = msgspec.convert({"workloads": [work(random.Random(i), f"w{i}") for i in range(9)]}, State)
    rare = runs("rare", "q0", 1) | {"tasks": [{"name": "t", "requests": {"gpu": 1}, "flavors": {"gpu": "default"}}]}
    later, _, changes = apply_delta(
        state, Index(state), msgspec.convert({"generation": 1, "workloads": {"add": [rare]}}, Delta)
    )
    kept = ENGINE.update(ENGINE.load(configured, state), configured, later, changes)
    assert kept.quotas.frs == [("default", "cpu"), ("default", "gpu")]
    back, _, changes = apply_delta(
        later, Index(later), msgspec.convert({"generation": 2, "workloads": {"remove": ["rare"]}}, Delta)
    )
    assert ENGINE.update(kept, configured, back, changes).quotas is configured.quotas


def test_places_need_known_starts_and_distinct_uids() -> None:
    states: list[list[Json]] = [
        [runs("a", "q0", 1), runs("b", "q1", 1)],
        [runs("a", "q0", 1) | {"uid": "same"}, runs("b", "q1", 1) | {"uid": "same"}],
        [runs("a", "q0", 1), {k: v for k, v in runs("b", "q1", 1).items() if k != "started_at"}],
    ]
    configured = ENGINE.configure(cluster(fair=False))
    found: list[bool] = []
    for workloads in states:
        loaded = ENGINE.load(configured, msgspec.convert({"workloads": workloads}, State))
        loaded.settle()
        assert loaded.places is None
        loaded.settle()
        found.append(loaded.places is not None)
    assert found == [True, False, False]
