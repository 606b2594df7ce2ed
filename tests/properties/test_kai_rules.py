"""The engine against its rules told a second time, at every comparison, placement and judgement of random cycles."""

from collections import Counter
from collections.abc import Set
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.solver.engines.kai.jobs import Share
from app.solver.engines.kai.overlay import Overlay
from app.solver.engines.kai.placing import Placer
from app.solver.engines.kai.queue_order import QueueOrder
from app.solver.engines.kai.scenario import Scenario
from app.solver.engines.kai.validators import Fairness
from tests.support.instead import Instead
from tests.support.kai_oracle import best_node, queue_first, reclaim_refusal
from tests.support.kai_world import ALL_ACTIONS, Json, Shape, cluster, crowded, decide
from tests.support.profiles import examples

FAST = examples(150)
SEEDS = st.integers(0, 2**32)


def any_cluster(seed: int) -> Json:
    random = Random(seed)
    if random.random() < 0.2:
        return crowded(seed)
    shape = Shape(
        queues=random.randint(3, 10), nodes=random.randint(1, 6), workloads=random.randint(4, 14),
        asks=random.randint(1, 6), rules=random.choice(["documented", "shipped"]),
        actions=random.choice([ALL_ACTIONS, ["reclaim"], ["reclaim", "preempt"]]), gangs=(1, 1, 2, 3, 4),
        shares_of_gpus=random.random() < 0.3, constraints=random.random() < 0.3,
    )  # fmt: skip
    return cluster(seed, shape)


@FAST
@given(SEEDS)
def test_queues_come_in_the_order_of_the_rules(seed: int) -> None:
    body = any_cluster(seed)
    first, begin = QueueOrder.first, QueueOrder.__init__
    total: list[Share] = []

    def watched_begin(order: QueueOrder, overlay: Overlay) -> None:
        begin(order, overlay)
        total[:] = [overlay.division.total]

    def watched(order: QueueOrder, a: int, b: int, *amounts: Share) -> bool:
        said = first(order, a, b, *amounts)
        assert said == queue_first(order, total[0], a, b, (amounts[0], amounts[1]), (amounts[2], amounts[3]))
        return said

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QueueOrder, "__init__", watched_begin)
        Instead(patch)(QueueOrder, first=watched)
        decide(body)


@examples(300, FAST)
@given(SEEDS)
def test_reclaim_is_as_fair_as_the_rules(seed: int) -> None:
    judge = Fairness.__call__

    def watched(fairness: Any, scenario: Scenario) -> Any:
        overlay, before, ignore = fairness._overlay, fairness._before, fairness._ignore_moved
        chance, fairness._chance = fairness._chance, None
        said = judge(fairness, scenario)
        assert (said and said.rule) == reclaim_refusal(overlay, before, scenario, ignore_moved=ignore)
        fairness._chance = chance
        drawn = judge(fairness, scenario)
        assert (drawn is None) == (said is None) or chance.matters
        return drawn

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fairness, "__call__", watched)
        decide(any_cluster(seed))


@FAST
@given(SEEDS)
def test_pods_go_where_the_rules_send_them(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        watch_placing(patch)
        decide(any_cluster(seed))


def watch_placing(patch: pytest.MonkeyPatch) -> Counter[str]:
    """Holds every choice of a node against the scores."""
    seen: Counter[str] = Counter()
    place, put = Placer.place_job, Placer._put  # pyright: ignore[reportPrivateUsage]
    where: list[Set[int]] = [frozenset()]
    tried: dict[int, set[int]] = {}

    def watched_place(placer: Placer, job: int, tasks: list[int], nodes: Set[int], *, bind: bool) -> bool:
        where[0] = nodes
        tried.clear()
        return place(placer, job, tasks, nodes, bind=bind)

    def watched_put(placer: Placer, t: int, n: int, *, bind: bool) -> bool:
        overlay: Overlay = placer._overlay  # pyright: ignore[reportPrivateUsage]
        assert n == best_node(overlay, t, where[0], placer.allowed(t), tried.setdefault(t, set()))
        tried[t].add(n)
        seen["placed"] += 1
        return put(placer, t, n, bind=bind)

    Instead(patch)(Placer, place_job=watched_place)
    patch.setattr(Placer, "_put", watched_put)
    return seen


def test_what_is_watched_happens() -> None:
    with pytest.MonkeyPatch.context() as patch:
        seen = watch_placing(patch)
        for seed in range(30):
            decide(any_cluster(seed))
    assert seen["placed"] > 100
