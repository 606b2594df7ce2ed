"""What tests of kueue updates share with those beside them."""

import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.solver.engines.kueue.engine import ENGINE
from app.solver.engines.kueue.state import CompiledState, Places
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.state import Ask
from app.solver.question import Question
from tests.support.bounds import Bounded
from tests.unit.solver.engines.kueue.cluster import asks, at, configuration, queue, runs

Json = dict[str, Any]


NOW = micros(datetime(2026, 1, 1, 12, tzinfo=UTC))


PREEMPTION = {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}


@pytest.fixture(autouse=True)
def small_states_are_settled_too(bounded: Bounded) -> None:
    bounded(Places, WORTHWHILE=1)


def cluster(*, fair: bool) -> Configuration:
    names = [f"q{i}" for i in range(5)]
    queues = [queue("root"), queue("team", parent="root")]
    queues += [queue(n, 8, "team" if n < "q2" else "root", preemption=PREEMPTION) for n in names]
    queues[2]["quota"]["cpu"]["lending_limit"] = 3
    return msgspec.convert(configuration(*queues, fair=fair), Configuration)


def work(rng: random.Random, name: str) -> Json:
    of = runs(name, f"q{rng.randint(0, 4)}", rng.randint(0, 4), rng.randint(0, 3))
    of["uid"] = str(rng.randint(0, 9))
    of["started_at"] = at(f"{rng.randint(9, 10):02}:{rng.randint(0, 3):02}")
    if rng.random() < 0.05:
        del of["started_at"]
    of["evicted"] = rng.random() < 0.1
    of["preemptible"] = rng.random() < 0.9
    if rng.random() < 0.2:
        of["tasks"].append({"name": "side", "count": rng.randint(0, 3), "requests": {"cpu": 1}})
    return of


def decisions(loaded: CompiledState, rng: random.Random) -> list[list[Any]]:
    """By ask, three answers in a row: the third comes from a settled state."""
    pending = [asks(f"a{i}", f"q{i}", rng.randint(1, 12), 2, flavors={"cpu": "default"}) for i in range(5)]
    question = Question(NOW, msgspec.convert(pending, list[Ask]))
    return list(map(list, zip(*(ENGINE.plan(loaded, question).decisions for _ in range(3)), strict=True)))
