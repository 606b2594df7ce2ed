"""What an administrator should know about a configuration, and about guarantees that no node can back."""

from collections.abc import Iterator
from typing import Any

from app.solver.engines.ytsaurus.configuration import (
    CompiledConfiguration,
    compile_configuration,
    nested_promises,
    without_donor,
)
from app.solver.engines.ytsaurus.state import CompiledState
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding, InvalidInput, pointer
from app.solver.model.quantity import units
from app.solver.model.ytsaurus import Settings
from app.solver.quotas import quotas


def findings(configuration: Configuration) -> list[Finding]:
    """Remarks in document order; pointers are relative to the configuration document."""
    found = list(_unread(configuration))
    try:
        config = compile_configuration(configuration)
    except InvalidInput:
        return found  # the problems themselves are findings already, and there is no tree to look at
    return [*found, *_pools(configuration, config)]


def warnings(cluster: CompiledState) -> list[dict[str, Any]]:
    """Guarantees in resources of which the state's nodes have nothing: such a guarantee is a share of nothing."""
    out: list[dict[str, Any]] = []
    for i, guaranteed in enumerate(cluster.config.guaranteed):
        for resource, amount in guaranteed.items():
            if amount and cluster.total[cluster.index.index[resource]] <= 0:
                out.append(
                    {
                        "rule": "ytsaurus-guarantee-without-nodes",
                        "pointer": pointer("configuration", *cluster.config.places[i][resource], "guaranteed"),
                        "detail": f"no node has any {resource}, so this guarantee comes to nothing",
                    }
                )
    return out


def _unread(configuration: Configuration) -> Iterator[Finding]:
    """What the document says and YTsaurus, or one heartbeat of it, has no use for."""
    settings = configuration.settings.ytsaurus or Settings()
    if settings.use_precommit_for_preemption:
        at = pointer("settings", "ytsaurus", "use_precommit_for_preemption")
        yield _info("ytsaurus-unread", at, "it keeps concurrent heartbeats apart; here they come one after another")
    if settings.enable_fair_share_truncation_in_fifo_pool:
        at = pointer("settings", "ytsaurus", "enable_fair_share_truncation_in_fifo_pool")
        yield _info("ytsaurus-unread", at, "whether a FIFO pool cuts gangs is for each pool to say")
    if configuration.flavors:
        yield _warning("ytsaurus-unread", pointer("flavors"), "YTsaurus has no flavors")
    for i, queue in enumerate(configuration.queues):
        for one in quotas(queue, ("queues", i)):
            for field in ("borrowing_limit", "lending_limit", "weight"):
                if getattr(one.quota, field) is not None:
                    at = pointer(*one.at, field)
                    yield _warning("ytsaurus-unread", at, f"YTsaurus has no {field.replace('_', ' ')} of one resource")


def _pools(configuration: Configuration, config: CompiledConfiguration) -> Iterator[Finding]:
    settings = config.settings
    if settings.timeout > settings.aggressive_timeout:
        at = pointer("settings", "ytsaurus", "fair_share_starvation_timeout")
        detail = f"longer than fair_share_aggressive_starvation_timeout ({settings.aggressive_timeout / 1e6:g} s)"
        yield _warning("ytsaurus-timeout-order", at, detail)
    for i, name in enumerate(config.tree.names):
        inherited, own = config.inherited[i], config.pools[i]
        for resource, amount in config.guaranteed[i].items():
            limit = config.limits[i].get(resource)
            if limit is not None and amount > limit:
                at = pointer(*config.places[i][resource], "guaranteed")
                detail = f"the limit of {units(limit, resource)} {resource} cuts this guarantee"
                yield _warning("ytsaurus-guarantee-over-limit", at, detail)
        if config.guaranteed[i] and not config.guaranteed[i].get(settings.main_resource):
            at = pointer("queues", i, "quota" if configuration.queues[i].quota else "resource_groups")
            detail = f"without a guarantee of {settings.main_resource} nothing is inferred for resources left out"
            yield _info("ytsaurus-no-main-guarantee", at, detail)
        if own.mode == "fifo" and config.is_inner(i):
            at = pointer("queues", i, "ytsaurus", "mode")
            yield _warning("ytsaurus-fifo-inner-pool", at, "YTsaurus allows FIFO mode only without child pools")
        yield from _share_flags(config, i)
        overrides = own.timeout is not None or own.enable_aggressive_starvation is not None
        if overrides and inherited.enable_aggressive_starvation and inherited.timeout > settings.aggressive_timeout:
            at = pointer("queues", i, "ytsaurus")
            detail = (
                f"{name!r} starves after {inherited.timeout / 1e6:g} s, but aggressively after "
                f"{settings.aggressive_timeout / 1e6:g} s already"
            )
            yield _warning("ytsaurus-timeout-order", at, detail)


def _share_flags(config: CompiledConfiguration, i: int) -> Iterator[Finding]:
    """Flags of fair share that come to nothing."""
    tree, own = config.settings.shares, config.pools[i].shares
    block = ("queues", i, "ytsaurus")
    if own.reorder_fifo and not (tree.gang_steps and tree.reorder_fifo and own.gang_steps):
        at = pointer(*block, "enable_fifo_children_reordering_for_guarantee_utilization")
        detail = "without the tree's flag of this name and step functions for gangs, nothing is reordered"
        yield _info("ytsaurus-unread", at, detail)
    if i in without_donor(config):
        at = pointer(*block, "enable_priority_strong_guarantee_adjustment")
        yield _warning("ytsaurus-priority-without-donor", at, "no pool above donates: the priority does not count")
    if i in nested_promises(config):
        at = pointer(*block, "compute_promised_guarantee_fair_share")
        yield _warning("ytsaurus-nested-promised-guarantee", at, "a pool above says so too, and that one counts")
    integral = own.integral
    if integral.kind != "none" and not any(integral.flow.values()):
        at = pointer(*block, "integral_guarantees")
        yield _warning("ytsaurus-no-resource-flow", at, "without a resource_flow the volume is never refilled")
    if integral.kind == "burst" and not any(integral.burst.values()):
        at = pointer(*block, "integral_guarantees")
        yield _warning("ytsaurus-no-burst-guarantee", at, "without burst_guarantee_resources nothing is ever given")


def _warning(rule: str, at: str, detail: str) -> Finding:
    return Finding(rule=rule, severity="warning", pointer=at, detail=detail)


def _info(rule: str, at: str, detail: str) -> Finding:
    return Finding(rule=rule, severity="info", pointer=at, detail=detail)
