"""Flags of pools that count only where the pools above let them (``ValidatePoolConfigs``)."""

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.ytsaurus.compile.configuration import CompiledConfiguration


def without_donor(config: CompiledConfiguration) -> set[int]:
    """Priority pools without a donor above: their priority does not count. Another priority pool in between counts
    for itself."""
    has_donor: dict[int, bool] = {ROOTLESS: False}
    out: set[int] = set()
    for i in config.tree.top_down:
        own, above = config.pools[i].shares, has_donor[config.tree.parent[i]]
        if own.priority and not above:
            out.add(i)
        has_donor[i] = own.donor or (above and not own.priority)
    return out


def nested_promises(config: CompiledConfiguration) -> set[int]:
    """Pools that ask for promised shares below another that does: the uppermost one counts."""
    inside: dict[int, bool] = {ROOTLESS: False}
    out: set[int] = set()
    for i in config.tree.top_down:
        above = inside[config.tree.parent[i]]
        if above and config.pools[i].shares.promised:
            out.add(i)
        inside[i] = above or config.pools[i].shares.promised
    return out


def promised_tops(config: CompiledConfiguration) -> list[int]:
    """The uppermost pools that ask for promised shares."""
    nested = nested_promises(config)
    return [i for i, pool in enumerate(config.pools) if pool.shares.promised and i not in nested]
