"""``POST /v1/shares``: guaranteed, used, remaining and what is preemptable, as YuniKorn counts them."""

from typing import Any

from app.solver.engines.yunikorn.compile.configuration import Amounts
from app.solver.engines.yunikorn.compile.state import CompiledState
from app.solver.engines.yunikorn.decide.overlay import Overlay
from app.solver.engines.yunikorn.decide.request import check_asks, requests_of
from app.solver.engines.yunikorn.decide.victims.candidates import path_limits
from app.solver.model.quantity import units
from app.solver.model.request import Options
from app.solver.model.state import Ask


def shares(state: CompiledState, asks: list[Ask], now: int, options: Options) -> dict[str, Any]:
    """By queue, in whole units: ``fair_share`` is the guarantee (own, else the smallest inherited one),
    ``remaining`` what is left of it (negative when over), ``preemptable`` what could go without a queue on the path
    falling below its guarantee, ``share`` the largest part of a guarantee that is used. The time has no say."""
    del now, options
    check_asks(state, asks)
    overlay = Overlay(state)
    pending = _pending(state, asks)
    queues = state.configuration
    return {
        "queues": {queues.tree.names[q]: _queue(overlay, q, pending.get(q, {})) for q in queues.by_path},
        "workloads": _workloads(state),
    }


def _queue(overlay: Overlay, q: int, pending: dict[str, int | float]) -> dict[str, Any]:
    state, queues = overlay.state, overlay.state.configuration
    used = {r: amount for r, amount in enumerate(state.allocated[q]) if amount}
    leaving = {r: amount for r, amount in enumerate(state.preempting[q]) if amount}
    guarantee = _entitled(state, q)
    left = {r: min(overlay.slack[cell] for cell in cells) for r, cells in queues.path_cells[q].items()}
    preemptable = {
        r: max(0, min(amount - leaving.get(r, 0), -left[r])) if r in left else amount - leaving.get(r, 0)
        for r, amount in used.items()
    }
    shown = state.resources.units
    found: dict[str, Any] = {
        "fair_share": shown(guarantee), "guaranteed": shown(queues.guaranteed[q] or {}),
        "limit": shown(path_limits(state, q)[q]), "usage": shown(used), "preempting": shown(leaving),
        "remaining": shown(left), "preemptable": shown(preemptable), "pending": pending,
    }  # fmt: skip
    ratios = [(used.get(r, 0) - leaving.get(r, 0)) / amount for r, amount in guarantee.items() if amount]
    if ratios:
        found["share"] = max(ratios)
    return found


def _entitled(state: CompiledState, q: int) -> Amounts:
    """The queue's own guarantee; for resources it does not name, the smallest above it."""
    queues = state.configuration
    inherited = {r: min(queues.guarantee_of[cell] for cell in cells) for r, cells in queues.path_cells[q].items()}
    return {**inherited, **(queues.guaranteed[q] or {})}


def _pending(state: CompiledState, asks: list[Ask]) -> dict[int, dict[str, int | float]]:
    """What the asks ask for, by queue of their paths."""
    steps: dict[int, dict[str, int]] = {}
    for ask in asks:
        for request in requests_of(state, ask):
            for q in state.configuration.paths[request.queue]:
                of = steps.setdefault(q, {})
                for r, amount in request.amounts.items():
                    name = request.resources.names[r]
                    of[name] = of.get(name, 0) + amount
    return {q: {name: units(amount, name) for name, amount in of.items()} for q, of in steps.items()}


def _workloads(state: CompiledState) -> dict[str, Any]:
    totals: list[Amounts] = [{} for _ in state.workloads]
    column: list[int] = state.workload.tolist()
    for task, of in enumerate(column):
        for r, amount in state.amounts(task).items():
            totals[of][r] = totals[of].get(r, 0) + amount
    return {
        workload.id: {"queue": workload.queue, "usage": state.resources.units(totals[i])}
        for i, workload in enumerate(state.workloads)
    }
