"""An engine of one file: the newest work of lower priority goes until there are few enough tasks. Its documents list
queues, one a line.

What "to add an engine" in docs/architecture.md asks for, and nothing else.
"""

from typing import Any, Final

from app.base.documents import Path
from app.formats.exported import Exported, Lost, dump
from app.formats.manifests import System
from app.formats.reader import Findings, Imported
from app.solver.engine import Engine, Facts
from app.solver.model.base import to_datetime
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.decision import Condition, Decision, Plan, PlannedEviction, Result, Victim
from app.solver.model.problems import Rule
from app.solver.model.state import Ask, State
from app.solver.question import Question

MOST = 2
"""As many workloads run at once."""
FACTS: Final = Facts(
    name="toy", title="Toy Scheduler", short="Toy", schema="Toy", releases={}, quotas=False, formats="tests.support.toy"
)


def _configure(configuration: Configuration) -> Configuration:
    return configuration


def _load(_: Configuration, state: State) -> State:
    return state


def _decide(state: State, ask: Ask, now: int) -> Decision:
    weaker = [one for one in reversed(state.workloads) if one.priority < (ask.priority or 0)]
    chosen = weaker[: max(0, len(state.workloads) + 1 - MOST)]
    fits = len(state.workloads) - len(chosen) < MOST
    condition = Condition(
        type="Running",
        status="False",
        reason="Full",
        message="nobody weaker runs",
        last_transition_time=to_datetime(now),
    )
    victims = [
        Victim(workload=one.id, queue=one.queue, reason="Weaker", message="it is weaker", conditions=[], freed={})
        for one in (chosen if fits else [])
    ]
    outcome = "wait" if not fits else "preempt" if victims else "admit"
    return Decision(ask=ask.id, outcome=outcome, victims=victims, conditions=[] if fits else [condition])


def _plan(state: State, question: Question) -> Result:
    decisions = [_decide(state, ask, question.now) for ask in question.asks]
    evictions = {
        one.workload: PlannedEviction(workload=one.workload, queue=one.queue, reason=one.reason, for_ask=decision.ask)
        for decision in decisions
        for one in decision.victims
    }
    return Result(decisions=decisions, plan=Plan(evictions=list(evictions.values()), placements=[]))


ENGINE: Engine[Configuration, State] = Engine(
    facts=FACTS,
    rules=(Rule(rule="weaker", sentence="It is weaker than the ask.", source="Arbiter"),),
    configure=_configure,
    load=_load,
    plan=_plan,
)


def _export(configuration: Configuration) -> Exported:
    return dump([{"lines": [queue.name for queue in configuration.queues]}], Lost())


def _is_own(document: Any) -> bool:
    return isinstance(document, dict) and "lines" in document


def _read(documents: list[tuple[Path, Any]], findings: Findings, known: Configuration | None) -> Imported:
    names = [name for _, document in documents for name in document["lines"]]
    own = Configuration(engine="toy", queues=[Queue(name=name) for name in names])
    return Imported(own if known is None else known, State(), [], findings.all())


SYSTEM: Final = System(
    facts=FACTS, export=_export, keys=("lines",), is_own=_is_own, read_own=_read,
    owns=lambda documents: all(_is_own(document) for _, document in documents),
)  # fmt: skip
