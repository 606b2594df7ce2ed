"""Which nodes a pod may use at all: labels, taints, and the nodes that it or its ask names."""

from collections.abc import Sequence

from app.solver import kubernetes
from app.solver.model.state import Ask, Node, Task

_MOST_KEPT = 256


class Predicates:
    """Allowed nodes by pod; worked out once per distinct constraint."""

    def __init__(self, nodes: Sequence[Node], open_nodes: list[bool], seen: dict[str, list[bool]]) -> None:
        """``open_nodes``: those that a pod without constraints may use; ``seen``: by constraint what is known already,
        and kept for whoever comes next."""
        self._nodes = nodes
        self._open = open_nodes
        self._all = all(open_nodes)
        self._seen = seen

    def allowed(self, task: Task, ask: Ask | None) -> list[bool] | None:
        """By node number whether the pod may run there; None: on every node."""
        signature = constraints(task, ask)
        if not signature:
            return None if self._all else self._open
        found = self._seen.get(signature)
        if found is None:
            if len(self._seen) >= _MOST_KEPT:
                self._seen.clear()
            found = self._seen[signature] = [self._allows(task, ask, node) for node in self._nodes]
        return found

    def _allows(self, task: Task, ask: Ask | None, node: Node) -> bool:
        required = task.required_node or (ask.required_node if ask else None)
        return (
            node.schedulable
            and (required is None or required == node.name)
            and (ask is None or ask.feasible_nodes is None or node.name in ask.feasible_nodes)
            and kubernetes.allows(task, node)
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
