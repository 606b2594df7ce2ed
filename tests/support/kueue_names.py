"""What tests of kueue names share with those beside them."""

from typing import Any


def made(kind: str, name: str, parent: str | None = None) -> dict[str, Any]:
    field = "parentName" if kind == "Cohort" else "cohortName"
    spec = {field: parent} if parent else {}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}
