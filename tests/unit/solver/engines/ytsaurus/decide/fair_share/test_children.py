"""Who follows whom below a pool, what each may count on, and what FIFO pools do beyond their order; by hand."""

from typing import Any

import numpy as np
import pytest

from app.solver.engines.ytsaurus.fair_shares import fair_shares
from app.solver.engines.ytsaurus.preemptibility import estimated_guarantees
from app.solver.engines.ytsaurus.situation import children_of
from tests.unit.solver.engines.ytsaurus.cluster import ask, at, node, operation, pool, request, shares, situated

Json = dict[str, Any]
FIFO = {"mode": "fifo"}


def test_children_follow_by_weight_or_one_after_another() -> None:
    pools = [
        pool("f", ytsaurus=FIFO), pool("p"), pool("f1", parent="f"), pool("inside", parent="p"),
        pool("f2", parent="f"), pool("g", ytsaurus=FIFO), pool("empty", ytsaurus=FIFO),
    ]  # fmt: skip
    operations = [
        operation("o1", "f", created_at=at(5)), operation("light", "p", weight=1e-10), operation("o2", "f", weight=3),
        operation("heavy", "p", weight=2), operation("o3", "f", created_at=at(3)), operation("alone", "g", weight=7),
        operation("plain", "p", weight=1), operation("o4", "f", created_at=at(3)),
    ]  # fmt: skip
    of = situated(request(pools, [node()], operations))
    weight = {"f": 5.0, "p": 10.0, "f1": 2.0, "inside": 4.0, "f2": 1.0, "g": 1e-12, "empty": 20.0}
    found = children_of(of, np.array([*weight.values(), 9.0]))
    inf = float("inf")
    assert found.fifo.tolist() == [True, False, False, False, False, True, True, False]
    assert found.end.tolist() == [6, 1, 1, 1, 1, 1, 1, 1]
    #                                f  p    f1 inside f2 g   empty root: the smallest weight at the top is f's
    assert found.pool_scale.tolist() == [1, 0.5, 1, 0.25, 1, inf, 0.25, 1]
    assert found.pool_shift.tolist() == [0, 0, 1, 0, 2, 0, 0, 0]
    #                                o1 light o2 heavy o3 alone plain o4
    assert found.scale.tolist() == [1, inf, 1, 0.5, 1, 1, 1, 1]
    assert found.shift.tolist() == [5, 0, 0, 0, 3, 0, 0, 4]
    assert [found.place(0, False), found.place(2, True)] == [5, 1]


def test_what_everybody_may_count_on() -> None:
    """Of the cluster t and r are guaranteed 0.4 each and share the rest by 1 and 3. What t has is too little for the
    guarantees below it, which come in document order; r has 0.25 left, of which o gets a half."""
    parents = {"t": None, "r": None, "a": "t", "d": "r", "b": "t", "e": "r", "c": "t"}
    pools = [pool(name, **({"parent": above} if above else {})) for name, above in parents.items()]
    operations = [operation("x", "a", weight=2), operation("o", "r", weight=2), operation("y", "a")]
    of = situated(request(pools, [node()], operations))
    strong = np.repeat([[0.4], [0.4], [0.3], [0.1], [0.2], [0.2], [0.1], [1.0]], 2, axis=1)
    strong[:, 1] /= 2
    own, found = estimated_guarantees(of, strong, np.array([1.0, 3, 1, 1, 1, 1, 1, 1]))
    expected = np.array([0.45, 0.55, 0.3, 0.1625, 0.15, 0.2625, 0, 1])
    assert found == pytest.approx(np.stack((expected, expected / 2), axis=1))
    assert own == pytest.approx(np.array([[0.2, 0.1], [0.125, 0.0625], [0.1, 0.05]]))


GANG = {"ytsaurus": {"is_gang": True}}
TRUNCATING = FIFO | {"enable_fair_share_truncation_in_fifo_pool": True}


def test_what_a_gang_that_is_cut_leaves_is_missing_all_the_way_up() -> None:
    """a, below in and top, is guaranteed 50 and serves x and 20 of the 30 that g wants; those are cut, also above it.
    z is no gang, and h gets all that it wants."""
    half = {"cpu": {"guaranteed": 50}}
    pools = [
        pool("top", quota=half), pool("in", parent="top", quota=half),
        pool("a", parent="in", quota=half, ytsaurus=TRUNCATING), pool("b", quota=half, ytsaurus=TRUNCATING),
    ]  # fmt: skip
    wants = [("x", "a", 30, {"weight": 2}), ("g", "a", 30, GANG), ("h", "b", 30, GANG | {"weight": 2}),
             ("z", "b", 30, {}), ("none", "a", 5, GANG)]  # fmt: skip
    operations = [operation(name, queue, **more) for name, queue, _, more in wants]
    body = request(pools, [node(cpu=100)], operations, [ask(name, queue, count) for name, queue, count, _ in wants])
    found = fair_shares(situated(body))
    cpu = {name: float(row[1]) for name, row in zip("xghzn", found.fair, strict=True)}
    assert cpu == pytest.approx({"x": 0.3, "g": 0, "h": 0.3, "z": 0.2, "n": 0})
    assert found.pool_fair[:, 1].tolist() == pytest.approx([0.3, 0.3, 0.3, 0.5, 0.8])
    assert shares(body)["fair_share"]["cpu"] == pytest.approx(80)
