"""The order of candidates, few or many, known beforehand or not: always that of the comparator, spelled out."""

import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pytest

from app.solver.engines.kueue import candidates
from app.solver.engines.kueue.candidates import Leftover, Pool
from app.solver.engines.kueue.configuration import compile_configuration
from app.solver.engines.kueue.overlay import Overlay, Preemptor
from app.solver.engines.kueue.state import CompiledState, Places, compile_state
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.state import State
from tests.unit.solver.engines.kueue.cluster import at, configuration, queue, runs

NOW = micros(datetime(2026, 1, 1, 12, tzinfo=UTC))
QUEUES = 60
CONFIGURATION = compile_configuration(
    msgspec.convert(
        configuration(queue("co"), *(queue(f"q{i}", {"guaranteed": 1}, "co") for i in range(QUEUES)), queue("z", 1)),
        Configuration,
    )
)


def state(rng: random.Random, size: int, *, starts: bool, uids: bool) -> CompiledState:
    """Full of ties. ``starts``: all are known; ``uids``: no two are alike."""
    workloads: list[dict[str, Any]] = []
    for i in range(size):
        of = runs(f"w{i:03}", f"q{rng.randint(0, QUEUES - 1)}", rng.randint(0, 1), rng.randint(0, 2))
        of |= {"started_at": at(f"{rng.randint(9, 10):02}:{rng.randint(0, 2):02}"), "created_at": at("10:00")}
        of |= {"uid": f"u{rng.random()}" if uids else f"u{rng.randint(0, 2)}", "evicted": rng.random() < 0.2}
        if not starts and rng.random() < 0.2:
            del of["started_at"]
        workloads.append(of)
    return compile_state(CONFIGURATION, msgspec.convert({"workloads": workloads}, State))


def preemptor(priority: int = 1, created: int = NOW) -> Preemptor:
    return Preemptor("x", CONFIGURATION.tree.index["q0"], priority, created, ((0, 1000),))


def key(of: CompiledState, i: int) -> tuple[int, int, str]:
    """Lower priority, later start (unknown: now), lower UID."""
    workload = of.workloads[i]
    started = NOW if workload.started_at is None else micros(workload.started_at)
    return workload.priority, -started, workload.uid or ""


@pytest.mark.parametrize("size", [1, 63, 64, 65, 129, 400])
@pytest.mark.parametrize(("starts", "uids"), [(True, True), (True, False), (False, False), (False, True)])
def test_ascending(size: int, starts: bool, uids: bool) -> None:
    rng = random.Random(size)
    of = state(rng, 400, starts=starts, uids=uids)
    rows = np.array(sorted(rng.sample(range(400), size)), dtype=np.int64)
    level = {CONFIGURATION.tree.index[f"q{i}"]: rng.randint(0, 2) for i in range(0, QUEUES, 2)}

    def whole(i: int) -> tuple[int, int, str, int, str]:
        return (*key(of, i), level.get(int(of.queue[i]), 0), of.workloads[i].id)

    expected = sorted(rows.tolist(), key=whole)
    for known in (False, True):
        of.places = Places.of(of.workloads, of.priority) if known else None
        overlay = Overlay(of, NOW)
        assert (overlay.rank is not None) is known
        assert list(candidates.ascending(overlay, rows, level)) == expected


def test_ascending_by_another_rank() -> None:
    """Rank stands for priority and start; equal ranks go by UID, level and id."""
    rng = random.Random(5)
    of = state(rng, 200, starts=True, uids=False)
    overlay = Overlay(of, NOW)
    of.places = Places.of(of.workloads, of.priority)  # known, and not what counts here
    rank = [rng.randint(0, 9) for _ in range(200)]
    overlay.prepare(None, lambda _: np.array(rank, dtype=np.int64))

    def whole(i: int) -> tuple[Any, ...]:
        return rank[i], of.workloads[i].uid, of.workloads[i].id

    for size in (0, 20, 150):
        chosen = sorted(rng.sample(range(200), size))
        rows = np.array(chosen, dtype=np.int64)
        assert list(candidates.ascending(overlay, rows, {})) == sorted(chosen, key=whole)


@pytest.mark.parametrize("rank", ["none", "distinct", "ties"])
@pytest.mark.parametrize("evicted", [False, True])
def test_a_queue_is_sorted_by_the_whole_comparator(rank: str, evicted: bool) -> None:
    rng = random.Random(7)
    of = state(rng, 90, starts=False, uids=False)
    if not evicted:
        of.evicted = frozenset()
    overlay = Overlay(of, NOW)
    if rank != "none":
        places = list(range(90)) if rank == "distinct" else [i // 4 for i in range(90)]
        rng.shuffle(places)
        overlay.prepare(None, lambda _: np.array(places, dtype=np.int64))
    mine = rng.sample(range(90), 40)
    sorted_queue = list(mine)
    candidates.sort_queue(overlay, sorted_queue)
    ranks = overlay.rank

    def whole(i: int) -> tuple[Any, ...]:
        workload = of.workloads[i]
        place = key(of, i)[:2] if ranks is None else (int(ranks[i]), 0)
        return (i not in of.evicted, *place, workload.uid, workload.id)

    assert sorted_queue == sorted(mine, key=whole)
    for i in mine:
        gone_last, own, *place, names = candidates.sort_key(overlay, i, int(of.queue[mine[0]]))
        assert (gone_last, *place, *names) == whole(i)
        assert own == (of.queue[i] == of.queue[mine[0]])


@pytest.mark.parametrize("number", [0, 1, 2, 47, 48, 49, 60])
def test_who_uses_what_is_contested(number: int) -> None:
    of = state(random.Random(number), 200, starts=True, uids=True)
    overlay = Overlay(of, NOW)
    of.protected, overlay.gone = frozenset({1, 2}), {2, 3}
    queues = [CONFIGURATION.tree.index[f"q{i}"] for i in range(number)]
    found = candidates.using(overlay, queues, frozenset({0}))
    assert sorted(found.tolist()) == [i for i in range(200) if int(of.queue[i]) in queues and i not in (1, 2, 3)]
    assert candidates.using(overlay, queues, frozenset({7})).tolist() == []


def test_whom_a_policy_lets_go() -> None:
    """Of priorities 0, 1 and 2 against 1; of equal ones those made later than the ask."""
    made = [at("10:00"), at("11:00"), at("11:30"), None]
    workloads = [
        runs(f"w{p}{i}", "q0", 1, p) | ({"created_at": when} if when else {"created_at": None})
        for p in range(3) for i, when in enumerate(made)
    ]  # fmt: skip
    of = compile_state(CONFIGURATION, msgspec.convert({"workloads": workloads}, State))
    overlay, everybody = Overlay(of, NOW), np.arange(12, dtype=np.int64)
    ask = preemptor(1, micros(datetime(2026, 1, 1, 11, tzinfo=UTC)))
    expected = {
        "Any": list(range(12)), "Never": [], "LowerPriority": [0, 1, 2, 3],
        "LowerOrNewerEqualPriority": [0, 1, 2, 3, 6],
    }  # fmt: skip
    for policy, allowed in expected.items():
        assert candidates.allowed(overlay, ask, policy, everybody).tolist() == allowed
        assert candidates.allowed(overlay, ask, policy, everybody[:0]).tolist() == []


def test_evicted_ones_go_first_class_by_class() -> None:
    of = state(random.Random(1), 50, starts=True, uids=True)
    overlay, nobody = Overlay(of, NOW), np.arange(0, dtype=np.int64)
    threes, rest = [i for i in range(50) if i % 3 == 0], [i for i in range(50) if i % 3]

    def ascending(workloads: list[int]) -> list[int]:
        return list(candidates.ascending(overlay, np.array(workloads, dtype=np.int64), {}))

    classes = np.array(threes), nobody, np.array(rest)
    parts = [[i for i in some if (i in of.evicted) is going] for going in (True, False) for some in (threes, rest)]
    assert all(parts)
    assert list(candidates.evicted_first(overlay, classes, {})) == [i for part in parts for i in ascending(part)]
    of.evicted = frozenset()
    assert list(candidates.evicted_first(overlay, classes, {})) == ascending(threes) + ascending(rest)


def test_candidates_by_queue() -> None:
    of = state(random.Random(2), 80, starts=True, uids=True)
    chosen = np.array(range(0, 80, 3), dtype=np.int64)
    pool, expected = Pool(of, chosen), dict[int, list[int]]()
    for i in chosen.tolist():
        expected.setdefault(int(of.queue[i]), []).append(i)
    assert dict(pool.items()) == expected
    assert pool.queues == sorted(expected)
    left = Leftover()
    for node, workloads in expected.items():
        left.add(node, workloads[:1])
        left.add(node, workloads[1:])
    assert {node: left.of(node) for node in left.queues} == expected
