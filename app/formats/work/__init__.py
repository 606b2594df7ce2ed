"""Work that does not run yet, as asks: which objects start which pods, and what a system makes of them.

``kinds`` says what is known, as data; ``read`` and ``pod_sets`` read objects by it; a module a system groups pods into
asks.
"""

from app.formats.work import spark
from app.formats.work import spark as nested
from app.formats.work.read import Special

SPECIAL: dict[str, Special] = {
    "sparkoperator.k8s.io/SparkApplication": spark.pod_sets,
    "workload.codeflare.dev/AppWrapper": nested.app_wrapper,
    "trainer.kubeflow.org/TrainJob": nested.train_job,
}
"""Kinds whose pods are no templates of the object itself, by full name."""
