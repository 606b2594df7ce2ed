"""Queues before a plan and when it is carried out."""

from collections.abc import Mapping
from typing import Any

from app.answering.plan_bodies import QueueChange, ResourceChange
from app.answering.planning.rounds import Settled
from app.solver import solve
from app.solver.model.base import Quantity
from app.solver.model.configuration import Queue, Quota
from app.solver.model.quantity import UNLIMITED, parse, scale_of, units
from app.solver.model.request import Options
from app.solver.model.state import Ask
from app.solver.quotas import quotas
from app.solver.solve import Loaded

_SHARES = ("precise_share", "share", "dominant_usage_share")
_Shares = Mapping[str, dict[str, Any]]


def changes(
    loaded: Loaded, waiting: list[Ask], new: list[Ask], settled: Settled, now: int, options: Options
) -> list[QueueChange]:
    """The queues that use more or less in the end, and those that ``new`` asks for, in the order of the answer to a
    question for shares. ``waiting``: what waits besides."""
    before: _Shares = solve.shares(loaded, waiting, now, options)["queues"]
    after: _Shares = before
    if settled.after is not loaded:
        after = solve.shares(settled.after, settled.left, now, options)["queues"]
    asked: dict[str, set[str]] = {}
    for ask in new:
        asked.setdefault(ask.queue, set()).update(name for task in ask.tasks for name in task.requests)
    queues = {queue.name: queue for queue in loaded.configured.configuration.queues}
    made = (_change(name, queues.get(name), before, after, asked.get(name, set())) for name in after)
    return [change for change in made if change is not None]


def _change(name: str, queue: Queue | None, before: _Shares, after: _Shares, asked: set[str]) -> QueueChange | None:
    old, new = before.get(name, {}), after[name]
    used_before, used_after = old.get("usage", {}), new.get("usage", {})
    resources = sorted(
        r for r in {**used_before, **used_after} if r in asked or used_before.get(r, 0) != used_after.get(r, 0)
    )
    if not resources:
        return None
    share = next((key for key in _SHARES if key in old and key in new), None)
    return QueueChange(
        queue=name,
        resources={
            r: ResourceChange(
                guaranteed=_guaranteed(queue, r),
                limit=_limit(queue, r),
                used_before=used_before.get(r, 0),
                used_after=used_after.get(r, 0),
                fair_share_before=old.get("fair_share", {}).get(r),
                fair_share_after=new.get("fair_share", {}).get(r),
            )
            for r in resources
        },
        share_before=None if share is None else old[share],
        share_after=None if share is None else new[share],
    )


def _guaranteed(queue: Queue | None, resource: str) -> Quantity | None:
    """All flavors together; a flavor without a guarantee adds nothing."""
    listed = [quota.guaranteed for quota in _quotas(queue, resource) if quota.guaranteed is not None]
    return _total(listed, resource) if listed else None


def _limit(queue: Queue | None, resource: str) -> Quantity | None:
    """All flavors together; where one of them has no limit there is none."""
    listed = [quota.limit for quota in _quotas(queue, resource)]
    bounded = [limit for limit in listed if limit is not None]
    return _total(bounded, resource) if bounded and len(bounded) == len(listed) else None


def _quotas(queue: Queue | None, resource: str) -> list[Quota]:
    return [one.quota for one in (quotas(queue) if queue else ()) if _same(one.resource, resource)]


def _same(one: str, other: str) -> bool:
    """Whether two names mean one resource: an engine that shows ``gpu`` counts what a queue calls
    ``nvidia.com/gpu``."""
    return one == other or (one.endswith("/gpu") and other == "gpu") or (other.endswith("/gpu") and one == "gpu")


def _total(given: list[Quantity], resource: str) -> Quantity:
    """The sum in whole units; ``unlimited`` where one of them is."""
    if UNLIMITED in given:
        return UNLIMITED
    return units(sum(parse(value, scale_of(resource)) for value in given), resource)
