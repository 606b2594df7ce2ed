"""Which nodes a pod may use at all: labels, taints, and the nodes that it or its ask names."""

from collections.abc import Sequence

from app.solver.model.configuration import Taint
from app.solver.model.state import Ask, Expression, Node, Task, Toleration

_REPELS = ("NoSchedule", "NoExecute")


class Predicates:
    """Allowed nodes by pod; worked out once per distinct constraint."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._open = [node.schedulable and not any(t.effect in _REPELS for t in node.taints) for node in nodes]
        self._all = all(self._open)
        self._seen: dict[str, list[bool]] = {}

    def allowed(self, task: Task, ask: Ask | None) -> list[bool] | None:
        """By node number whether the pod may run there; None: on every node."""
        signature = constraints(task, ask)
        if not signature:
            return None if self._all else self._open
        found = self._seen.get(signature)
        if found is None:
            found = self._seen[signature] = [self._allows(task, ask, node) for node in self._nodes]
        return found

    def _allows(self, task: Task, ask: Ask | None, node: Node) -> bool:
        required = task.required_node or (ask.required_node if ask else None)
        return (
            node.schedulable
            and (required is None or required == node.name)
            and (ask is None or ask.feasible_nodes is None or node.name in ask.feasible_nodes)
            and all(_tolerated(taint, task.tolerations or []) for taint in node.taints if taint.effect in _REPELS)
            and all(node.labels.get(k) == v for k, v in (task.node_selector or {}).items())
            and (not task.node_affinity or any(_matches(term, node) for term in task.node_affinity))
        )


def constraints(task: Task, ask: Ask | None) -> str:
    """The pod's constraints as one string; empty without any. Equal constraints give equal strings."""
    parts = (
        task.required_node or (ask.required_node if ask else None),
        tuple(sorted(ask.feasible_nodes)) if ask and ask.feasible_nodes is not None else None,
        sorted((task.node_selector or {}).items()),
        [(t.key, t.operator, t.value, t.effect) for t in task.tolerations or []],
        [[(e.key, e.operator, e.values) for e in t] for t in task.node_affinity or []],
    )
    return repr(parts) if any(part is not None and part != [] for part in parts) else ""


def _tolerated(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    return any(
        (t.effect is None or t.effect == taint.effect)
        and (t.key == taint.key if t.key else t.operator == "Exists")
        and (t.operator == "Exists" or t.value == taint.value)
        for t in tolerations
    )


def _matches(term: Sequence[Expression], node: Node) -> bool:
    return bool(term) and all(_holds(e, node.labels.get(e.key)) for e in term)


def _holds(expression: Expression, value: str | None) -> bool:
    match expression.operator:
        case "In":
            return value in expression.values
        case "NotIn":
            return value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(expression, value)


def _compares(expression: Expression, value: str | None) -> bool:
    try:
        number, bound = int(value or ""), int(expression.values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if expression.operator == "Gt" else number < bound
