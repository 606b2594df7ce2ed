"""Manifests that use every field, and the format of each."""

from tests.support.live import ROOT

MANIFESTS = ROOT / "tests" / "manifests"
FORMATS = {
    "kueue-v1beta2.yaml": "kueue",
    "kueue-v1beta1.yaml": "kueue",
    "kueue-workloads.json": "kubernetes",
    "yunikorn-queues.yaml": "yunikorn",
    "yunikorn-cluster.yaml": "kubernetes",
    "yunikorn-dump.json": "kubernetes",
    "kai-queues.yaml": "kai",
    "kai-scheduler-config.yaml": "kai",
    "kai-cluster.yaml": "kubernetes",
    "kube-scheduler-cluster.yaml": "kubernetes",
    "ytsaurus-pools.yaml": "ytsaurus",
    "ytsaurus-cypress.json": "ytsaurus",
}
