"""A plan as people read it."""

from collections.abc import Iterator

import msgspec

from app.answering.plan_bodies import PlanAnswer, PlannedWork, QueueChange
from app.cli import report
from app.cli.output import say, table
from app.cli.report import amount
from app.solver.model.base import Quantity
from app.solver.model.decision import Answer, Decision


def plan(answer: PlanAnswer) -> None:
    """Each object with its outcome; each ask with who stops for it and what would let it in, asks that fare alike told
    once; then queues before and after."""
    header = ("OBJECT", "QUEUE", "PRIORITY", "PODS", "ASKS FOR", "OUTCOME")
    table(header, (_work(work) for work in answer.work), indent="")
    say()
    shown: list[Decision] = []
    for work in answer.work:
        told, alike = _told(answer, work)
        shown += told
        if alike:
            say(f"{work.object}: {len(work.asks)} asks, {alike} of them fare like those below")
    report.answer(
        Answer(
            engine=answer.engine, configuration=answer.configuration, state=answer.state, decisions=shown,
            plan=answer.plan,
        ),
        why=True,
    )  # fmt: skip
    if answer.queues:
        table(
            ("QUEUE", "RESOURCE", "GUARANTEED", "LIMIT", "USED", "THEN", "FAIR SHARE", "THEN", "SHARE", "THEN"),
            [row for change in answer.queues for row in _rows(change)],
            indent="",
        )


def _told(answer: PlanAnswer, work: PlannedWork) -> tuple[list[Decision], int]:
    """The decisions of an object that differ, without their steps, and how many are like those."""
    of = set(work.asks)
    seen: set[tuple[str, bool]] = set()
    shown: list[Decision] = []
    for decision in answer.decisions:
        kind = (decision.outcome, bool(decision.victims))
        if decision.ask in of and (decision.victims or kind not in seen):
            seen.add(kind)
            shown.append(_brief(decision))
    return shown, len(of) - len(shown)


def _brief(decision: Decision) -> Decision:
    why = decision.explanation
    brief = None if why is None else msgspec.structs.replace(why, steps=[], groups=None, candidates=None)
    return msgspec.structs.replace(decision, explanation=brief)


def _work(work: PlannedWork) -> tuple[str, ...]:
    asks = ", ".join(f"{name} {_shown(value)}" for name, value in work.requests.items())
    return work.object, work.queue, str(work.priority), str(work.pods), asks, work.outcome


def _rows(change: QueueChange) -> Iterator[tuple[str, ...]]:
    share = (_shown(change.share_before), _shown(change.share_after))
    for i, (name, of) in enumerate(change.resources.items()):
        numbers = (of.guaranteed, of.limit, of.used_before, of.used_after, of.fair_share_before, of.fair_share_after)
        yield change.queue if i == 0 else "", name, *map(_shown, numbers), *(share if i == 0 else ("", ""))


def _shown(value: Quantity | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    rounded = round(value, 4)
    return amount(int(rounded) if rounded == int(rounded) else rounded)
