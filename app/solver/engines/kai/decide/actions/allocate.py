"""The allocate action: pending jobs onto what is idle or being released, gang by gang, then pod by pod."""

from app.solver.engines.kai.compile.jobs import ALLOCATED, PENDING, PIPELINED, RUNNING
from app.solver.engines.kai.decide.cycle import Cycle


def allocate(cycle: Cycle) -> None:
    """Place every job that fits; a job with pods left comes back for one more."""
    overlay, trail = cycle.overlay, cycle.tools.trail
    order = cycle.pending()
    while (job := order.pop()) is not None:
        cycle.taken.setdefault(job)
        trail.begin(job, "allocate")
        if not cycle.tools.budget.spend():
            trail.cut_short()
            continue
        tasks = overlay.jobs.tasks[job]
        ran_before = any(overlay.status[t] in (RUNNING, ALLOCATED) for t in tasks)
        if not _place(cycle, job):
            continue
        waits = _waits(cycle, job)
        if waits:
            overlay.make_pipelined(tasks)
        overlay.commit("allocate", job)
        if not waits and not ran_before:
            cycle.starts.add(job)
            overlay.started[job] = overlay.now
        if any(overlay.status[t] == PENDING for t in tasks):
            order.push(job)


def _place(cycle: Cycle, job: int) -> bool:
    overlay, placer, trail = cycle.overlay, cycle.tools.placer, cycle.tools.trail
    tasks = overlay.wanted(job)[0]
    if placer.place_job(job, tasks, placer.everywhere, bind=True):
        trail.note("placed", "the pods fit what is idle or being released", pods=len(tasks))
        return True
    if placer.refused is not None:
        bound = placer.refused
        trail.note(bound.rule, f"{overlay.queue_name(bound.queue)} would pass its bound", pods=len(tasks))
    else:
        trail.note("no-room", "no place for all pods of the gang", pods=len(tasks))
    return False


def _waits(cycle: Cycle, job: int) -> bool:
    """Whether the gang lacks pods that can start now: then all of it waits."""
    overlay = cycle.overlay
    status = [overlay.status[t] for t in overlay.jobs.tasks[job]]
    starting = sum(s in (RUNNING, ALLOCATED) for s in status)
    return PIPELINED in status and starting < overlay.jobs.min_available[job]
