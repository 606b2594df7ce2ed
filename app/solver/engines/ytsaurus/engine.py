"""YTsaurus' scheduler: from a question to heartbeats, and from what they did to decisions and a plan."""

from collections.abc import Sequence

import numpy as np

from app.solver.engine import Engine
from app.solver.engines.ytsaurus import FACTS, heartbeat
from app.solver.engines.ytsaurus.answer import Answered, after_shares, answer
from app.solver.engines.ytsaurus.configuration import CompiledConfiguration, compile_configuration
from app.solver.engines.ytsaurus.explain import under
from app.solver.engines.ytsaurus.findings import findings
from app.solver.engines.ytsaurus.heartbeat import quiet_nodes
from app.solver.engines.ytsaurus.overlay import NOBODY, Overlay, Started, Stopped
from app.solver.engines.ytsaurus.preemptibility import effective_settings, preemptibility
from app.solver.engines.ytsaurus.preparation import prepare
from app.solver.engines.ytsaurus.rounds import YtsaurusRounds
from app.solver.engines.ytsaurus.rule_sets import DIFFERENCES, RULE_SETS, Difference, RuleSet
from app.solver.engines.ytsaurus.rules import RULES
from app.solver.engines.ytsaurus.shares import shares
from app.solver.engines.ytsaurus.state import CompiledState, compile_state
from app.solver.engines.ytsaurus.update import update
from app.solver.engines.ytsaurus.waiting import Waiting, tried_preemption
from app.solver.model.decision import Plan, Result, each_alone
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.state import Ask
from app.solver.question import Question
from app.solver.stopping import safe_point


def heartbeats(overlay: Overlay, nodes: Sequence[int], now: int) -> list[int]:
    """Process heartbeats in order until nothing is pending any more; the nodes that were heard."""
    waits = bool(len(overlay.left)) and len(nodes) > 1
    skips = len(nodes) > 1 and overlay.log is None
    quiet = quiet_nodes(overlay, now) if skips else np.zeros(len(overlay.node_usage), bool)
    exceeds = bool(overlay.prepared.situation.pool_limits_tolerance.any())
    row = np.array(nodes, np.int64)
    passed = quiet[row]
    at = 0
    while at < len(row):
        safe_point()
        if passed[at]:
            asked = bool(overlay.left.any()) or not waits
            end = at + 1 if not asked else len(row) if passed[at:].all() else at + int(passed[at:].argmin())
            heartbeat.pass_over(overlay, row[at:end], now)
            at = end
            if not asked:
                break
            continue
        before = len(overlay.started)
        heartbeat.process(overlay, nodes[at], now)
        at += 1
        if waits and not overlay.left.any():
            break
        if skips and exceeds and len(overlay.started) > before and overlay.started[-1].stage != "regular":
            quiet &= quiet_nodes(overlay, now)
            passed = quiet[row]
    return list(nodes[:at])


def differences(
    cluster: CompiledState, asks: Sequence[Ask], nodes: Sequence[int], question: Question, overlay: Overlay
) -> list[list[Difference]]:
    """For each ask the differences between the rule sets that change what becomes of it, found by deciding again."""
    settings = cluster.config.settings
    mine = _outcomes(overlay, len(asks))

    def others(rules: RuleSet) -> list[tuple[list[Started], list[Stopped]]]:
        twin = Overlay(prepare(under(cluster, rules), asks))
        heartbeats(twin, nodes, question.now)
        return _outcomes(twin, len(asks))

    if others(RULE_SETS["shipped" if settings.rules.name == "documented" else "documented"]) == mine:
        return [[] for _ in asks]
    alone = [(difference, others(difference.only(settings.rules))) for difference in DIFFERENCES]
    return [[difference for difference, other in alone if other[i] != mine[i]] for i in range(len(asks))]


def _outcomes(overlay: Overlay, asks: int) -> list[tuple[list[Started], list[Stopped]]]:
    """What becomes of each ask, to compare."""
    wants = overlay.prepared.situation.wants.ask
    out: list[tuple[list[Started], list[Stopped]]] = [([], []) for _ in range(asks)]
    for one in overlay.started:
        out[int(wants[one.want])][0].append(one)
    for one in overlay.stopped:
        if one.want != NOBODY:
            out[int(wants[one.want])][1].append(one)
    return out


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


ENGINE: Engine[CompiledConfiguration, CompiledState] = Engine(
    facts=FACTS,
    rules=RULES,
    configure=compile_configuration,
    load=compile_state,
    update=update,
    plan=plan,
    rounds=YtsaurusRounds,
    shares=shares,
    after_shares=after_shares,
    preemptibility=preemptibility,
    effective_settings=effective_settings,
    findings=findings,
)
"""Pools with strong guarantees and weights, starving operations, preemption at a node's heartbeat."""
