"""A long backlog: what a round looks at is what changed, not everybody who waits."""

from collections import Counter
from typing import Any

import pytest

from app.solver.engines.ytsaurus import crowd
from app.solver.engines.ytsaurus.ahead import Heartbeats
from app.solver.engines.ytsaurus.kinds import Operation
from tests.unit.simulations.running import job, request_for, unseen

NODES = [{"name": f"n{i}", "capacity": {"cpu": 2}} for i in range(2)]
QUEUES = [{"name": name, "quota": {"cpu": {"guaranteed": 1}}} for name in "ab"]


def looks(count: int) -> Counter[str]:
    """How many operations all rounds look at, of so many jobs of which three in four wait."""
    seen: Counter[str] = Counter()

    def counting(patch: pytest.MonkeyPatch, of: Any, name: str, each: Any) -> None:
        method = getattr(of, name)

        def counted(*args: Any) -> Any:
            seen[name] += each(*args)
            return method(*args)

        patch.setattr(of, name, counted)

    with pytest.MonkeyPatch.context() as patch:
        counting(patch, crowd, "moved_on", lambda *_: 1)
        counting(patch, Operation, "__init__", lambda *_: 1)
        counting(patch, Heartbeats, "_least_satisfied", lambda _, able: len(able))
        jobs = [job(f"j{i:04}", "ab"[i % 2], 1, at=4 * i, lasts=60) for i in range(count)]
        told = unseen(request_for({"engine": "ytsaurus", "queues": QUEUES}, jobs, state={"nodes": NODES}))
    assert told.summary is not None
    assert told.summary.rounds > 2 * count
    return seen


def test_rounds_look_at_what_changed_and_not_at_everybody_who_waits() -> None:
    """Twice the jobs are twice the rounds, and twice as many wait in each."""
    few, many = looks(60), looks(120)
    assert few.keys() == many.keys()
    assert all(many[name] < 2.5 * few[name] for name in few), (few, many)
