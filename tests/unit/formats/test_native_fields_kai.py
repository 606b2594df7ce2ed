"""Each field of KAI Scheduler's objects that decisions depend on, with another value: the import is another, or says
why not."""

from typing import Any

import pytest

from tests.support.native_fields import fields, unused

Json = dict[str, Any]
AMOUNTS: Json = {name: {"quota": 3, "limit": 5, "overQuotaWeight": 1} for name in ("cpu", "memory", "gpu")}
SOURCE: list[Json] = [
    {
        "apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {"name": "default"},
        "spec": {"minRuntime": {"preemptMinRuntime": "5m", "reclaimMinRuntime": "5m"}},
    },
    {
        "apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "team"},
        "spec": {"parentQueue": "top", "priority": 100, "resources": AMOUNTS},
    },
    {
        "apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "top"},
        "spec": {"resources": AMOUNTS},
    },
    {
        "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "g", "namespace": "n"},
        "spec": {"queue": "team", "minMember": 1, "priorityClassName": "train", "preemptibility": "preemptible"},
    },
    {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "annotations": {"pod-group-name": "g"}},
        "spec": {"schedulerName": "kai-scheduler", "containers": [{"resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]},
    },
]  # fmt: skip
OTHER: Json = {
    "spec.parentQueue": "", "spec.priority": 200, "spec.preemptMinRuntime": "7m", "spec.reclaimMinRuntime": "7m",
    "spec.queue": "top", "spec.minMember": 2, "spec.priorityClassName": "inference",
    "spec.preemptibility": "non-preemptible", "spec.actions": {"reclaim": {"enabled": False}},
    "spec.args": {"use-scheduling-signatures": "false"}, "spec.minRuntime.preemptMinRuntime": "7m",
    "spec.minRuntime.reclaimMinRuntime": "7m", "spec.partitionLabelValue": "pool",
    **{f"spec.resources.{name}.{of}": 4 for name in AMOUNTS for of in AMOUNTS[name]},
}  # fmt: skip


@pytest.mark.parametrize(("kind", "path"), fields("kai"))
def test_another_value_is_another_decision_or_a_finding(kind: str, path: str) -> None:
    assert unused("kai", SOURCE, kind, path, OTHER[path]) is None
