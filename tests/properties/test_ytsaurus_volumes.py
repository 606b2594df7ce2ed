"""Volumes of integral guarantees on random trees, against the rule worked out pool by pool in plain numbers."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from tests.unit.solver.engines.ytsaurus.cluster import pool, request, shares

Json = dict[str, Any]
TOTAL = {"user_slots": 200, "cpu": 100, "memory": 4000}
MINUTE = {"ytsaurus": {"last_update_at": "2026-01-01T11:59:00Z"}}
SECONDS, SATURATION = 60, 100


@dataclass
class Pool:
    """A pool, by parts of the cluster; volumes by resource, in resource-seconds."""

    name: str
    integral: bool
    flow: float = 0.0
    spent: float = 0.0
    accepts: bool = True
    shares_out: bool = False
    volume: dict[str, float] = field(default_factory=dict[str, float])
    children: list["Pool"] = field(default_factory=list["Pool"])

    @property
    def below(self) -> float:
        """Its flow with that of the pools below."""
        return self.flow + sum(child.below for child in self.children)


Edges = dict[str, tuple[float, float]]
"""By pool: what flows over in the end, and what could be taken."""


def refill(of: Pool, r: str, edges: Edges) -> None:
    """Refill what ``of`` has of one resource, and all below."""
    for child in of.children:
        refill(child, r, edges)
    if not of.integral:
        left = sum(edges[child.name][0] - edges[child.name][1] for child in of.children)
        edges[of.name] = max(left, 0.0), max(-left, 0.0) if of.accepts else 0.0
        return
    had = of.volume[r]
    has = max(0.0, had + TOTAL[r] * SECONDS * (of.flow - of.spent))
    holds = TOTAL[r] * of.flow * SATURATION
    of.volume[r] = min(has, max(had, holds))
    edges[of.name] = max(0.0, has - max(had, holds)), max(0.0, holds - has) if of.accepts else 0.0


def spread(of: Pool, r: str, got: float, edges: Edges) -> None:
    """Give what flows over below ``of``, and what it was given, to those below that can take it, by their flow."""
    if of.integral:
        of.volume[r] += got
        return
    free = got + sum(edges[child.name][0] for child in of.children)
    parts = filled(free, [(child.below, edges[child.name][1]) for child in of.children]) if of.shares_out else []
    for i, child in enumerate(of.children):
        spread(child, r, parts[i] if parts else 0.0, edges)


def filled(free: float, of: list[tuple[float, float]]) -> list[float]:
    """``free`` by weight, nobody more than it can take: (weight, room) each."""
    low, high = 0.0, 1e9
    for _ in range(200):
        level = (low + high) / 2
        low, high = (level, high) if sum(min(w * level, room) for w, room in of) < free else (low, level)
    return [min(weight * low, room) for weight, room in of]


def drawn(random: Random, name: str, depth: int) -> Pool:
    if depth and random.random() < (1.0 if depth == 3 else 0.6):
        children = [drawn(random, f"{name}-{i}", depth - 1) for i in range(random.randint(1, 3))]
        accepts, shares_out = random.random() < 0.8, random.random() < 0.8
        return Pool(name, integral=False, accepts=accepts, shares_out=shares_out, children=children)
    if random.random() < 0.2:
        return Pool(name, integral=False)
    holds = random.choice((0, 5, 10, 20))
    volume = {r: float(amount * random.choice((0, 1, 5, 10, 25))) for r, amount in TOTAL.items()}
    accepts, spent = random.random() < 0.8, random.choice((0, 0.01, 0.2))
    below = [drawn(random, f"{name}-{i}", depth - 1) for i in (0, 1)] if depth and random.random() < 0.4 else []
    return Pool(name, True, holds / 100, spent, accepts, volume=volume, children=below)


def body(tops: list[Pool], random: Random) -> Json:
    """``tops`` as a request; a flag that says what the default is may be left out."""
    pools: list[Json] = []
    carried: Json = {}

    def add(of: Pool, parent: str | None) -> None:
        block: Json = {"can_accept_free_volume": of.accepts}
        if of.shares_out or random.random() < 0.5:
            block["should_distribute_free_volume_among_children"] = of.shares_out
        if of.integral:
            kind = random.choice(("burst", "relaxed"))
            block |= {"guarantee_type": kind, "resource_flow": {"cpu": TOTAL["cpu"] * of.flow, "user_slots": 0}}
            carried[of.name] = {"ytsaurus": {"accumulated_volume": dict(of.volume), "last_share_ratio": of.spent}}
        above = {} if parent is None else {"parent": parent}
        pools.append(pool(of.name, **above, ytsaurus={"integral_guarantees": block}))
        for child in of.children:
            add(child, of.name)

    for top in tops:
        add(top, None)
    settings = {"integral_guarantees": {"pool_capacity_saturation_period": SATURATION}}
    nodes = [{"name": f"n{i}", "capacity": {r: amount / 2 for r, amount in TOTAL.items()}} for i in (0, 1)]
    return request(pools, nodes, [], settings=settings, state={"queues": carried})


def every(of: Pool) -> list[Pool]:
    return [of, *(one for child in of.children for one in every(child))]


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_volumes_are_refilled_and_what_flows_over_is_shared_out(first: int) -> None:
    moved = 0
    for seed in range(first, first + 20):
        random = Random(seed)
        tops = [drawn(random, f"p{i}", 3) for i in range(random.randint(1, 3))]
        found = shares(body(tops, random), options=MINUTE)["queues"]
        for r in TOTAL:
            for top in tops:
                edges: Edges = {}
                refill(top, r, edges)
                kept = [one.volume.get(r, 0.0) for one in every(top)]
                spread(top, r, 0.0, edges)
                moved += kept != [one.volume.get(r, 0.0) for one in every(top)]
        for one in (one for top in tops for one in every(top) if one.integral):
            volume = found[one.name]["integral_guarantees"]["accumulated_volume"]
            assert volume == pytest.approx(one.volume, abs=0.05), (seed, one.name)
            assert found[one.name]["integral_guarantees"]["resource_flow_ratio"] == pytest.approx(one.flow)
    assert moved > 10
