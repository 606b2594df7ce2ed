"""The released kube-scheduler (``tests/cluster/modules/kubernetes/oracle``) asked for a decision, and how the engine's
answer differs from its own, where that is not chance."""

import json
import signal
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from app.solver.model.decision import Answer, Decision
from tests.cluster.build import oracle as program
from tests.support.mortal import mortal

Json = dict[str, Any]
_AGAIN = 40
"""How often it is asked where pods of one group come in the order of a map."""


class Oracle:
    """A running one: a request in, an answer out."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def decisions(self, body: Json) -> list[Json]:
        """In its order. ``repeat`` in the body: how often preemption runs, of which the last is in ``seconds``. Raises
        AssertionError with what it says is wrong."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(body) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["decisions"]


@contextmanager
def running() -> Generator[Oracle]:
    """One, as long as it is needed."""
    with mortal([program()], signal.SIGKILL, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Oracle(process)
        finally:
            process.kill()


def difference(oracle: Oracle, body: Json, answer: Answer) -> str | None:
    """How the answer differs from all that the released code may say; None: it doesn't."""
    first = _difference(body, oracle.decisions(body), answer)
    aware = body["configuration"]["settings"]["kube_scheduler"].get("workload_aware")
    if first is None or not aware:
        return first
    others = (_difference(body, oracle.decisions(body), answer) for _ in range(_AGAIN))
    return first if all(others) else None


def _difference(body: Json, decisions: list[Json], answer: Answer) -> str | None:
    whole = {one["id"] for one in body["state"]["workloads"] if one.get("disruption_mode") == "all"}
    ours = {one.ask: one for one in answer.decisions}
    pods = {one["id"]: len(one["tasks"]) for one in body["asks"]}
    cycle = body["mode"] == "cycle"
    chance = min((one["tied_in"] for one in decisions if one.get("ties")), default=float("inf"))
    for released in sorted(decisions, key=lambda one: one["turn"]):
        if cycle and released["turn"] > chance:
            return None  # what comes after hangs on a choice by chance
        found = ours[released["ask"]]
        if not (released.get("ties") and pods[released["ask"]] > 1):
            for what, theirs, own in _compared(released, found, whole):
                if theirs != own:
                    return f"{found.ask}: {what} is {own}, released: {theirs} ({released.get('message')})"
        if released["outcome"] == "preempt" and found.outcome != "preempt" and cycle:
            return None  # a gang that found room at last is nominated there, and bound here
    return None


def _compared(released: Json, found: Decision, whole: set[str]) -> Iterator[tuple[str, Any, Any]]:
    gone = sorted((one["workload"], one["task"]) for one in released["victims"] or ())
    own = sorted((one.workload, one.task) for one in found.victims)
    placed = released.get("placements")
    if placed and not gone and released["outcome"] == "preempt":
        # All its victims terminate already or none was needed: nobody is told to go.
        count = int(released["message"].split("preempting ")[1].split()[0])
        yield "outcome", "preempt" if count else "admit", found.outcome
        yield "number of victims", count, len(own)
        yield "placements", placed, found.placements
        return
    yield "outcome", released["outcome"], found.outcome
    if placed is not None:
        yield "victims", gone, own
        yield "placements", placed, found.placements or {}
        return
    explained = found.explanation
    ties = set((explained.ties or ()) if explained else ())
    all_of_them = {released["node"], *released["ties"]} if released.get("ties") else set[str]()
    yield "ties", all_of_them, ties
    yield "violations", released["violations"], found.violations or 0
    if found.node not in all_of_them:
        yield "node", released.get("node"), found.node
        listed = [(one.workload, one.task) for one in found.victims]
        yield "victims", sorted(_listed(released)), sorted(listed)
        yield "order of victims", _in_turn(_listed(released), whole), _in_turn(listed, whole)


def _listed(released: Json) -> list[tuple[str, str | None]]:
    return [(one["workload"], one["task"]) for one in released["victims"] or ()]


def _in_turn(victims: list[tuple[str, str | None]], whole: set[str]) -> list[tuple[str, str | None]]:
    """Without the names of pods that are one victim together: they come in the order of a map."""
    return [(workload, None if workload in whole else task) for workload, task in victims]
