"""Room that the asks of a cycle took from one another."""

from collections.abc import Sequence

from app.solver.engines.kai.compile.baseline import baseline
from app.solver.engines.kai.decide.cycle import Cycle
from app.solver.engines.kai.report.outcomes import placed_on

_LACKS_ROOM = ("no-room", "no-victims", "no-easier", "too-few-gpus-free", "too-few-gpus", "too-few-victims")


def taken_by(cycle: Cycle, a: int) -> str | None:
    """The sentence for an ask that lacks room only because the cycle gave it to other asks: each of its pods fits on
    what the nodes had before the cycle began, first fit by name. None where that is not so, or cannot be told."""
    overlay = cycle.overlay
    main = cycle.tools.trail.main(overlay.jobs.of_ask[a])
    if main is None or main[1] not in _LACKS_ROOM:
        return None
    pods = overlay.wanted(overlay.jobs.of_ask[a])[0]
    if any(overlay.gpus.share[t] for t in pods):
        return None
    nodes = _first_fit(cycle, pods)
    holders = placed_on(cycle, nodes)
    if not nodes or not holders:
        return None
    where = ", ".join(sorted(overlay.node_names[n] for n in nodes))
    hold = "holds" if len(nodes) == 1 else "hold"
    return f"{where} had room for it before the cycle began, and {hold} {', '.join(holders)} now"


def _first_fit(cycle: Cycle, pods: Sequence[int]) -> set[int]:
    """The nodes that would hold the pods; empty where some pod fits nowhere."""
    overlay, placer = cycle.overlay, cycle.tools.placer
    free = [column.copy() for column in baseline(overlay.state).free]
    free += [[0] * len(overlay.state.nodes) for _ in range(overlay.width - len(free))]
    used: set[int] = set()
    for t in pods:
        request, allowed = overlay.request[t], placer.allowed(t)
        for n in placer.by_name:
            if (allowed is None or allowed[n]) and all(need <= free[r][n] for r, need in enumerate(request)):
                for r, need in enumerate(request):
                    free[r][n] -= need
                used.add(n)
                break
        else:
            return set()
    return used
