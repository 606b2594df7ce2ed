"""Whether a pod set may use a flavor at all: taints, tolerations, node selector, required node affinity.

Kueue asks this as if the flavor were a node with the flavor's labels and taints. Only label keys that the flavor
itself carries count: a selector or expression on any other key says nothing about it.
"""

from collections.abc import Sequence

from app.solver import kubernetes
from app.solver.model.configuration import Flavor
from app.solver.model.state import Expression, Task


def refusal(flavor: Flavor, task: Task) -> str | None:
    """Why ``task`` can't use ``flavor``, or None when it can."""
    taint = kubernetes.untolerated(flavor.node_taints, task.tolerations or ())
    if taint is not None:
        return f"untolerated taint {taint.key}={taint.value}:{taint.effect} in flavor {flavor.name}"
    labels = flavor.node_labels
    for key, value in (task.node_selector or {}).items():
        if key in labels and labels[key] != value:
            return f"flavor {flavor.name} has {key}={labels[key]}, the node selector asks for {value}"
    terms = _relevant_terms(task.node_affinity or (), labels)
    if terms and not kubernetes.matches_any(terms, labels):
        return f"flavor {flavor.name} doesn't match the required node affinity"
    return None


def _relevant_terms(terms: Sequence[Sequence[Expression]], labels: dict[str, str]) -> list[list[Expression]]:
    """The terms cut down to keys that the flavor labels. A term left empty matches anything, and terms are
    alternatives, so it voids them all (Kueue: flavorSelector)."""
    out: list[list[Expression]] = []
    for term in terms:
        kept = [e for e in term if e.key in labels]
        if not kept:
            return []
        out.append(kept)
    return out
