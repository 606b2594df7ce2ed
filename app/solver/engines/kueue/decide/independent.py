"""Mode ``independent``: every ask alone against the same state; and which asks may be decided at all."""

from app.solver import kubernetes
from app.solver.engines.kueue.compile.state import CompiledState
from app.solver.engines.kueue.decide.nominate import nominate
from app.solver.engines.kueue.decide.nomination import Nomination
from app.solver.engines.kueue.decide.overlay import Overlay
from app.solver.engines.kueue.decide.recorder import Recorder
from app.solver.engines.kueue.decide.run import Run
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask


def alone(run: Run, ask: Ask, record: Recorder) -> tuple[Overlay, Nomination]:
    """One ask nominated on an overlay of its own. It must have passed ``check_asks``."""
    overlay = Overlay(run.state, run.now)
    run.prepare(overlay, ask)
    preemptor = run.preemptor(ask)
    record.boosted(ask.priority or 0, preemptor.priority)
    return overlay, nominate(overlay, ask, preemptor, run.search(ask), record)


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
