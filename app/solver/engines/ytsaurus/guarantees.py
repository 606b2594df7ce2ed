"""Strong guarantees: what was given, what is inferred for resources left out, and what of it fits.

Shares: one row a pool, the root last; one column a resource.
"""

import numpy as np

from app.solver.engines.ytsaurus.arrays import Flags, Floats, Ints
from app.solver.engines.ytsaurus.compile import PoolTree
from app.solver.engines.ytsaurus.situation import Situation

NEGLIGIBLE = 1e-9


def to_shares(amounts: Floats, total: Floats) -> Floats:
    """Amounts as parts of the cluster; 0 where the cluster has none."""
    return np.where(total > 0, amounts / np.where(total > 0, total, 1.0), 0.0)


def guaranteed_amounts(situation: Situation) -> Floats:
    """Every pool's strong guarantee, in steps. The root's is the cluster.

    A resource that a pool leaves out follows its main resource: the same part of what its parent has. Where the
    inferred parts of one parent exceed what the given ones leave over, they shrink together (not at the root,
    where guarantees may be promised twice and are cut as shares).
    """
    config, total = situation.config, situation.cluster.total
    names = situation.cluster.index.index
    given = np.zeros((situation.root, len(total)))
    known = np.zeros_like(given, dtype=bool)
    for i, row in enumerate(config.guaranteed):
        for name, value in row.items():
            given[i, names[name]] = value
            known[i, names[name]] = True
    main = names[config.settings.main_resource]
    known[:, main] = True
    out = np.concatenate((given, total[None, :]))
    for level in range(int(situation.depth.max(initial=-1)) + 1):
        rows = np.flatnonzero(situation.depth == level)
        _infer(out, rows, situation.parent[rows], known[rows], main, at_root=level == 0)
    return out


def _infer(out: Floats, rows: Ints, parent: Ints, known: Flags, main: int, *, at_root: bool) -> None:
    n, resources = out.shape
    own, above = out[rows], out[parent]
    ratio = np.where(above[:, main] > 0, own[:, main] / np.where(above[:, main] > 0, above[:, main], 1.0), 0.0)
    inferred = np.where(known, 0.0, ratio[:, None] * above)
    if not at_root:
        for r in range(resources):
            left = np.maximum(out[:, r] - np.bincount(parent, np.where(known[:, r], own[:, r], 0.0), minlength=n), 0.0)
            claimed = np.bincount(parent, inferred[:, r], minlength=n)
            factor = np.where(claimed > left, left / np.where(claimed > 0, claimed, 1.0), 1.0)
            inferred[:, r] *= factor[parent]
    out[rows] = np.where(known, own, inferred)


def strong_shares(situation: Situation, amounts: Floats, limits: Floats) -> Floats:
    """What of the guarantees fits: the cluster, then top-down the parent's own guarantee and the pool's limits."""
    strong = to_shares(amounts, situation.cluster.total)
    strong[situation.root] = 0.0
    for level in range(int(situation.depth.max(initial=-1)) + 1):
        rows = np.flatnonzero(situation.depth == level)
        parent = situation.parent[rows]
        claimed = np.stack([np.bincount(parent, c, minlength=len(strong)) for c in strong[rows].T], axis=1)
        if level == 0:
            promised = claimed[situation.root]
            strong[situation.root] = promised / max(1.0, float(promised.max(initial=0.0)))
        over = claimed > strong
        part = np.where(over, strong / np.where(over, claimed, 1.0), 1.0).min(axis=1, initial=1.0)
        strong[rows] = np.minimum(strong[rows] * part[parent][:, None], limits[rows])
    return strong


def pool_weights(config: PoolTree, parent: Ints, strong: Floats) -> Floats:
    """Weights of the pools, the root's last: as given, else inferred from guarantees where asked for, else 1."""
    multiplier = config.settings.infer_weight
    most = strong.max(axis=1, initial=0.0)
    out = np.ones(len(strong))
    for i, given in enumerate(config.weights):
        if given is not None:
            out[i] = given
        elif multiplier is not None and most[i] >= NEGLIGIBLE and most[parent[i]] >= NEGLIGIBLE:
            out[i] = most[i] * multiplier / most[parent[i]]
    return out
