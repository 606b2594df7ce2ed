"""kube-scheduler's default preemption, as released in Kubernetes 1.37."""

from typing import Final

from app.solver.engine import Entitlement, Facts

FACTS: Final = Facts(
    name="kube-scheduler", title="kube-scheduler", short="kube-scheduler", schema="KubeScheduler",
    releases={"1.37": "Kubernetes 1.37.2"},
    places=True, tasks_are_pods=True, queues_nest=False, quotas=False, weights=False, pod_by_pod=True, draws=True,
    proposes=True,
    formats="app.formats.kube_scheduler.system",
    entitlement=Entitlement(word="promised", field="fair_share", above="Used"),
)  # fmt: skip
