"""A compiled state that keeps up with deltas is the one that compiling again would give."""

import random

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from app.solver.apply import Index
from app.solver.delta import apply_delta
from app.solver.engines.kueue.ahead import Ahead
from app.solver.engines.kueue.amounts import Amounts
from app.solver.engines.kueue.configuration import CompiledConfiguration
from app.solver.engines.kueue.engine import ENGINE
from app.solver.engines.kueue.state import CompiledState, Places
from app.solver.model.state import Delta, State
from tests.support.kueue_updates import NOW, Json, cluster, decisions, small_states_are_settled_too, work
from tests.support.profiles import examples
from tests.unit.solver.engines.kueue.cluster import at, runs

__all__ = ["small_states_are_settled_too"]
LAWS = examples(60, suppress_health_check=[HealthCheck.too_slow])


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


def drawn(seed: int, *, fair: bool) -> tuple[random.Random, CompiledConfiguration, State]:
    """What draws from now on, a configuration, and 30 workloads."""
    rng = random.Random(seed)
    state = msgspec.convert({"workloads": [work(rng, f"w{i}") for i in range(30)]}, State)
    return rng, ENGINE.configure(cluster(fair=fair)), state


@LAWS
@given(st.integers(0, 2**32), st.booleans())
def test_updating_equals_loading(seed: int, fair: bool) -> None:
    rng, configured, state = drawn(seed, fair=fair)
    index, kept = Index(state), ENGINE.load(configured, state)
    decisions(kept, rng)
    for step in range(6):
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
        anew = Places.of(state.workloads, fresh.priority)
        assert (kept.places.order.tolist(), kept.places.rank.tolist()) == (anew.order.tolist(), anew.rank.tolist())
        assert anew.latest is None or (kept.places.latest or 0) >= anew.latest
        assert decisions(kept, random.Random(step)) == decisions(fresh, random.Random(step))


@LAWS
@given(st.integers(0, 2**32), st.booleans())
def test_the_state_that_who_goes_ahead_makes_is_that_of_now(seed: int, fair: bool) -> None:
    """Whatever came, went, changed or was evicted since the last one was made."""
    rng, configured, state = drawn(seed, fair=fair)
    loaded = ENGINE.load(configured, state)
    decisions(loaded, rng)
    ahead = Ahead(loaded)
    for step in range(6):
        told = delta(rng, state, step)
        state, index, _ = apply_delta(state, Index(state), told)
        victim = msgspec.structs.replace(rng.choice(state.workloads), evicted=True)
        evicted = msgspec.convert({"generation": step, "workloads": {"change": [victim]}}, Delta, from_attributes=True)
        for name in told.workloads.remove:
            assert ahead.moved(name, None)
        for workload in (*told.workloads.change, *told.workloads.add, victim):
            assert ahead.moved(workload.id, workload)
        state, _, _ = apply_delta(state, index, evicted)
        made, fresh = ahead.state(lambda: loaded), ENGINE.load(configured, state)
        assert _by_name(made) == _by_name(fresh)
        assert made.used == fresh.used
        nodes = range(len(configured.tree))
        assert [made.lowest_priority([n]) for n in nodes] == [fresh.lowest_priority([n]) for n in nodes]
        assert made.places is not None
        anew = Places.of(made.workloads, made.priority)
        assert (made.places.order.tolist(), made.places.rank.tolist()) == (anew.order.tolist(), anew.rank.tolist())
        assert decisions(made, random.Random(step)) == decisions(fresh, random.Random(step))


def _by_name(state: CompiledState) -> dict[str, tuple[int, int, Amounts, bool, bool]]:
    return {
        workload.id: (
            int(state.queue[i]), int(state.priority[i]), state.amounts(i), i in state.evicted, i in state.protected,
        )
        for i, workload in enumerate(state.workloads)
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_many_at_once_are_followed_too(seed: int) -> None:
    """Of 160 a fifth goes, comes or changes; some bring milestones, some nodes."""
    rng = random.Random(seed)
    configured = ENGINE.configure(cluster(fair=False))

    def some(name: str) -> Json:
        costs = {"disruption_cost_milestones": [{"seconds": 5, "cost": 1}]} if rng.random() < seed / 60 else {}
        return work(rng, name) | costs

    state = msgspec.convert({"workloads": [some(f"w{i}") for i in range(160)]}, State)
    index, kept = Index(state), ENGINE.load(configured, state)
    for step in range(8):
        names = rng.sample([w.id for w in state.workloads], 36)
        gone, changed = rng.choice([(0, 1), (16, 3), (17, 0), (30, 6), (0, 0), (1, 0)])
        changes = {
            "add": [some(f"n{step}-{i}") for i in range(rng.choice([0, 1, 30]))],
            "change": [some(name) for name in names[30 : 30 + changed]], "remove": names[:gone],
        }  # fmt: skip
        if rng.random() < 0.5:
            kept.has_costs()
        kept.lowest_priority([0])
        state, index, told = apply_delta(state, index, msgspec.convert({"generation": 1, "workloads": changes}, Delta))
        kept, fresh = ENGINE.update(kept, configured, state, told), ENGINE.load(configured, state)
        for column in ("queue", "priority"):
            assert getattr(kept, column).tolist() == getattr(fresh, column).tolist()
        assert (kept.evicted, kept.protected, kept.used) == (fresh.evicted, fresh.protected, fresh.used)
        everybody, nodes = range(len(state.workloads)), range(len(configured.tree))
        assert [kept.amounts(i) for i in everybody] == [fresh.amounts(i) for i in everybody]
        assert [kept.by_queue(n).tolist() for n in nodes] == [fresh.by_queue(n).tolist() for n in nodes]
        assert [kept.lowest_priority([n]) for n in nodes] == [fresh.lowest_priority([n]) for n in nodes]
        assert kept.has_costs() == fresh.has_costs()


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


@pytest.mark.parametrize("fair", [True, False])
def test_a_settled_state_decides_as_a_fresh_one(fair: bool) -> None:
    """With equal UIDs and unknown starts among them, before and after a start that lies in the future."""
    configured = ENGINE.configure(cluster(fair=fair))
    for seed in range(40):
        rng = random.Random(seed)
        workloads = [work(rng, f"w{i}") for i in range(12)]
        for workload in workloads[seed % 5 :: 2]:
            workload |= {"uid": "same", "started_at": at("10:00")}
        for workload in workloads[: seed % 4]:
            workload.pop("started_at", None)
        if seed % 3 == 0:
            workloads[11]["started_at"] = at("13:00")
        state = msgspec.convert({"workloads": workloads}, State)
        settled = ENGINE.load(configured, state)
        first, second, third = zip(*decisions(settled, random.Random(seed)), strict=True)
        assert first == second == third
        assert settled.places is not None
        unknown = any("started_at" not in w for w in workloads)
        assert settled.places.hold(NOW) == (not unknown or seed % 3 != 0)
