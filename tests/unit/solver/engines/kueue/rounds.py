"""Cycles fed back: who is admitted starts, victims ask again with the age they had, whoever preempted asks again, each
with what the cycle left behind for it."""

from typing import Any

from tests.unit.solver.engines.kueue.cluster import at, decide, victims

Json = dict[str, Any]
Move = tuple[list[str], list[str]]
"""Who started in a cycle, and who stopped."""


def cycles(of: Json, running: list[Json], waiting: list[Json], most: int) -> list[Move]:
    """What moved in each cycle until nothing does, or for ``most`` cycles. ``running`` and ``waiting`` are changed to
    what they are in the end."""
    moves: list[Move] = []
    for cycle in range(most):
        answer = decide(of, running, waiting, mode="cycle")
        decisions = [answer["decisions"][name] for name in answer["order"]]
        started = [d["ask"] for d in decisions if d["outcome"] == "admit"]
        stopped = [name for d in decisions for name in victims(d)]
        if not started and not stopped:
            return moves
        moves.append((started, stopped))
        back = [_as_ask(work) for work in running if work["id"] in stopped]
        running[:] = [work for work in running if work["id"] not in stopped]
        running += [
            _bare(ask) | {"started_at": at(f"{13 + cycle // 60}:{cycle % 60:02}")}
            for ask in waiting
            if ask["id"] in started
        ]
        left = {d["ask"]: {"kueue": d["kueue"]} for d in decisions if "kueue" in d}
        waiting[:] = [_bare(ask) | left.get(ask["id"], {}) for ask in waiting if ask["id"] not in started] + back
    return moves


def _bare(ask: Json) -> Json:
    """Without what a cycle left behind."""
    return {key: value for key, value in ask.items() if key != "kueue"}


def _as_ask(work: Json) -> Json:
    return {key: value for key, value in work.items() if key != "started_at"}
