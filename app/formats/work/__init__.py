"""Work that does not run yet, as asks: which objects start which pods, and what a system makes of them.

``kinds`` says what is known, as data, and reads pod sets by it, ``spark`` those of kinds without templates of their
own; ``read`` reads objects; ``kueue`` and ``pods`` group pods into asks, as each system does.
"""

from app.formats.work import read
from app.formats.work.read import Special

SPECIAL: dict[str, Special] = {
    "sparkoperator.k8s.io/SparkApplication": read.pod_sets,
    "workload.codeflare.dev/AppWrapper": read.app_wrapper,
    "trainer.kubeflow.org/TrainJob": read.train_job,
}
"""Kinds whose pods are no templates of the object itself, by full name."""
