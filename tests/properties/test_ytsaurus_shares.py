"""Laws of fair shares on random trees of round numbers, with gangs and integral guarantees; both computations agree."""

import copy
import random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from app.solver.engines.ytsaurus import fair_shares as fair_share
from app.solver.engines.ytsaurus.exact import Exact
from app.solver.engines.ytsaurus.fair_shares import FairShares, due_shares, fair_shares
from app.solver.engines.ytsaurus.polyline import Lines, value_at
from app.solver.engines.ytsaurus.pool_curves import (
    Nearby,
    _kinds,  # pyright: ignore[reportPrivateUsage]
    by_kinds,
    grouped,
)
from app.solver.engines.ytsaurus.situation import Situation
from tests.properties.ytsaurus_round_trees import round_tree
from tests.properties.ytsaurus_trees import tree
from tests.support.bounds import Bounded
from tests.support.instead import Instead
from tests.support.profiles import Met, examples
from tests.support.ytsaurus_shares import MINUTE, situation
from tests.unit.solver.engines.ytsaurus.cluster import shares

LAWS = examples(60, suppress_health_check=list(HealthCheck))
SEEDS = st.integers(0, 2**32)
NEAR = 2e-9


def children_sums(of: Situation, found: FairShares) -> Any:
    out = np.zeros_like(found.pool_fair)
    np.add.at(out, of.parent[: of.root], found.pool_fair[: of.root])
    np.add.at(out, of.operation_parent, found.fair)
    return out


@LAWS
@given(SEEDS, st.booleans())
def test_level_by_level_is_pool_by_pool_unless_it_says_that_bits_decide(seed: int, integral: bool) -> None:
    rng = random.Random(seed)
    body = round_tree(rng, integral=integral)
    for pool in body["configuration"]["queues"]:
        if rng.random() < 0.3:
            pool["ytsaurus"] = pool.get("ytsaurus", {}) | {"compute_promised_guarantee_fair_share": True}
    of = situation(body)
    decided: list[Exact] = []

    class Asked(Exact):
        def __init__(self, *of: Any) -> None:
            super().__init__(*of)
            decided.append(self)

    class Sure(Exact):
        sensitive = stale = False

        def has_edges(self) -> bool:
            return False

    with pytest.MonkeyPatch.context() as patched:
        Instead(patched)(fair_share, Exact=Asked)
        fair_shares(of, MINUTE)
        Bounded(patched)(fair_share, MOST_EXACT=-1)
        one = fair_shares(of, MINUTE)
        Instead(patched)(fair_share, LevelCurves=lambda situation, *rest: Sure(situation, *rest, one.pool_weight))
        other = fair_shares(of, MINUTE)
    if not decided:
        assert np.allclose(one.fair, other.fair, rtol=0, atol=1e-8)
        assert np.allclose(one.pool_fair, other.pool_fair, rtol=0, atol=1e-8)
        assert np.allclose(one.pool_integral, other.pool_integral, rtol=0, atol=1e-8)
        assert (one.promised is None) == (other.promised is None)
        for mine, theirs in zip(one.promised or (), other.promised or (), strict=True):
            assert np.allclose(mine, theirs, rtol=0, atol=1e-8)


@LAWS
@given(SEEDS, st.booleans())
def test_kinds_of_operations_get_what_all_of_them_get_unless_it_says_that_bits_decide(
    met: Met, seed: int, rounded: bool
) -> None:
    of = situation((round_tree if rounded else tree)(random.Random(seed)))
    of.cluster.recent.rough = True
    divided: list[Any] = []
    with pytest.MonkeyPatch.context() as patched:
        by_kinds = fair_share.divided_by_kinds

        def noted(*args: Any) -> Any:
            divided.append(by_kinds(*args))
            return divided[-1]

        patched.setattr(fair_share, "divided_by_kinds", noted)
        mine = due_shares(of)
    theirs = fair_shares(of)
    for left, right in ((mine.fair, theirs.fair), (mine.pool_fair, theirs.pool_fair)):
        assert np.allclose(left, right, rtol=0, atol=1e-12)
    met([shares for shares in divided if shares is not None])


@LAWS
@given(SEEDS, st.booleans())
def test_pools_looked_for_where_they_were_last_get_what_they_get_elsewhere(met: Met, seed: int, rounded: bool) -> None:
    rng = random.Random(seed)
    of = situation((round_tree if rounded else tree)(rng))
    of.cluster.recent.rough = True
    asked: list[Any] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fair_share, "divided_by_kinds", lambda *args: asked.append(args))
        due_shares(of)
    for _, demands, children, guarantee, limits in asked:
        floors, caps, scales = guarantee.tolist(), limits.tolist(), children.pool_scale.tolist()
        counted = {
            pool: {kind: kind.number for kind in kinds} for pool, kinds in _kinds(of, demands, children.scale).items()
        }
        nearby = Nearby(of.config.tree, floors, caps)
        for _ in range(6):
            lines = {
                pool: [Lines(kind.curve, kind.scale, n) for kind, n in kinds.items()] for pool, kinds in counted.items()
            }
            kinds = {pool: grouped([line.of for line in own]) for pool, own in lines.items()}
            theirs, mine = by_kinds(of.config.tree, kinds, scales, floors, caps), nearby._simply(lines, scales)  # pyright: ignore[reportPrivateUsage]
            if theirs is not None and mine is not None:
                met([mine])
                assert np.allclose(mine[1], theirs[1], rtol=0, atol=1e-9)
                for pool in kinds:
                    for curve, scale, _ in [line.of for line in lines[pool]]:
                        own = [value_at(curve, min(fits[pool] / scale, 1.0)) for fits in (mine[0], theirs[0])]
                        assert np.allclose(*own, rtol=0, atol=1e-9)
            pool = rng.choice([*counted])
            kind = rng.choice([*counted[pool]])
            counted[pool][kind] = rng.choice([1, 2, 3])


@LAWS
@given(SEEDS, st.booleans(), st.booleans())
def test_children_never_get_more_than_their_pool_and_without_gangs_all_of_it(
    seed: int, gangs: bool, integral: bool
) -> None:
    of = situation(round_tree(random.Random(seed), gangs=gangs, integral=integral))
    found = fair_shares(of, MINUTE)
    sums = children_sums(of, found)
    assert (sums <= found.pool_fair + NEAR).all()
    if not gangs:
        assert np.allclose(sums, found.pool_fair, rtol=0, atol=NEAR * 10)


@LAWS
@given(SEEDS, st.booleans(), st.booleans())
def test_nobody_gets_more_than_its_limit_or_its_demand_nor_all_more_than_the_cluster(
    seed: int, gangs: bool, integral: bool
) -> None:
    of = situation(round_tree(random.Random(seed), gangs=gangs, integral=integral))
    found = fair_shares(of, MINUTE)
    assert (found.fair <= np.minimum(found.limits, found.demand) + NEAR).all()
    assert (found.pool_fair <= np.minimum(found.pool_limits, found.pool_demand) + NEAR).all()
    assert (found.fair >= 0).all()


@LAWS
@given(SEEDS)
def test_a_gang_gets_all_or_nothing(seed: int) -> None:
    of = situation(round_tree(random.Random(seed), gangs=True))
    found = fair_shares(of)
    gang = of.operations.gang
    nothing, everything = (found.fair == 0).all(axis=1), (found.fair == found.demand).all(axis=1)
    assert (nothing | everything)[gang].all()


@LAWS
@given(SEEDS, st.booleans())
def test_parts_add_up_and_guarantees_come_first(seed: int, integral: bool) -> None:
    of = situation(round_tree(random.Random(seed), integral=integral))
    found = fair_shares(of, MINUTE)
    root = of.root
    guarantee = found.pool_strong + found.pool_integral
    assert (guarantee[:root] <= found.pool_limits[:root] + NEAR).all()
    below = np.zeros_like(guarantee)
    np.add.at(below, of.parent[:root], found.pool_strong[:root])
    assert (below[:root] <= found.pool_strong[:root] + NEAR).all()
    assert (found.pool_strong[root] <= 1 + NEAR).all()


@LAWS
@given(SEEDS)
def test_who_wants_more_of_the_same_never_gets_less(seed: int) -> None:
    """Where everybody needs the same and nobody is a gang; with several shapes a larger demand may bind elsewhere."""
    rng = random.Random(seed)
    body = round_tree(rng)
    for ask in body["asks"]:
        ask["tasks"][0]["requests"] = {"user_slots": 1}
    for operation in body["state"]["workloads"]:
        for task in operation["tasks"]:
            task["requests"] = {"user_slots": task["requests"]["user_slots"]}
    if not body["asks"]:
        return
    more = copy.deepcopy(body)
    wanting = rng.choice(more["asks"])
    wanting["tasks"][0]["count"] += rng.choice((1, 10, 100))
    before, after = shares(body)["workloads"], shares(more)["workloads"]
    name = wanting["workload"]
    assert after[name]["fair_share"]["user_slots"] >= before[name]["fair_share"]["user_slots"] - 1e-6


@LAWS
@given(SEEDS)
def test_volumes_gain_the_flow_and_lose_what_was_given_and_nothing_else(met: Met, seed: int) -> None:
    body = round_tree(random.Random(seed), integral=True)
    of = situation(body)
    found = fair_shares(of, MINUTE)
    carried = body["state"]["queues"]
    total = dict(zip(of.resources, of.total.tolist(), strict=True))
    for i, name in enumerate(of.config.tree.names):
        if of.config.pools[i].shares.integral.kind == "none":
            continue
        was = carried[name]["ytsaurus"]
        for resource, volume in met(found.volumes.amounts(i).items()):
            gained = total[resource] * 60 * (float(found.flow[i]) - was["last_share_ratio"])
            expected = max(0.0, was["accumulated_volume"].get(resource, 0) + gained)
            assert volume == pytest.approx(expected, abs=0.011)


@LAWS
@given(SEEDS, st.booleans())
def test_the_same_answer_again(seed: int, gangs: bool) -> None:
    body = round_tree(random.Random(seed), gangs=gangs, integral=True)
    assert msgspec.json.encode(shares(body)) == msgspec.json.encode(shares(copy.deepcopy(body)))


@LAWS
@given(SEEDS)
def test_a_decision_finds_the_shares_of_the_last_update(met: Met, seed: int) -> None:
    """What an update leaves of volumes gives the same shares again, while no time goes by."""
    body = round_tree(random.Random(seed), integral=True)
    now = {"ytsaurus": {"last_update_at": "2026-01-01T11:59:00Z"}}
    first = shares(body, options=now)
    for name, pool in first["queues"].items():
        if own := pool.get("integral_guarantees"):
            kept = {key: own[key] for key in ("accumulated_volume", "last_share_ratio")}
            body["state"]["queues"][name] = {"ytsaurus": kept}
    second = shares(body)
    for kind in ("queues", "workloads"):
        for name, element in met(first[kind].items()):
            assert second[kind][name]["fair_share"] == pytest.approx(element["fair_share"], abs=1e-6)


@LAWS
@given(SEEDS, st.sampled_from([1, 4, 40]))
def test_what_decisions_read_is_what_is_published(met: Met, seed: int, room: int) -> None:
    """With so much more room on the nodes that all demand fits, and without; asked twice, the second is remembered."""
    body = round_tree(random.Random(seed), integral=False)
    for node in body["state"]["nodes"]:
        node["capacity"] = {name: amount * room for name, amount in node["capacity"].items()}
    of = situation(body)
    published = fair_shares(of)
    for _ in range(2):
        for name, read in met(due_shares(of)._asdict().items()):
            assert np.allclose(read, getattr(published, name), rtol=0, atol=1e-12), name


def test_where_all_demand_fits_no_curve_is_drawn(instead: Instead) -> None:
    body = {
        "configuration": {"engine": "ytsaurus", "queues": [{"name": "p", "quota": {"cpu": {"limit": 6}}}]},
        "state": {"nodes": [{"name": "n", "capacity": {"cpu": 10}}], "workloads": []},
        "asks": [{"id": "x", "queue": "p", "tasks": [{"name": "t", "count": 5, "requests": {"cpu": 1}}]}],
    }
    larger = copy.deepcopy(body)
    larger["asks"][0]["tasks"][0]["count"] = 7
    limited, free = situation(larger), situation(body)
    assert due_shares(limited).fair.tolist() == [[pytest.approx(0.6)]]
    instead(fair_share, LevelCurves=None)
    assert due_shares(free).fair.tolist() == [[0.5]]
