"""What KAI and YuniKorn themselves say of why work waits, as the objects of a cluster have it."""

from typing import Any

import pytest

from app.solver.model.state import PendingReason
from tests.support.kubernetes import read

SINCE = "2026-11-22T09:00:00+00:00"
KAI_QUEUE = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "q"}, "spec": {}}


def kai(*conditions: dict[str, Any], backoff: int | None = None, pool: str | None = None) -> PendingReason | None:
    """Of a group of one pending pod."""
    labels = {} if pool is None else {"kai.scheduler/node-pool": pool}
    spec: dict[str, Any] = {"queue": "q"} | ({} if backoff is None else {"schedulingBackoff": backoff})
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ns", "labels": labels}, "spec": spec,
        "status": {"schedulingConditions": list(conditions)},
    }  # fmt: skip
    pod = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "annotations": {"pod-group-name": "g"}},
        "spec": {"schedulerName": "kai-scheduler", "containers": []}, "status": {"phase": "Pending"},
    }  # fmt: skip
    shard = {
        "apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {"name": "s"},
        "spec": {} if pool is None else {"partitionLabelValue": pool},
    }  # fmt: skip
    queue = {**KAI_QUEUE, "metadata": {"name": "q", "labels": labels}}
    found = read(queue, group, pod, shard)
    assert [one for one in found.findings if one.pointer.startswith("/items/1")] == [], "all of the group is read"
    (ask,) = found.asks
    return ask.pending_reason


def failed(number: int, pool: str = "default", **more: Any) -> dict[str, Any]:
    return {
        "type": "UnschedulableOnNodePool", "nodePool": pool, "reason": "Unschedulable", "message": f"try {number}",
        "transitionID": str(number), "lastTransitionTime": SINCE, "status": "True", **more,
    }  # fmt: skip


def test_kai_says_why_it_last_could_not() -> None:
    assert kai() is None
    said = kai(failed(2), failed(10), failed(9))
    assert said is not None
    assert (said.reason, said.message, said.tried_again) == ("Unschedulable", "try 10", True)
    assert said.since is not None
    assert said.since.isoformat() == SINCE
    reasons = [
        {"reason": "OverLimit", "message": "Queue q has its limit of 4 GPUs"},
        {"reason": "NonPreemptibleOverQuota"},
    ]
    said = kai(failed(1, reasons=reasons))
    assert said is not None
    assert (said.reason, said.message) == ("OverLimit", "Queue q has its limit of 4 GPUs")
    said = kai({"nodePool": "default"})
    assert said is not None
    assert (said.reason, said.message, said.since) == ("Unschedulable", "KAI could not schedule it", None)


@pytest.mark.parametrize(
    ("backoff", "pool", "last", "tried_again"),
    [
        (None, None, "default", True),
        (-1, None, "default", True),
        (1, None, "default", False),
        (1, "a100", "default", True),
        (1, "a100", "a100", False),
        (1, None, "a100", True),
    ],
)
def test_a_group_that_backs_off_is_left_out_of_the_pool_where_it_failed(
    backoff: int | None, pool: str | None, last: str, tried_again: bool
) -> None:
    """KAI: isPodGroupUpForScheduler."""
    said = kai(failed(1, "other"), failed(2, last), backoff=backoff, pool=pool)
    assert said is not None
    assert said.tried_again is tried_again


def yunikorn(*conditions: dict[str, Any], **spec: Any) -> PendingReason | None:
    made = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "labels": {"applicationId": "a"}},
        "spec": {"schedulerName": "yunikorn", "containers": [], **spec},
        "status": {"phase": "Pending", "conditions": list(conditions)},
    }  # fmt: skip
    (ask,) = read(made).asks
    return ask.pending_reason


def test_yunikorns_shim_says_that_a_quota_is_used_up_or_no_node_takes_it() -> None:
    def scheduled(**fields: Any) -> dict[str, Any]:
        return {"type": "PodScheduled", "status": "False", "lastTransitionTime": SINCE, **fields}

    assert yunikorn() is None
    assert yunikorn({"type": "Ready", "status": "False", "reason": "x"}) is None
    assert yunikorn(scheduled(status="True", reason="x")) is None
    assert yunikorn(scheduled()) is None
    said = yunikorn(
        {"type": "Ready", "status": "False"}, scheduled(reason="SchedulingSkipped", message="quota of root.a")
    )
    assert said is not None
    assert (said.reason, said.message, said.tried_again) == ("SchedulingSkipped", "quota of root.a", True)
    said = yunikorn(scheduled(reason="SchedulingSkipped"))
    assert said is not None
    assert said.message == "The quota of its queue is used up"
    said = yunikorn(scheduled(reason="Unschedulable", message=""))
    assert said is not None
    assert said.message == "No node has room for it"
    said = yunikorn(scheduled(reason="Other"))
    assert said is not None
    assert said.message == "YuniKorn says no more"
