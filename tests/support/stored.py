"""What tests of stored share with those beside them."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from app.answering.answers import Answered, Facts
from app.decisions.log import Entry
from app.solver.model.decision import ConfigurationUsed

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


ID = UUID(int=7)


Json = dict[str, Any]


def facts(now: int = 5, **more: Any) -> Facts:
    own: Json = {
        "engine": "kueue", "configuration": ConfigurationUsed(name="main", revision=3, digest="c"),
        "state_digest": "s", "asks": ["a", "b\0"], "outcomes": ["preempt", "wait"], "reasons": ["", ""],
        "evicted": ["x\0", "y"], "victims": {"reclaim": 2, "other": 1}, "queues": ["q\0"], "workloads": ["a", "w\0"],
        "spared": ["z\0"], "pods": ["p\0"], "stops": [("q\0", "p", "r", 2)],
        "evictions": [("a", "x"), ("a", "y")],
    }  # fmt: skip
    return Facts(now=now, **(own | more))


def entry(of: Facts, **more: Any) -> Entry:
    answered = Answered(body=b"the answer", facts=of, seconds={"decode": 0.25})
    return Entry(ID, NOON, b"the request", answered, **more)
