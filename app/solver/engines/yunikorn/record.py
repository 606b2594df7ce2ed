"""Records of a decision, made where the choice is made; they cost one test when nobody asked for reasons."""

from collections.abc import Iterable, Sequence
from typing import Any

from app.solver.engines.yunikorn.board import Board
from app.solver.engines.yunikorn.cluster import OPTED_OUT, ORIGINATOR
from app.solver.model.trace import Verdict
from app.solver.trace import Why


def excluded(board: Board, fates: Iterable[tuple[int, str]], why: Why) -> None:
    """Every task that is no candidate, with the rule that keeps it."""
    for task, rule in fates:
        _candidate(board, task, "protected", rule, why)


def candidates(board: Board, tasks: Sequence[int], why: Why) -> None:
    """Every candidate; those that are taken in the end are recorded again."""
    for task in tasks:
        _candidate(board, task, "not-needed", "not-reached", why)


def forbidden(board: Board, tasks: Iterable[int], rule: str, why: Why) -> None:
    """Candidates that a law keeps."""
    for task in tasks:
        _candidate(board, task, "protected", rule, why)


def victims(board: Board, tasks: Sequence[int], rule: str, why: Why) -> None:
    """The tasks that go, in the order of taking."""
    for place, task in enumerate(tasks):
        _candidate(board, task, "victim", rule, why, place=place)


def node(board: Board, at: int, taken: Sequence[int], why: Why) -> None:
    """A node that was searched and can make room."""
    name = board.cluster.node_names[at]
    why.step("node", f"{name}: {counted(len(taken), 'victim')}", victims=_names(board, taken), node=name)


def node_out(board: Board, at: int, why: Why) -> None:
    """A node that was searched in vain."""
    name = board.cluster.node_names[at]
    why.step("node-out", f"{name}: what may be preempted there does not make room", node=name)


def counted(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _names(board: Board, tasks: Sequence[int]) -> list[str]:
    return ["/".join(board.cluster.label(task)) for task in tasks]


def _candidate(board: Board, task: int, verdict: Verdict, rule: str, why: Why, place: int | None = None) -> None:
    cluster = board.cluster
    workload, name = cluster.label(task)
    numbers: dict[str, Any] = {
        "priority": int(cluster.priority[task]),
        "opted_out": bool(cluster.flags[task] & OPTED_OUT),
        "originator": bool(cluster.flags[task] & ORIGINATOR),
        "requests": cluster.resources.units(cluster.amounts(task)),
    }
    if place is not None:
        numbers["place"] = place
    why.candidate(
        verdict, rule, workload, task=name, queue=cluster.queue_name(task), node=cluster.tasks[task].node, **numbers
    )
