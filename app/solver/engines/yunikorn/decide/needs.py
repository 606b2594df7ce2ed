"""What must become free before an ask fits its node and every limit on its path."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.solver.engines.yunikorn.compile.state import CompiledState
from app.solver.engines.yunikorn.decide.overlay import Overlay
from app.solver.engines.yunikorn.decide.request import Request


@dataclass(frozen=True, slots=True)
class Need:
    """``amount`` of ``resource`` is missing: on the node, or in ``queue`` where a victim must be below it."""

    resource: int
    amount: int
    queue: int | None = None


@dataclass(frozen=True, slots=True)
class Needs:
    """What one node lacks together with the limits; all of it must be met."""

    state: CompiledState
    of: tuple[Need, ...]

    def help_of(self, task: int) -> tuple[int, ...]:
        """What evicting ``task`` gives to each need."""
        amounts = self.state.amounts(task)
        path = self.state.configuration.paths[int(self.state.queue[task])]
        return tuple(
            amounts.get(need.resource, 0) if need.queue is None or need.queue in path else 0 for need in self.of
        )


@dataclass(frozen=True, slots=True)
class PathNeeds:
    """What the limits on the asking queue's path lack, whatever the node."""

    state: CompiledState
    of: tuple[Need, ...]

    def on(self, overlay: Overlay, request: Request, node: int) -> Needs:
        """Together with what ``node`` lacks."""
        free: list[int] = overlay.free[node].tolist()
        lacking = [
            Need(r, amount - (free[r] if r < len(free) else 0))
            for r, amount in request.needs.items()
            if r >= len(free) or free[r] < amount
        ]
        return Needs(self.state, (*lacking, *self.of))


def path_needs(overlay: Overlay, request: Request) -> PathNeeds:
    """Counted after everybody that is being preempted has left, and everybody that waits for that has come."""
    state = overlay.state
    return PathNeeds(
        state,
        tuple(
            Need(r, over, q)
            for q in state.configuration.paths[request.queue]
            for r, most in (state.limit[q] or {}).items()
            if r in request.needs and (over := overlay.used_after(q, r, request) + request.needs[r] - most) > 0
        ),
    )


def has_headroom(overlay: Overlay, request: Request) -> bool:
    """Whether every limit on the path takes the ask now."""
    state = overlay.state
    documented = state.configuration.rules == "documented"
    for q in state.configuration.paths[request.queue]:
        for r, most in (state.limit[q] or {}).items():
            if r not in request.needs:
                continue
            used = overlay.used(q, r) + (overlay.expected(q, r, request) if documented else 0)
            if used + request.needs[r] > most:
                return False
    return True


def without_superfluous(needs: Needs, taken: Sequence[int]) -> list[int]:
    """Put back whoever is not needed, the one taken last being tried last. ``taken`` must make room."""
    helps = [needs.help_of(task) for task in taken]
    spare = [sum(of) - need.amount for of, need in zip(zip(*helps, strict=True), needs.of, strict=True)]
    kept: list[int] = []
    for task, help_ in zip(taken, helps, strict=True):
        if all(given <= room for given, room in zip(help_, spare, strict=True)):
            spare = [room - given for given, room in zip(help_, spare, strict=True)]
        else:
            kept.append(task)
    return kept
