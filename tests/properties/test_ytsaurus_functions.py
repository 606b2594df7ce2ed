"""Fair shares of random trees against the same in fractions (``ytsaurus_exact_trees``)."""

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from app.solver.engines.ytsaurus import fair_shares as fair_share
from app.solver.engines.ytsaurus.fair_shares import FairShares, fair_shares
from app.solver.engines.ytsaurus.situation import Situation
from tests.properties.ytsaurus_exact_trees import ExactTree
from tests.properties.ytsaurus_round_trees import round_tree
from tests.properties.ytsaurus_trees import tree
from tests.support.bounds import Bounded
from tests.support.ytsaurus_shares import MINUTE, situation

NEAR = 1e-7
HAIRS = (Fraction(1, 10**8), Fraction(-1, 10**8))


def trees(count: int, *, gangs: bool = False) -> list[tuple[int, Situation]]:
    """Of round numbers, where much is met exactly, and of others; every third with integral guarantees."""
    found: list[tuple[int, Situation]] = []
    for seed in range(count):
        random = Random(seed)
        other = seed % 4 == 3 and not gangs
        body = tree(random, depth=3) if other else round_tree(random, gangs=gangs, integral=seed % 3 == 1)
        ours = body["configuration"]["settings"]["ytsaurus"]
        ours.pop("enable_improved_fair_share_by_fit_factor_computation", None)  # which divides otherwise
        for pool in body["configuration"]["queues"]:
            if Random(f"{seed} {pool['name']}").random() < 0.2:
                pool["ytsaurus"] = pool.get("ytsaurus", {}) | {"compute_promised_guarantee_fair_share": True}
        found.append((seed, situation(body)))
    return found


def agrees(of: Situation, found: FairShares, fair: Any, pool_fair: Any, hair: Fraction = Fraction(0)) -> bool:
    expected = ExactTree(of, found, hair).divided(of.root, Fraction(1))
    return all(np.allclose(*pair, rtol=0, atol=NEAR) for pair in zip(expected, (fair, pool_fair), strict=True))


@pytest.mark.slow
def test_all_pools_of_a_level_at_once(bounded: Bounded) -> None:
    """However much hangs on the last bits: in round trees those of a sum and of a limit are the same."""
    bounded(fair_share, MOST_EXACT=-1)
    for seed, of in trees(120):
        found = fair_shares(of, MINUTE)
        assert agrees(of, found, found.fair, found.pool_fair), seed
        promised(seed, of, found)


@pytest.mark.slow
def test_pool_by_pool_where_gangs_get_all_or_nothing() -> None:
    """Unless a gang is let in or left out by a hair's breadth, which doubles may judge either way."""
    doubtful = 0
    for seed, of in trees(50, gangs=True):
        found = fair_shares(of, MINUTE)
        if not agrees(of, found, found.fair, found.pool_fair):
            doubtful += 1
            assert any(agrees(of, found, found.fair, found.pool_fair, hair) for hair in HAIRS), seed
        promised(seed, of, found)
    assert doubtful <= 2


def promised(seed: int, of: Situation, found: FairShares) -> None:
    """Pools that ask for it are offered nothing beyond their guarantee, and the pools below them."""
    if found.promised is None:
        return
    fair, pool_fair = np.zeros_like(found.fair), np.zeros_like(found.pool_fair)
    inside = np.zeros(of.root + 1, bool)
    for row in of.config.tree.top_down:
        asks = of.config.pools[row].shares.promised
        inside[row] = asks or inside[of.parent[row]]
        if asks and not inside[of.parent[row]]:
            own, own_pools = ExactTree(of, found).divided(row, Fraction(0))
            fair, pool_fair = fair + own, pool_fair + own_pools
    assert np.allclose(found.promised[0], fair, rtol=0, atol=NEAR), seed
    assert np.allclose(found.promised[1], pool_fair, rtol=0, atol=NEAR), seed
