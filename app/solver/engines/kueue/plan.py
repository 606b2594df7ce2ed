"""Decisions of mode ``independent``: every ask alone against the same state."""

from app.solver.engine import Question
from app.solver.engines.kueue import answer
from app.solver.engines.kueue.assign import never_fits
from app.solver.engines.kueue.load import Loaded
from app.solver.engines.kueue.modes import Mode
from app.solver.engines.kueue.nominate import Nomination, nominate
from app.solver.engines.kueue.snapshot import Snapshot, Target
from app.solver.engines.kueue.targets import get_targets
from app.solver.model.decision import Decision, Result, plan_of
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask
from app.solver.trace import Why


def plan(loaded: Loaded, question: Question) -> Result:
    """Decide every ask. Raises InvalidInput with every problem of the asks."""
    check_asks(loaded, question.asks)
    decisions = [_decide(loaded, ask, question) for ask in question.asks]
    return Result(decisions=decisions, plan=plan_of(decisions))


def check_asks(loaded: Loaded, asks: list[Ask]) -> None:
    """Raises InvalidInput: only a ClusterQueue takes asks, and a flavor must be known to the configuration."""
    configured = loaded.configured
    problems: list[Problem] = []
    for a, ask in enumerate(asks):
        if configured.is_cohort[configured.tree.index[ask.queue]]:
            problems.append(Problem(pointer=pointer("asks", a, "queue"), detail="a cohort takes no workloads"))
        for t, task in enumerate(ask.tasks):
            problems += [
                Problem(pointer=pointer("asks", a, "tasks", t, "flavors", resource), detail=f"no flavor {flavor!r}")
                for resource, flavor in (task.flavors or {}).items()
                if flavor not in configured.flavor_names
            ]
    if problems:
        raise InvalidInput(problems)


def _decide(loaded: Loaded, ask: Ask, question: Question) -> Decision:
    why = question.why()
    snapshot = Snapshot(loaded, question.now)
    snapshot.spare_own(ask.workload)
    nomination = nominate(snapshot, ask, why)
    targets: list[Target] = []
    if nomination.contested and nomination.assignment.mode is Mode.PREEMPT and ask.preemption_policy != "Never":
        targets = get_targets(snapshot, nomination.preemptor, nomination.contested, why)
    return decision(snapshot, ask, nomination, targets, why)


def decision(snapshot: Snapshot, ask: Ask, nomination: Nomination, targets: list[Target], why: Why) -> Decision:
    """The answer for one ask, given whom it may evict."""
    queue, assignment = nomination.preemptor.queue, nomination.assignment
    if assignment.mode is Mode.FIT:
        return Decision(
            ask=ask.id, outcome="admit", assignment=assignment.flavors(), borrowing=assignment.level > 0, victims=[],
            conditions=[answer.reserved(snapshot, queue)], explanation=why.explanation(),
        )  # fmt: skip
    short = answer.shortages(snapshot, queue, nomination.preemptor.request) or None
    text = answer.shortage_text(snapshot, queue, nomination.preemptor.request)
    if targets:
        return Decision(
            ask=ask.id, outcome="preempt", assignment=assignment.flavors(), borrowing=assignment.level > 0,
            victims=answer.victims(snapshot, ask, queue, targets), shortages=short,
            conditions=[answer.pending(snapshot, f"{text}. Pending the preemption of {len(targets)} workload(s)")],
            explanation=why.explanation(),
        )  # fmt: skip
    never = None if nomination.pinned else never_fits(snapshot.loaded.configured, queue, ask.tasks)
    reasons = "; ".join(filter(None, [never, *assignment.lacking, text]))
    return Decision(
        ask=ask.id, outcome="wait" if never is None else "infeasible", victims=[], shortages=short,
        conditions=[answer.pending(snapshot, reasons)], explanation=why.explanation(),
    )  # fmt: skip
