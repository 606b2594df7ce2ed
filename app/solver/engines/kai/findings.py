"""Settings as they take effect, and what an administrator should know before a configuration decides anything."""

from collections.abc import Iterator
from typing import Any

from app.solver.compiled import ROOTLESS
from app.solver.engines.kai.answer import answer_names, in_units
from app.solver.engines.kai.configuration import (
    NODE_POOL,
    CompiledConfiguration,
    MinRuntime,
    compile_configuration,
    settings_problems,
)
from app.solver.engines.kai.jobs import CPU, GPU, KAI_UNLIMITED, MEMORY, QUEUE_RESOURCES, Share, is_gpu, unsupported_gpu
from app.solver.engines.kai.rule_sets import RULE_SETS
from app.solver.model.base import seconds
from app.solver.model.configuration import Configuration, Queue, quotas
from app.solver.model.kai import Settings
from app.solver.model.problems import Finding, InvalidInput, pointer
from app.solver.model.state import State


def effective_settings(configuration: CompiledConfiguration, state: State | None) -> dict[str, Any]:
    """Durations in seconds, quantities in whole units. ``reclaim_min_runtime`` is what protects a queue against its
    own siblings; with method ``lca`` another queue meets the value of the branch that it reclaims from."""
    del state  # nothing that runs changes a setting
    policy = configuration.policy
    return {
        "settings": {
            "rules": policy.rules.name,
            "release": policy.release.release,
            "default_reclaim_min_runtime": seconds(policy.default_reclaim),
            "default_preempt_min_runtime": seconds(policy.default_preempt),
            "reclaim_resolve_method": policy.method,
            "actions": list(policy.actions),
            "use_scheduling_signatures": policy.use_scheduling_signatures,
            "max_consolidation_preemptees": policy.max_consolidation_preemptees,
            "allow_consolidating_reclaim": policy.allow_consolidating_reclaim,
        },
        "queues": {name: _queue(configuration, q) for q, name in enumerate(configuration.tree.names)},
    }


def _queue(configuration: CompiledConfiguration, queue: int) -> dict[str, Any]:
    names = answer_names(configuration, None)
    reclaim = configuration.min_runtimes.reclaim_at(queue)
    preempt = configuration.min_runtimes.for_preempt(queue)
    return {
        "reclaim_min_runtime": seconds(reclaim.micros),
        "reclaim_min_runtime_set_by": _set_by(configuration, reclaim),
        "preempt_min_runtime": seconds(preempt.micros),
        "preempt_min_runtime_set_by": _set_by(configuration, preempt),
        "priority": configuration.priority[queue],
        "deserved": _amounts(configuration.deserved[queue], names),
        "limit": _amounts(configuration.limit[queue], names),
        "over_quota_weight": dict(zip(names, configuration.weight[queue], strict=True)),
    }


def _set_by(configuration: CompiledConfiguration, minimum: MinRuntime) -> str | None:
    """The queue that sets the value; None for the node pool's default."""
    return None if minimum.set_by == NODE_POOL else configuration.tree.names[minimum.set_by]


def _amounts(values: Share, names: tuple[str, str, str]) -> dict[str, int | float | str]:
    return {name: in_units(value, step) for name, value, step in zip(names, values, (1000, 1, 1000), strict=True)}


_NAMES = QUEUE_RESOURCES


def findings(configuration: Configuration) -> list[Finding]:
    """Remarks in document order; pointers are relative to the configuration document."""
    found = [*_silent_defaults(configuration), *_unread(configuration)]
    try:
        compiled = compile_configuration(configuration)
    except InvalidInput:
        return found  # the problems themselves are findings already, and there is no tree to look at
    return [*found, *_quotas(configuration, compiled), *_minimum_runtimes(configuration, compiled), *_actions(compiled)]


def _silent_defaults(configuration: Configuration) -> Iterator[Finding]:
    """Values that released KAI replaces without a word."""
    settings = configuration.settings.kai or Settings()
    if not RULE_SETS[settings.rules].refuses_settings:
        for problem in settings_problems(settings):
            yield _warning(
                "kai-setting-replaced", problem.pointer.removeprefix("/configuration"),
                f"{problem.detail}; KAI uses its default instead",
            )  # fmt: skip


def _unread(configuration: Configuration) -> Iterator[Finding]:
    """What the document says and KAI has no notion of."""
    if configuration.flavors:
        yield _warning("kai-unread", pointer("flavors"), "KAI has no flavors")
    for i, queue in enumerate(configuration.queues):
        for _, resource, quota, at in quotas(queue, ("queues", i)):
            if resource not in ("cpu", "memory") and not is_gpu(resource):
                why = unsupported_gpu(resource) or "KAI divides cpu, memory and GPUs only"
                yield _warning("kai-unread", pointer(*at), why)
            for field in ("borrowing_limit", "lending_limit"):
                if getattr(quota, field) is not None:
                    yield _warning("kai-unread", pointer(*at, field), f"KAI has no {field.replace('_', ' ')}")


def _quotas(configuration: Configuration, compiled: CompiledConfiguration) -> Iterator[Finding]:
    tree = compiled.tree
    for q, name in enumerate(tree.names):
        for r in (CPU, MEMORY, GPU):
            at = _quota_pointer(configuration.queues[q], q, r)
            deserved, limit = compiled.deserved[q][r], compiled.limit[q][r]
            if limit != KAI_UNLIMITED and (deserved == KAI_UNLIMITED or deserved > limit):
                detail = f"{name!r} deserves more {_NAMES[r]} than its limit lets it have"
                yield _warning("kai-deserved-over-limit", at, detail)
            children = [compiled.deserved[c][r] for c in tree.children[q]]
            if children and deserved != KAI_UNLIMITED and KAI_UNLIMITED not in children and sum(children) > deserved:
                detail = f"the children of {name!r} deserve more {_NAMES[r]} together than it does"
                yield _info("kai-children-over-deserved", at, detail)


def _quota_pointer(queue: Queue, q: int, r: int) -> str:
    for placed in quotas(queue, ("queues", q)):
        if placed.resource == _NAMES[r] or (r == GPU and is_gpu(placed.resource)):
            return pointer(*placed.at)
    return pointer("queues", q)


def _minimum_runtimes(configuration: Configuration, compiled: CompiledConfiguration) -> Iterator[Finding]:
    tree, policy = compiled.tree, compiled.policy
    for q, queue in enumerate(configuration.queues):
        if queue.kai is None or queue.kai.reclaim_min_runtime is None or policy.method != "lca":
            continue
        if tree.parent[q] == ROOTLESS and len(tree.roots) == 1:
            if tree.children[q] and all(_overrides(configuration, c) for c in tree.children[q]):
                detail = "every child overrides it, and no other tree can reclaim from this one"
                yield _info("kai-min-runtime-unused", pointer("queues", q, "kai", "reclaim_min_runtime"), detail)
        elif len(tree.children[tree.parent[q]] if tree.parent[q] != ROOTLESS else tree.roots) == 1:
            detail = f"{queue.name!r} has no sibling, so with method 'lca' it protects only what its children inherit"
            yield _info("kai-min-runtime-unused", pointer("queues", q, "kai", "reclaim_min_runtime"), detail)


def _overrides(configuration: Configuration, queue: int) -> bool:
    block = configuration.queues[queue].kai
    return block is not None and block.reclaim_min_runtime is not None


def _actions(compiled: CompiledConfiguration) -> Iterator[Finding]:
    actions = compiled.policy.actions
    if len(set(actions)) < len(actions):
        yield _info(
            "kai-action-repeated", pointer("settings", "kai", "actions"), "an action runs more than once a cycle"
        )
    if not actions:
        yield _warning("kai-no-actions", pointer("settings", "kai", "actions"), "no action: every ask waits")


def _warning(rule: str, at: str, detail: str) -> Finding:
    return Finding(rule=rule, severity="warning", pointer=at, detail=detail)


def _info(rule: str, at: str, detail: str) -> Finding:
    return Finding(rule=rule, severity="info", pointer=at, detail=detail)
