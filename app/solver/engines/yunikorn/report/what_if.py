"""The same overlay under another rule set or another quota: what an explanation compares with."""

from dataclasses import replace

from app.solver.engines.yunikorn.compile.configuration import Amounts, CompiledConfiguration, cells_of
from app.solver.engines.yunikorn.compile.rule_sets import RuleSet
from app.solver.engines.yunikorn.compile.settings import effective
from app.solver.engines.yunikorn.compile.state import slack_of
from app.solver.engines.yunikorn.decide.overlay import Overlay


def under(overlay: Overlay, rules: RuleSet) -> Overlay:
    """The overlay as the other rule set would see it."""
    queues = overlay.state.configuration
    settings = effective(queues.tree, queues.blocks, rules)
    return _with(overlay, replace(queues, rules=rules, settings=settings), overlay.state.limit)


def with_guarantee(overlay: Overlay, queue: int, resource: int, amount: int) -> Overlay:
    """The overlay if ``queue`` were guaranteed ``amount`` steps of ``resource``."""
    queues = overlay.state.configuration
    guaranteed = list(queues.guaranteed)
    guaranteed[queue] = {**(guaranteed[queue] or {}), resource: amount}
    cells, path_cells, owner = cells_of(queues.tree, guaranteed)
    changed = replace(
        queues, guaranteed=guaranteed, cells=cells, path_cells=path_cells, cell_owner=owner,
        guarantee_of=[(guaranteed[q] or {})[r] for q, r in owner],
    )  # fmt: skip
    return _with(overlay, changed, overlay.state.limit)


def with_limit(overlay: Overlay, queue: int, resource: int, amount: int) -> Overlay:
    """The overlay if the limit of ``queue`` were ``amount`` steps of ``resource``."""
    limit = list(overlay.state.limit)
    limit[queue] = {**(limit[queue] or {}), resource: amount}
    return _with(overlay, overlay.state.configuration, limit)


def _with(overlay: Overlay, queues: CompiledConfiguration, limit: list[Amounts | None]) -> Overlay:
    twin = overlay.copy()
    twin.state = overlay.state.with_configuration(queues, limit)
    twin.slack = slack_of(queues, twin.allocated, twin.preempting)
    return twin
