"""Signatures: after a job failed, a job of the same constraints is tried only if it is easier to place."""

from app.solver.engines.kai.compile.jobs import PENDING
from app.solver.engines.kai.decide.order.victim_order import ACTIVE
from app.solver.engines.kai.decide.overlay import Overlay
from app.solver.engines.kai.decide.placing.predicates import constraints

Request = tuple[int, ...]


class Signatures:
    """The constraints of jobs, as they stood when first asked for: KAI keeps the answer for the whole cycle."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._of: dict[int, tuple[str, ...]] = {}

    def of(self, job: int) -> tuple[str, ...]:
        """Sorted constraints of the job's pods that are not active: as many as there are such pods."""
        found = self._of.get(job)
        if found is None:
            overlay = self._overlay
            wires = overlay.jobs.task_wire
            found = self._of[job] = tuple(
                sorted(
                    constraints(wires[t], overlay.ask_of_task(t))
                    for t in overlay.jobs.tasks[job]
                    if overlay.status[t] not in ACTIVE
                )
            )
        return found


class Failed:
    """The smallest job that failed, by signature."""

    def __init__(self, overlay: Overlay, signatures: Signatures) -> None:
        self._overlay = overlay
        self._signatures = signatures
        self._smallest: dict[tuple[str, ...], int] = {}

    def easier(self, job: int) -> bool:
        """Whether the job may do what its like could not: fewer pods, or some smaller one."""
        like = self._smallest.get(self._signatures.of(job))
        return like is None or _easier(self._pending(job), self._pending(like))

    def add(self, job: int) -> None:
        """The job failed."""
        signature = self._signatures.of(job)
        like = self._smallest.get(signature)
        if like is None or _smaller(self._pending(job), self._pending(like)):
            self._smallest[signature] = job

    def _pending(self, job: int) -> list[Request]:
        overlay = self._overlay
        return sorted(overlay.request[t] for t in overlay.jobs.tasks[job] if overlay.status[t] == PENDING)


def _easier(job: list[Request], failed: list[Request]) -> bool:
    if not job:
        return False
    return len(failed) > len(job) or any(a != b and _at_most(a, b) for a, b in zip(job, failed, strict=False))


def _smaller(job: list[Request], failed: list[Request]) -> bool:
    return 0 < len(job) <= len(failed) and all(_at_most(a, b) for a, b in zip(job, failed, strict=False))


def _at_most(a: Request, b: Request) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True))
