"""One question: every ask on its own board, or one scheduling cycle over all of them."""

from typing import Any

from app.solver.engine import Question
from app.solver.engines.yunikorn.compile.state import Cluster
from app.solver.engines.yunikorn.decide.ask import Context, apply, decide
from app.solver.engines.yunikorn.decide.outcome import Outcome
from app.solver.engines.yunikorn.decide.overlay import Board
from app.solver.engines.yunikorn.decide.record import Silent
from app.solver.engines.yunikorn.decide.request import Request, check_asks, requests_of
from app.solver.engines.yunikorn.report import answer as report
from app.solver.engines.yunikorn.report.comparison import compare
from app.solver.engines.yunikorn.report.explain import recorder
from app.solver.model.decision import Decision, Placement, Result, plan_of
from app.solver.model.state import Ask
from app.solver.stopping import safe_point


def plan(cluster: Cluster, question: Question) -> Result:
    """Decide every ask. Raises InvalidInput for asks that YuniKorn can't take."""
    check_asks(cluster, question.asks)
    options = question.options.yunikorn
    context = Context(question.now, options is None or options.node_choice == "scored")
    cycle = question.mode == "cycle"
    board = Board(cluster)
    asks = sorted(question.asks, key=lambda ask: _turn(cluster, ask)) if cycle else question.asks
    decisions: dict[str, Decision] = {}
    placements: dict[str, list[Placement]] = {}
    notes: dict[str, Any] = {}
    cancelled: list[dict[str, str]] = []
    for turn, ask in enumerate(asks):
        if turn and not cycle:
            board = Board(cluster)
        record = recorder(question.why())
        board, outcomes = _units(board, requests_of(cluster, ask), context, record)
        decisions[ask.id] = report.decision(board, ask, outcomes, question.now, record)
        waits = decisions[ask.id].outcome == "wait"
        placements[ask.id] = [] if waits else report.placements(board, ask, outcomes)
        notes[ask.id] = report.carried(outcomes[-1][0], outcomes[-1][1], question.now)
        cancelled += [one for _, outcome in outcomes for one in report.cancelled(board, outcome.cancelled)]
    found = [decisions[ask.id] for ask in question.asks]
    evictions = plan_of([decisions[ask.id] for ask in asks])
    return Result(
        decisions=found,
        order=[ask.id for ask in asks] if cycle else None,
        plan=type(evictions)(evictions=evictions.evictions, placements=[p for ask in asks for p in placements[ask.id]]),
        notes={"asks": notes, "cancelled_reservations": cancelled},
    )


def _units(
    board: Board, requests: list[Request], context: Context, record: Silent
) -> tuple[Board, list[tuple[Request, Outcome]]]:
    """The allocation asks of one ask, each seeing what the ones before took; all of them, or nobody is evicted."""
    trial = board if len(requests) == 1 else board.copy()
    outcomes: list[tuple[Request, Outcome]] = []
    for request in requests:
        safe_point()
        outcome = decide(trial, request, context, record)
        record.decided(trial, request, outcome)
        if record.on:
            compare(trial, request, context, outcome, record)
        outcomes.append((request, outcome))
        if outcome.kind == "wait" and len(requests) > 1:
            return board, outcomes[-1:]
        apply(trial, request, outcome)
    return trial, outcomes


def _turn(cluster: Cluster, ask: Ask) -> tuple[int, int, str]:
    """The order of a cycle: priority as the root sees it, then age, then id."""
    request = requests_of(cluster, ask)[0]
    priority = request.priority
    for q in cluster.queues.paths[request.queue]:
        settings = cluster.queues.settings[q]
        priority = settings.priority_offset if settings.priority_fence else priority + settings.priority_offset
    return -priority, request.created, ask.id
