"""Decisions of mode ``independent``: every ask alone against the same state."""

from app.solver import kubernetes
from app.solver.engine import Question
from app.solver.engines.kueue.compile.state import CompiledState
from app.solver.engines.kueue.decide.nominate import nominate
from app.solver.engines.kueue.decide.overlay import Overlay
from app.solver.engines.kueue.decide.run import Run
from app.solver.engines.kueue.report.answer import answer
from app.solver.engines.kueue.report.explain import explain
from app.solver.model.decision import Decision, Plan, Result, each_alone, plan_of
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask


def independent(run: Run, question: Question) -> Result:
    """Decide every ask. The asks must have passed ``check_asks``."""
    decided: list[tuple[Decision, Plan]] = []
    for ask in question.asks:
        overlay, record = Overlay(run.state, run.now), explain(question.why())
        run.prepare(overlay, ask)
        preemptor = run.preemptor(ask)
        record.boosted(ask.priority or 0, preemptor.priority)
        nomination = nominate(overlay, ask, preemptor, run.search(ask), record)
        decision = answer(overlay, nomination, record)
        decided.append((decision, plan_of([decision])))
    return each_alone(decided)


def check_asks(state: CompiledState, asks: list[Ask]) -> None:
    """Raises InvalidInput: only a ClusterQueue takes asks, a flavor must be known to the configuration, and
    tolerations and affinity must be such as Kubernetes takes."""
    configuration = state.configuration
    problems: list[Problem] = []
    for a, ask in enumerate(asks):
        if configuration.is_cohort[configuration.tree.index[ask.queue]]:
            problems.append(Problem(pointer=pointer("asks", a, "queue"), detail="a cohort takes no workloads"))
        for t, task in enumerate(ask.tasks):
            problems += kubernetes.problems(task, ("asks", a, "tasks", t))
            problems += [
                Problem(pointer=pointer("asks", a, "tasks", t, "flavors", resource), detail=f"no flavor {flavor!r}")
                for resource, flavor in (task.flavors or {}).items()
                if flavor not in configuration.flavor_names
            ]
    if problems:
        raise InvalidInput(problems)
