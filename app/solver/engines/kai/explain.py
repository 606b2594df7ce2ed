"""Why: the trail of a job as an explanation, and the one thing that stands in its way."""

from collections.abc import Sequence

from app.solver.engine import Question
from app.solver.engines.kai.cycle import Cycle
from app.solver.engines.kai.feasibility import Never
from app.solver.engines.kai.session import Eviction
from app.solver.model.decision import Outcome
from app.solver.model.trace import Explanation


def explain(
    cycle: Cycle, job: int, victims: Sequence[Eviction], question: Question, outcome: Outcome, why: Never | None,
    message: str,
) -> Explanation | None:  # fmt: skip
    """Every scenario considered, equal ones counted once, and why each failed. ``message``: that of the condition."""
    record = question.why()
    if not record.on:
        return None
    for tried in cycle.tools.trail.of(job):
        part = f", first {tried.part} of {tried.of} pods" if tried.of else ""
        numbers = {"part": tried.part, "pods_of_gang": tried.of} if tried.of else {}
        record.step(
            tried.rule, f"{tried.action}{part}: {tried.detail}", action=tried.action, count=tried.count,
            **numbers, **tried.numbers,
        )  # fmt: skip
    for victim, refusal in cycle.tools.trail.spared(job):
        session = cycle.session
        record.candidate(
            "protected", refusal.rule, session.jobs.id[victim], queue=session.queue_name(session.jobs.queue[victim]),
            detail=refusal.detail, **refusal.numbers,
        )  # fmt: skip
    for eviction in victims:
        session, t = cycle.session, eviction.task
        owner = session.jobs.task_job[t]
        record.candidate(
            "victim", eviction.action, session.jobs.id[owner], task=session.jobs.task_name[t],
            queue=session.queue_name(session.jobs.queue[owner]), node=session.node_names[session.jobs.task_node[t]],
        )  # fmt: skip
    name = session_name(cycle, job)
    if why is not None:
        record.headline(f"{name} can never run: {why.message}")
        record.blocked(why.message)
    elif outcome == "wait":
        record.headline(f"{name} waits: {message}")
        record.blocked(message)
    else:
        record.headline(f"{name}: {outcome}")
    return record.explanation()


def session_name(cycle: Cycle, job: int) -> str:
    """The job's id."""
    return cycle.session.jobs.id[job]


def blocker(cycle: Cycle, job: int) -> tuple[str, str]:
    """The reason and the sentence of a job that waits: the failure of its attempts that tells most."""
    session = cycle.session
    if not session.ready(job):
        need, alive = session.jobs.min_available[job], session.active[job] + session.pending[job]
        return "GangIncomplete", f"its gang needs {need} pods and {alive} are there"
    main = cycle.tools.trail.main(job)
    if main is None:
        return "NoAction", "no action of this cycle tried to place it"
    action, rule, detail = main
    return "".join(word.capitalize() for word in rule.split("-")), f"{action}: {detail}"
