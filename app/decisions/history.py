"""What the log says of one workload: who stopped it, what spared it, and what became of its own asks."""

from collections.abc import Sequence
from uuid import UUID

import msgspec
from sqlalchemy import RowMapping

from app.decisions import repository
from app.decisions.kept.content import unsqueezed
from app.decisions.repository import Mentions
from app.decisions.schemas import Asked, Spared, Stop, WorkloadEvent, WorkloadHistory
from app.http.pages import encode_cursor
from app.solver.model.decision import ConfigurationUsed, Decision, Plan, PlannedEviction, ProposalVerdict, Victim
from app.solver.model.instant import at


class _Answer(msgspec.Struct, frozen=True):
    """The parts of an answer that tell of workloads."""

    decisions: list[Decision]
    plan: Plan
    proposals: list[ProposalVerdict] = []


def history(workload: str, found: Mentions, limit: int) -> WorkloadHistory:
    """``found`` as its page; it may have one row more than ``limit``, which says that there is another page."""
    rows = found.rows[:limit]
    more = encode_cursor(str(rows[-1]["id"])) if len(found.rows) > limit else None
    return WorkloadHistory(
        workload=workload,
        stopped=found.stopped,
        asked=found.asked,
        items=[_event(row, repository.storable(workload)) for row in rows],
        next_cursor=more,
    )


def _event(row: RowMapping, workload: str) -> WorkloadEvent:
    answer = msgspec.json.decode(unsqueezed(row["answer"]), type=_Answer)
    asks: Sequence[str] = row["asks"]
    of: Sequence[str] = row["workloads"] or asks
    mine = [d for d, ask, owner in zip(answer.decisions, asks, of, strict=True) if workload in (ask, owner)]
    identity: UUID = row["id"]
    return WorkloadEvent(
        decision=identity,
        created_at=row["created_at"],
        now=at(row["now"]),
        engine=row["engine"],
        configuration=ConfigurationUsed(
            name=row["configuration_name"], revision=row["configuration_revision"], digest=row["configuration_digest"]
        ),
        actor=row["actor"],
        stopped=_stops(answer, workload),
        asked=[_asked(decision) for decision in mine],
        spared=_spared(answer, workload, asks[0] if asks else None),
    )


def _stops(answer: _Answer, workload: str) -> list[Stop]:
    """The workload's evictions; one that several asks, each alone, would cause is told for each."""
    plans = [answer.plan, *(d.plan for d in answer.decisions if d.plan is not None)]
    victims = {(d.ask, v.workload, v.task): v for d in answer.decisions for v in d.victims}
    found: dict[tuple[str | None, str | None], Stop] = {}
    for plan in plans:
        for eviction in plan.evictions:
            if repository.storable(eviction.workload) == workload:
                victim = victims.get((eviction.for_ask or "", eviction.workload, eviction.task))
                found.setdefault((eviction.for_ask, eviction.task), _stop(eviction, victim))
    return list(found.values())


def _stop(eviction: PlannedEviction, victim: Victim | None) -> Stop:
    return Stop(
        task=eviction.task, queue=eviction.queue, node=eviction.node, reason=eviction.reason,
        message=None if victim is None else victim.message, for_ask=eviction.for_ask,
    )  # fmt: skip


def _spared(answer: _Answer, workload: str, ask: str | None) -> list[Spared]:
    return [
        Spared(task=one.task, node=verdict.node, rule=one.rule, message=one.detail, for_ask=ask)
        for verdict in answer.proposals
        for one in verdict.refusals
        if repository.storable(one.workload) == workload
    ]


def _asked(decision: Decision) -> Asked:
    first = decision.conditions[0] if decision.conditions else None
    return Asked(
        ask=decision.ask, outcome=decision.outcome, reason=first and first.reason, message=first and first.message
    )
