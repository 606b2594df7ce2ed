"""What Kueue's Workload objects say beside their pods."""

from typing import Any

import pytest

from app.solver.model.kueue import Ask
from tests.support.kubernetes import read
from tests.support.kueue_names import made

SHORT = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed"


def waiting(message: str) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "resources": {"requests": {"cpu": 1}}}]}
    condition = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "w", "namespace": "team"},
        "spec": {"queueName": "local", "podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}]},
        "status": {"conditions": [condition]},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("message", "carried"),
    [
        (SHORT, None),
        (f"{SHORT}. Pending the preemption of 2 workload(s)", Ask(preemption_pending=True)),
        (
            "Workload has overlapping preemption targets with another workload, but will fit after these preemptions "
            "complete",
            Ask(preemption_pending=True),
        ),
        ("Workload has overlapping preemption targets with another workload", None),
    ],
)
def test_who_waits_for_its_victims_is_known_by_what_the_scheduler_says_of_it(message: str, carried: Ask | None) -> None:
    local = {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "spec": {"clusterQueue": "a"},
        "metadata": {"name": "local", "namespace": "team"},
    }  # fmt: skip
    open_to_all = made("ClusterQueue", "a") | {"spec": {"namespaceSelector": {}}}
    (ask,) = read(open_to_all, local, waiting(message)).asks
    assert ask.kueue == carried
