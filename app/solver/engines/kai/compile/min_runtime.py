"""Minimum runtimes: which value protects a victim, until when, and what an elastic victim may still lose.

Source of the rules: the KAI design "reclaim-min-runtime and preempt-min-runtime"; where released code differs,
``rules: shipped`` follows the code and ``rules: documented`` the design (docs/engines/kai.md lists the differences).
"""

from dataclasses import dataclass
from typing import Literal

from app.solver.compiled.tree import ROOTLESS, Tree

Rules = Literal["documented", "shipped"]
Method = Literal["lca", "queue"]
NODE_POOL = -1


@dataclass(frozen=True, slots=True)
class MinRuntime:
    """A resolved minimum runtime in microseconds, and the queue that sets it (NODE_POOL: the default)."""

    micros: int
    set_by: int


class MinRuntimes:
    """The minimum runtimes of one configuration. Values are microseconds by queue index; None where unset."""

    __slots__ = ("_default_preempt", "_default_reclaim", "_method", "_preempt", "_reclaim", "_reclaim_own", "_tree")

    def __init__(
        self, tree: Tree, reclaim: list[int | None], preempt: list[int | None],
        *, default_reclaim: int, default_preempt: int, method: Method,
    ) -> None:  # fmt: skip
        self._tree = tree
        self._method: Method = method
        self._default_reclaim = MinRuntime(default_reclaim, NODE_POOL)
        self._default_preempt = MinRuntime(default_preempt, NODE_POOL)
        self._reclaim_own = reclaim
        self._reclaim = _nearest(tree, reclaim, self._default_reclaim)
        self._preempt = _nearest(tree, preempt, self._default_preempt)

    def for_preempt(self, victim: int) -> MinRuntime:
        """Against preemption inside ``victim``'s own queue: the nearest value from the leaf upwards. 0 is a value."""
        return self._preempt[victim]

    def for_reclaim(self, preemptor: int, victim: int) -> MinRuntime:
        """Against reclaim for queue ``preemptor``. Method ``lca``: the nearest value from the child of the lowest
        common ancestor on the victim's side upwards, so that a value protects against siblings of its queue and
        nobody else; ``queue``: from the victim's leaf upwards."""
        if self._method == "queue":
            return self._reclaim[victim]
        tree = self._tree
        common = tree.lowest_common_ancestor(preemptor, victim)
        if common == ROOTLESS:
            # Different trees have no common ancestor: only the root's own value counts, nothing deeper.
            root = tree.root(victim)
            own = self._reclaim_own[root]
            return self._default_reclaim if own is None else MinRuntime(own, root)
        below = victim
        while below != common and tree.parent[below] != common:
            below = tree.parent[below]
        return self._reclaim[below]

    def reclaim_at(self, queue: int) -> MinRuntime:
        """What protects ``queue`` against its own siblings: the nearest value from it upwards."""
        return self._reclaim[queue]

    def lengths(self, victim: int) -> frozenset[int]:
        """Every minimum runtime that may protect what runs in ``victim`` from anybody, in microseconds."""
        found = {self._preempt[victim].micros, self._default_reclaim.micros}
        at = victim
        while at != ROOTLESS:
            found.add(self._reclaim[at].micros)
            at = self._tree.parent[at]
        return frozenset(found)


def _nearest(tree: Tree, own: list[int | None], default: MinRuntime) -> list[MinRuntime]:
    out = [default] * len(tree)
    for queue in tree.top_down:
        value = own[queue]
        if value is not None:
            out[queue] = MinRuntime(value, queue)
        elif tree.parent[queue] != ROOTLESS:
            out[queue] = out[tree.parent[queue]]
    return out


def protected(now: int, started_at: int | None, minimum: int, rules: Rules) -> bool:
    """Whether a minimum runtime of ``minimum`` still protects what started at ``started_at`` (microseconds).

    A start that nobody knows protects nothing. Documented: free once ``now > start + minimum``, and a minimum of 0
    means always preemptible. Shipped: free from ``now == start + minimum`` on; a start in the future protects even
    with a minimum of 0.
    """
    if started_at is None:
        return False
    if rules == "shipped":
        return now < started_at + minimum
    return minimum > 0 and now <= started_at + minimum


def unprotected_from(started_at: int, minimum: int, rules: Rules) -> int:
    """The first instant, not before its start, at which ``minimum`` does not protect it any more."""
    return started_at + max(0, minimum) + (minimum > 0 and rules == "documented")


def protected_until(started_at: int | None, minimum: int, rules: Rules) -> int | None:
    """The last instant bound of the protection, or None where nothing protects at any time."""
    if started_at is None or (minimum <= 0 and rules == "documented"):
        return None
    return started_at + minimum


def is_elastic(pods: int, min_available: int) -> bool:
    """More pods (in any state, pending and finished ones too) than the gang needs."""
    return min_available < pods


def may_evict(*, protected: bool, elastic: bool) -> bool:
    """The victim filter: elastic workloads always pass, ``keeps_gang`` judges them instead."""
    return elastic or not protected


def keeps_gang(*, running: int, evicted: int, min_available: int) -> bool:
    """The scenario validator, for a protected elastic victim: at least ``min_available`` pods stay.

    ``running``: documented, pods that really run; shipped, also those being released. ``evicted``: how many of
    those the scenario takes.
    """
    return running - evicted >= min_available
