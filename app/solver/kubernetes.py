"""Which nodes a pod may use, as Kubernetes has it: taints and tolerations, node selector, required node affinity.

Source: ``Toleration.ToleratesTaint`` (k8s.io/api/core/v1), ``Requirement.Matches`` (apimachinery's pkg/labels) and
component-helpers' scheduling/corev1/nodeaffinity. The one copy for every engine whose pods are Kubernetes'.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from app.solver.model.configuration import Taint
from app.solver.model.problems import Problem, pointer
from app.solver.model.state import Expression, Node, Task, Toleration

HOSTNAME = "kubernetes.io/hostname"
"""The label that tells a node from every other."""
PODS = "pods"
"""What capacities call how many pods there may be. No pod asks for it; each is one."""
_REPELLING = ("NoSchedule", "NoExecute")
_VALUED = ("In", "NotIn")
_ORDERED = ("Gt", "Lt")
_INT64 = 2**63
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint that keeps the pod away, None when there is none. PreferNoSchedule keeps nobody away."""
    for taint in taints:
        if taint.effect in _REPELLING and not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """An absent effect or key stands for any; ``Exists`` ignores the value."""
    if toleration.effect is not None and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """A pod's node selector: every pair of it is among the labels."""
    return all(key in labels and labels[key] == value for key, value in selector.items())


def allows(task: Task, node: Node) -> bool:
    """Whether the pod may use the node by taints and labels; whether new work may start there is another question."""
    return (
        untolerated(node.taints, task.tolerations or ()) is None
        and selects(task.node_selector or {}, node.labels)
        and (not task.node_affinity or matches_any(task.node_affinity, node.labels))
    )


def demands(task: Task) -> tuple[object, ...]:
    """What ``allows`` hangs on, comparable; equal for pods that may use the same nodes by the same rules."""
    return (
        tuple(sorted((task.node_selector or {}).items())),
        tuple((t.key, t.operator, t.value, t.effect) for t in task.tolerations or ()),
        tuple(tuple((e.key, e.operator, tuple(e.values)) for e in term) for term in task.node_affinity or ()),
    )


def matches_any(terms: Iterable[Sequence[Expression]], labels: Mapping[str, str]) -> bool:
    """Required node affinity: the terms are alternatives, the expressions of one must all match. A term without
    expressions matches nothing, and so do no terms at all."""
    return any(term and all(matches(expression, labels) for expression in term) for term in terms)


def matches(expression: Expression, labels: Mapping[str, str]) -> bool:
    """A node selector requirement against labels. One that Kubernetes refuses (see ``problems``) matches nothing."""
    if _expression_problem(expression) is not None:
        return False
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
            number, bound = parse_int(value), parse_int(expression.values[0])
            if number is None or bound is None:
                return False
            return number > bound if expression.operator == "Gt" else number < bound


def parse_int(text: str | None) -> int | None:
    """A signed 64-bit decimal of ASCII digits, as Go's ``strconv.ParseInt(text, 10, 64)`` takes it; None for anything
    else."""
    match = _INTEGER.fullmatch(text) if text is not None else None
    if match is None:
        return None
    number = int(match[1] + match[2])
    return number if -_INT64 <= number < _INT64 else None


def problems(task: Task, where: tuple[str | int, ...]) -> Iterator[Problem]:
    """Expressions and tolerations that Kubernetes itself would refuse in a pod; ``where`` points at the task."""
    for i, toleration in enumerate(task.tolerations or ()):
        here = (*where, "tolerations", i)
        if not toleration.key and toleration.operator != "Exists":
            yield Problem(pointer=pointer(*here, "operator"), detail="a toleration without a key needs operator Exists")
        if toleration.operator == "Exists" and toleration.value:
            yield Problem(pointer=pointer(*here, "value"), detail="operator Exists takes no value")
    for i, term in enumerate(task.node_affinity or ()):
        for j, expression in enumerate(term):
            detail = _expression_problem(expression)
            if detail is not None:
                yield Problem(pointer=pointer(*where, "node_affinity", i, j, "values"), detail=detail)


def _expression_problem(expression: Expression) -> str | None:
    if expression.operator in _VALUED:
        return None if expression.values else f"operator {expression.operator} needs at least one value"
    if expression.operator in _ORDERED:
        if len(expression.values) == 1 and parse_int(expression.values[0]) is not None:
            return None
        return f"operator {expression.operator} needs exactly one integer"
    return f"operator {expression.operator} takes no values" if expression.values else None
