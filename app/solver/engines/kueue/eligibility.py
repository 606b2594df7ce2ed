"""Whether a pod set may use a flavor at all: taints, tolerations, node selector, required node affinity.

Kueue asks this as if the flavor were a node with the flavor's labels and taints. Only label keys that the flavor
itself carries count: a selector or expression on any other key says nothing about it.
"""

import re
from collections.abc import Iterator, Sequence

from app.solver.model.configuration import Flavor, Taint
from app.solver.model.problems import Problem, pointer
from app.solver.model.state import Expression, Task, Toleration

_BLOCKING = ("NoSchedule", "NoExecute")
_VALUED = ("In", "NotIn")
_ORDERED = ("Gt", "Lt")
_INT64 = 2**63
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")


def refusal(flavor: Flavor, task: Task) -> str | None:
    """Why ``task`` can't use ``flavor``, or None when it can. Expressions must have passed ``problems``."""
    for taint in flavor.node_taints:
        if taint.effect in _BLOCKING and not any(tolerates(t, taint) for t in task.tolerations or ()):
            return f"untolerated taint {taint.key}={taint.value}:{taint.effect} in flavor {flavor.name}"
    labels = flavor.node_labels
    for key, value in (task.node_selector or {}).items():
        if key in labels and labels[key] != value:
            return f"flavor {flavor.name} has {key}={labels[key]}, the node selector asks for {value}"
    terms = _relevant_terms(task.node_affinity or (), labels)
    if terms and not any(all(matches(e, labels) for e in term) for term in terms):
        return f"flavor {flavor.name} doesn't match the required node affinity"
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Kubernetes' rule: an empty effect or key stands for any; ``Exists`` ignores the value."""
    if toleration.effect is not None and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


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


def matches(expression: Expression, labels: dict[str, str]) -> bool:
    """A node selector requirement against labels, with Kubernetes' operators."""
    value = labels.get(expression.key)
    match expression.operator:
        case "In":
            return value is not None and value in expression.values
        case "NotIn":
            return value is None or value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            number, bound = integer(value), integer(expression.values[0])
            if number is None or bound is None:
                return False
            return number > bound if expression.operator == "Gt" else number < bound


def integer(text: str | None) -> int | None:
    """A signed 64-bit decimal, as Kubernetes parses labels for Gt and Lt; None for anything else."""
    if text is None or _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


def problems(task: Task, at: tuple[str | int, ...]) -> Iterator[Problem]:
    """Expressions and tolerations that Kubernetes itself would refuse in a pod; ``at`` points at the task."""
    for i, toleration in enumerate(task.tolerations or ()):
        here = (*at, "tolerations", i)
        if not toleration.key and toleration.operator != "Exists":
            yield Problem(pointer=pointer(*here, "operator"), detail="a toleration without a key needs operator Exists")
        if toleration.operator == "Exists" and toleration.value:
            yield Problem(pointer=pointer(*here, "value"), detail="operator Exists takes no value")
    for i, term in enumerate(task.node_affinity or ()):
        for j, expression in enumerate(term):
            detail = _expression_problem(expression)
            if detail is not None:
                yield Problem(pointer=pointer(*at, "node_affinity", i, j, "values"), detail=detail)


def _expression_problem(expression: Expression) -> str | None:
    if expression.operator in _VALUED:
        return None if expression.values else f"operator {expression.operator} needs at least one value"
    if expression.operator in _ORDERED:
        if len(expression.values) == 1 and integer(expression.values[0]) is not None:
            return None
        return f"operator {expression.operator} needs exactly one integer"
    return f"operator {expression.operator} takes no values" if expression.values else None
