"""``POST /v1/shares``: what every queue is entitled to, requests and holds."""

from typing import Any

from app.solver.engines.kai.compile.configuration import CompiledConfiguration
from app.solver.engines.kai.compile.resources import GPU, KAI_UNLIMITED, QUEUE_RESOURCES, Share
from app.solver.engines.kai.compile.state import CompiledState, with_asks
from app.solver.engines.kai.decide.division import Amounts, divide, dominant_share
from app.solver.model.request import Options
from app.solver.model.state import Ask
from app.solver.quotas import quotas


def shares(state: CompiledState, asks: list[Ask], now: int, options: Options) -> dict[str, Any]:
    """The body of ``POST /v1/shares``, in whole units; an entitlement without bound is ``"unlimited"``. KAI counts
    pending pods as requests, so that the asks change the shares; the time has no say."""
    del now, options
    jobs, _ = with_asks(state, asks)
    division = divide(state, jobs)
    configuration = state.configuration
    names = answer_names(configuration, state)

    def shown(values: Amounts | Share, units: Share) -> dict[str, int | float | str]:
        return {name: in_units(values[r], units[r]) for r, name in enumerate(names)}

    steps: Share = (1000, 1, 1000)
    amounts: Share = (1000, 1, 1)
    return {
        "queues": {
            name: {
                "fair_share": shown(division.fair[q], amounts),
                "allocatable_share": shown(division.allocatable[q], amounts),
                "deserved": shown(configuration.deserved[q], steps),
                "limit": shown(configuration.limit[q], steps),
                "request": shown(division.request[q], steps),
                "usage": shown(division.allocated[q], steps),
                "usage_non_preemptible": shown(division.non_preemptible[q], steps),
                "share": dominant_share(division, q),
            }
            for q, name in enumerate(configuration.tree.names)
        }
    }


def answer_names(configuration: CompiledConfiguration, state: CompiledState | None) -> tuple[str, str, str]:
    """How answers name the three resources: GPUs by the one name that the documents use, else ``gpu``."""
    used = {placed.resource for queue in configuration.queues for placed in quotas(queue)}
    used |= {name for node in (state.nodes if state else ()) for name in node.capacity}
    gpus = {name for name in used if name == QUEUE_RESOURCES[GPU] or name.endswith("/gpu")}
    return "cpu", "memory", gpus.pop() if len(gpus) == 1 else QUEUE_RESOURCES[GPU]


def in_units(value: float, step: int) -> int | float | str:
    """An amount of ``step`` to a unit, as answers have it: whole ones as integers."""
    if value == KAI_UNLIMITED:
        return "unlimited"
    return value / step if value % step else int(value // step)
