"""All pools of a level at once, and when that is not exact enough: a hundred cpus, and operations that want them."""

from typing import Any

import numpy as np
import pytest

from app.solver.engines.ytsaurus import fair_shares as fair_share
from app.solver.engines.ytsaurus.exact import Exact
from app.solver.engines.ytsaurus.fair_shares import FairShares, fair_shares
from app.solver.engines.ytsaurus.pool_curves import LevelCurves
from app.solver.engines.ytsaurus.situation import Demands, Situation, children_of
from tests.support.bounds import Bounded
from tests.support.instead import Instead
from tests.unit.solver.engines.ytsaurus.cluster import ask, node, operation, pool, request, situated

Json = dict[str, Any]


def tree(pools: list[Json], *wanted: tuple[str, str, int], **settings: Any) -> Situation:
    """Operations: name, pool, how many cpus it wants."""
    operations = [operation(name, queue) for name, queue, _ in wanted]
    return situated(request(pools, [node(cpu=100)], operations, [ask(*one) for one in wanted], settings))


SURE = ([pool("p", quota={"cpu": {"limit": 49}})], ("x", "p", 25), ("y", "p", 90))
AT_A_LIMIT = ([pool("p", quota={"cpu": {"limit": 50}})], ("x", "p", 25), ("y", "p", 90))
"""When x has all that it wants both have 25: that is the limit, and y would go on."""


class Computed:
    """Which computations there were."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[str] = []
        Instead(monkeypatch)(fair_share, LevelCurves=self._told(LevelCurves), Exact=self._told(Exact))

    def _told(self, kind: Any) -> Any:
        def make(*of: Any) -> Any:
            self.seen.append(kind.__name__)
            return kind(*of)

        return make

    def of(self, asked: Situation) -> list[str]:
        self.seen.clear()
        fair_shares(asked)
        return self.seen


def test_pool_by_pool_where_the_last_bits_decide(monkeypatch: pytest.MonkeyPatch, bounded: Bounded) -> None:
    computed = Computed(monkeypatch)
    assert computed.of(tree(*SURE)) == ["LevelCurves"]
    assert computed.of(tree(*AT_A_LIMIT)) == ["LevelCurves", "Exact"]
    bounded(fair_share, MOST_EXACT=3)
    assert computed.of(tree(*AT_A_LIMIT)) == ["LevelCurves", "Exact"], "a pool and two operations"
    bounded(fair_share, MOST_EXACT=2)
    assert computed.of(tree(*AT_A_LIMIT)) == ["LevelCurves"]


@pytest.mark.parametrize("name", [
    "enable_step_function_for_gang_operations", "enable_improved_fair_share_by_fit_factor_computation",
])  # fmt: skip
def test_pool_by_pool_where_a_setting_asks_for_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Computed(monkeypatch).of(tree(*SURE, **{name: True})) == ["Exact"]


def barring(limit: int, first: int) -> Situation:
    """A pool may have five slots, which its first operation wants, and so many cpus, which its second wants."""
    quota = {"cpu": {"limit": limit}, "user_slots": {"limit": 5}}
    pools = [pool("p", quota=quota), pool("q", parent="p", ytsaurus={"mode": "fifo"})]
    slots = {"name": "next", "count": first, "requests": {"user_slots": 1}}
    asks = [ask("x", "q") | {"tasks": [slots]}, ask("y", "q", 100)]
    return situated(request(pools, [node(cpu=100)], [operation("x", "q"), operation("y", "q")], asks))


def test_pool_by_pool_where_last_bits_of_what_a_pool_may_not_have_may_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first operation has all that it wants with exactly all slots there are: whether the next then begins hangs
    on last bits, which the pool is too small to come to. But a bit of cpu may already be more than it may have."""
    computed = Computed(monkeypatch)
    assert computed.of(barring(0, 100)) == ["LevelCurves", "Exact"]
    assert computed.of(barring(0, 99)) == ["LevelCurves"]
    assert computed.of(barring(1, 100)) == ["LevelCurves"]


def test_pool_by_pool_where_an_operation_wants_thousands_of_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = Computed(monkeypatch)
    pools, first, _ = SURE
    assert computed.of(tree(pools, first, ("y", "p", 1_000_000))) == ["LevelCurves"]
    assert computed.of(tree(pools, first, ("y", "p", 1_000_001))) == ["LevelCurves", "Exact"]


class Prepared:
    """The functions of a tree, and what its pools are guaranteed and limited to: cpu alone."""

    def __init__(self, of: Situation) -> None:
        self.found: FairShares = fair_shares(of)
        demands = Demands(self.found.usage, self.found.demand, self.found.limits)
        self.levels = LevelCurves(of, demands, children_of(of, self.found.pool_weight))
        self.names = of.config.tree.index
        self.cpu = of.resources.index("cpu")

    def prepare(self, top: int, **guaranteed: float) -> None:
        strong = self.found.pool_strong.copy()
        for name, share in guaranteed.items():
            strong[self.names[name]] = share
        self.levels.prepare(top, strong, self.found.pool_limits)

    def taken(self, suggestion: float, *names: str) -> list[float]:
        pools = np.array([self.names[name] for name in names])
        return self.levels.taken(pools, np.full(len(pools), suggestion))[:, self.cpu].tolist()


NESTED = (
    [pool("a"), pool("b", parent="a"), pool("c", parent="b"), pool("d", parent="a"), pool("e")],
    ("x", "c", 40), ("y", "d", 60), ("z", "e", 80),
)  # fmt: skip


def test_what_is_prepared_stays_until_it_is_forgotten() -> None:
    of = Prepared(tree(*NESTED))
    of.prepare(of.names["b"], c=0.125)
    assert of.taken(0.0, "c", "b") == [0.125, 0.125], "what its children begin with is never too much for a pool"
    of.prepare(of.names["b"], c=0.25)
    assert of.taken(0.0, "c") == [0.125]
    of.levels.forget(of.names["c"])
    of.prepare(of.names["b"], c=0.25)
    assert of.taken(0.0, "c") == [0.25]
    of.prepare(len(of.names), d=0.5)
    assert of.taken(0.0, "c", "d", "e") == [0.25, 0.5, 0.0]
    assert of.taken(1.0, "e", "a", "c", "d") == pytest.approx([0.8, 1.0, 0.4, 0.6])
    assert of.taken(0.125, "d", "c") == pytest.approx([0.6, 0.375])


def test_a_pool_above_one_that_is_forgotten_has_what_was_true_before() -> None:
    of = Prepared(tree(*NESTED))
    of.prepare(of.names["c"])
    of.levels.forget(of.names["c"])
    assert not of.levels.stale, "nothing above it had a function yet"
    of.prepare(len(of.names))
    of.levels.forget(len(of.names))
    assert not of.levels.stale
    of.levels.forget(of.names["c"])
    assert of.levels.stale


def test_shares_of_a_part_of_the_tree() -> None:
    situated = tree(*NESTED)
    of = Prepared(situated)
    of.prepare(situated.root)
    fair, pools = of.levels.divided(np.array([of.names["b"], of.names["e"]]), 0.25)
    assert fair[:, of.cpu].tolist() == pytest.approx([0.25, 0, 0.25])
    assert pools[:, of.cpu].tolist() == pytest.approx([0, 0.25, 0.25, 0, 0.25, 0])
    fair, pools = of.levels.divided(np.array([situated.root]), 1.0)
    assert fair[:, of.cpu].tolist() == pytest.approx([0.25, 0.25, 0.5])
    assert pools[:, of.cpu].tolist() == pytest.approx([0.5, 0.25, 0.25, 0.25, 0.5, 1])


@pytest.mark.parametrize(("suggestion", "known"), [(0.25, False), (0.24, True), (0.0, True)])
def test_who_is_asked_says_whether_bits_decide(suggestion: float, known: bool) -> None:
    """p can't take more than the half that it has when it is offered a quarter for each of its two."""
    of = Prepared(tree(*AT_A_LIMIT))
    of.prepare(of.names["p"])
    of.taken(suggestion * 2, "p")
    assert of.levels.sensitive is not known
    of.taken(0.1, "p")
    assert of.levels.sensitive is not known, "once said, it stays so"


def test_below_the_top_a_jump_at_what_is_handed_down_is_where_the_pool_above_stopped() -> None:
    """g uses 20 cpus and wants slots besides: beyond 0.2 it takes ten at once, and q, limited to five, stops there."""
    uses = {"tasks": [{"name": "t", "requests": {"cpu": 20}}]}
    wants = {"id": "g-next", "workload": "g", "queue": "p", "tasks": [{"name": "n", "requests": {"user_slots": 10}}]}
    pools = [pool("q", quota={"user_slots": {"limit": 5}}), pool("p", parent="q"), pool("r")]
    body = request(
        pools, [node(cpu=100)], [operation("g", "p", **uses), operation("h", "r")], [wants, ask("h", "r", 9)]
    )
    of = Prepared(situated(body))
    of.prepare(len(of.names))
    of.levels.divided(np.array([len(of.names)]), 1.0)
    assert not of.levels.sensitive
    of.taken(0.2, "p")
    assert of.levels.sensitive, "asked for that very suggestion, it does hang on bits"
