"""Decisions of mode ``independent``: every ask alone against the same state."""

from app.solver import kubernetes
from app.solver.engine import Question
from app.solver.engines.kueue.compile.state import Loaded
from app.solver.engines.kueue.decide.booking import Books
from app.solver.engines.kueue.decide.flavors.assign import never_fits
from app.solver.engines.kueue.decide.flavors.modes import Mode
from app.solver.engines.kueue.decide.nominate import Nomination, demands, nominate
from app.solver.engines.kueue.decide.overlay import Snapshot
from app.solver.engines.kueue.decide.recorder import Recorder
from app.solver.engines.kueue.decide.run import Rules
from app.solver.engines.kueue.report import answer
from app.solver.engines.kueue.report.explain import recorder
from app.solver.model.decision import Decision, Result, plan_of
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask


def independent(rules: Rules, question: Question) -> Result:
    """Decide every ask. The asks must have passed ``check_asks``."""
    decisions: list[Decision] = []
    for ask in question.asks:
        snapshot, record = Snapshot(rules.loaded, rules.now), recorder(question.why())
        rules.prepare(snapshot, ask)
        preemptor = rules.preemptor(ask)
        record.boosted(ask.priority or 0, preemptor.priority)
        nomination = nominate(snapshot, ask, preemptor, rules.search(ask), record)
        decisions.append(decision(snapshot, nomination, record))
    return Result(decisions=decisions, plan=plan_of(decisions))


def check_asks(loaded: Loaded, asks: list[Ask]) -> None:
    """Raises InvalidInput: only a ClusterQueue takes asks, a flavor must be known to the configuration, and
    tolerations and affinity must be such as Kubernetes takes."""
    configured = loaded.configured
    problems: list[Problem] = []
    for a, ask in enumerate(asks):
        if configured.is_cohort[configured.tree.index[ask.queue]]:
            problems.append(Problem(pointer=pointer("asks", a, "queue"), detail="a cohort takes no workloads"))
        for t, task in enumerate(ask.tasks):
            problems += kubernetes.problems(task, ("asks", a, "tasks", t))
            problems += [
                Problem(pointer=pointer("asks", a, "tasks", t, "flavors", resource), detail=f"no flavor {flavor!r}")
                for resource, flavor in (task.flavors or {}).items()
                if flavor not in configured.flavor_names
            ]
    if problems:
        raise InvalidInput(problems)


def decision(
    snapshot: Snapshot, nomination: Nomination, record: Recorder, waiting: str | None = None, books: Books | None = None
) -> Decision:
    """The answer for one ask. ``waiting``: why it waits although its nomination alone would let it go on; ``books``:
    of the cycle that it is part of."""
    ask, queue, assignment = nomination.ask, nomination.preemptor.queue, nomination.assignment
    goes = waiting is None and assignment.mode is not Mode.NO_FIT
    counts = None
    if nomination.reduced:
        counts = {task.name: count for task, count in zip(ask.tasks, assignment.counts, strict=True)}
    if goes and assignment.mode is Mode.FIT:
        record.fits(ask)
        return Decision(
            ask=ask.id, outcome="admit", assignment=assignment.flavors(), borrowing=assignment.level > 0, victims=[],
            counts=counts, conditions=[answer.reserved(snapshot, queue)], explanation=record.explanation(),
        )  # fmt: skip
    wanted = [pair for demand in demands(snapshot, nomination) for pair in demand.items()]
    short = answer.shortages(snapshot, queue, wanted) or None
    text = answer.shortage_text(snapshot, queue, wanted)
    if goes and nomination.targets:
        victims = answer.victims(snapshot, ask, queue, nomination.targets)
        record.preempts(ask, victims)
        pending = f"{text}. Pending the preemption of {len(nomination.targets)} workload(s)"
        return Decision(
            ask=ask.id, outcome="preempt", assignment=assignment.flavors(), borrowing=assignment.level > 0,
            counts=counts, victims=victims, shortages=short, beyond=answer.beyond(victims),
            conditions=[answer.pending(snapshot, pending)], explanation=record.explanation(),
        )  # fmt: skip
    if waiting is None:
        record.blocked(snapshot, nomination, books)
    never = None if nomination.pinned else never_fits(snapshot.loaded.configured, queue, ask.tasks)
    hopeless = never is not None or (nomination.pinned and assignment.mode is Mode.NO_FIT)
    reasons = "; ".join(filter(None, [waiting, never, *assignment.lacking, text])) or "no workload may be preempted"
    record.waits(ask, reasons, hopeless=hopeless)
    return Decision(
        ask=ask.id, outcome="infeasible" if hopeless else "wait", victims=[], shortages=short,
        conditions=[answer.pending(snapshot, reasons)], explanation=record.explanation(),
    )  # fmt: skip
