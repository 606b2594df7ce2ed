"""Work that does not run yet, as asks: which objects start which pods, and what a system makes of them.

``kinds`` says what is known, as data, and reads pod sets by it; ``read`` those of kinds without templates of their own,
and objects; ``kueue`` and ``pods`` group pods into asks, as each system does.
"""

from collections.abc import Callable
from typing import Any

from app.base.documents import Path
from app.formats.pods import read_pod_spec
from app.formats.work import read
from app.formats.work.kinds import ReadSpec, Work
from app.formats.work.read import Cluster, Planned, Special, read_work

SPECIAL: dict[str, Special] = {
    "sparkoperator.k8s.io/SparkApplication": read.pod_sets,
    "workload.codeflare.dev/AppWrapper": read.app_wrapper,
    "trainer.kubeflow.org/TrainJob": read.train_job,
}
"""Kinds whose pods are no templates of the object itself, by full name."""


def planner(
    planned: Callable[[list[Work], Cluster], list[Planned]], read: ReadSpec = read_pod_spec, *, by_kueue: bool = False
) -> Callable[[list[tuple[Path, Any]], Cluster, str], list[Planned]]:
    """What a system on Kubernetes makes of objects. ``read``: reads the specs of pods as the system does; ``by_kueue``:
    Kueue fills in what is left out of pods, before the API server does."""

    def plan(documents: list[tuple[Path, Any]], cluster: Cluster, namespace: str) -> list[Planned]:
        beside = cluster.beside
        beside.read_spec, beside.admission.kueue = read, by_kueue
        return planned(read_work(documents, beside, cluster.findings, namespace=namespace, special=SPECIAL), cluster)

    return plan
