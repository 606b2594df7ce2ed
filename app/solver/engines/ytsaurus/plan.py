"""From a question to heartbeats, and from what they did to decisions and a plan.

``cycle``: one fair share update with all asks pending, then heartbeats that see one another's work.
``independent``: each ask as if it were the only pending work, with heartbeats of its own.
"""

from collections.abc import Sequence

from app.solver.engines.ytsaurus.compile.rule_sets import Difference
from app.solver.engines.ytsaurus.compile.state import CompiledState
from app.solver.engines.ytsaurus.decide.cycle import heartbeats
from app.solver.engines.ytsaurus.decide.overlay import Overlay
from app.solver.engines.ytsaurus.decide.prepare import prepare
from app.solver.engines.ytsaurus.report.answer import Answered, answer
from app.solver.engines.ytsaurus.report.waiting import Waiting, tried_preemption
from app.solver.engines.ytsaurus.report.what_if import differences
from app.solver.model.decision import Plan, Result, each_alone
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.state import Ask
from app.solver.question import Question
from app.solver.stopping import safe_point

_MOST_WORK = 100_000_000
"""Asks times elements of a state that mode independent takes on: some two minutes."""
_MOST_NODES_COMPARED = 500
"""With more heartbeats than this an explanation doesn't say which rule difference decided: it takes deciding again."""


def plan(cluster: CompiledState, question: Question) -> Result:
    """Answer a decision question. Raises InvalidInput."""
    nodes = _nodes(cluster, question)
    alone = question.mode == "independent" and question.asks
    if alone:
        _refuse_endless_work(cluster, len(question.asks))
    groups = [[ask] for ask in question.asks] if alone else [question.asks]
    runs = [_run(cluster, asks, nodes, question) for asks in groups]
    if alone:
        return each_alone(
            [(run.decisions[0], Plan(evictions=run.evictions, placements=run.placements)) for run in runs]
        )
    (run,) = runs
    cycle = question.mode == "cycle"
    return Result(
        decisions=run.decisions,
        order=run.order if cycle else None,
        plan=Plan(evictions=run.evictions, placements=run.placements),
        notes=run.notes if cycle else None,
    )


def _refuse_endless_work(cluster: CompiledState, asks: int) -> None:
    """Fair shares anew for every ask: on a large tree that is for a few hundred of them, not for all that wait."""
    size = len(cluster.operations) + len(cluster.config.tree) + len(cluster.allocations) + len(cluster.node_index)
    if asks > 1 and asks * size > _MOST_WORK:
        detail = f"{asks} asks are too many to decide one by one on {size} elements: use mode cycle, or fewer at once"
        raise InvalidInput([Problem(pointer="/asks", detail=detail)])


def _run(cluster: CompiledState, asks: Sequence[Ask], nodes: Sequence[int], question: Question) -> Answered:
    safe_point()
    overlay = Overlay(prepare(cluster, asks))
    if question.explain != "none":
        overlay.log = []
    tried = tried_preemption(overlay, nodes, question.now)
    heard = heartbeats(overlay, nodes, question.now)
    found: list[list[Difference]] | None = None
    if overlay.log is not None and len(nodes) <= _MOST_NODES_COMPARED:
        found = differences(cluster, asks, nodes, question, overlay)
    waiting = Waiting(overlay, asks, heard, tried)
    return answer(overlay, asks, waiting, found, question)


def _nodes(cluster: CompiledState, question: Question) -> list[int]:
    options = question.options.ytsaurus
    name = None if options is None else options.heartbeat_node
    if name is None:
        return list(range(len(cluster.node_index)))
    if name not in cluster.node_index:
        raise InvalidInput([Problem(pointer="/options/ytsaurus/heartbeat_node", detail=f"no node {name!r}")])
    return [cluster.node_index[name]]
