"""What changed between two translations of a cluster: as a delta, and in a sentence."""

from collections.abc import Mapping
from typing import TypeVar

from app.following.translating import Translated
from app.solver.model.configuration import Configuration
from app.solver.model.delta import AskChanges, Delta, NodeChanges, WorkloadChanges

T = TypeVar("T")
_NAMED = 5


def delta(old: Translated, new: Translated, generation: int, versions: dict[str, str]) -> Delta:
    """From ``old``, which is what the snapshot has at ``generation``, to ``new``."""
    nodes = _changes(old.nodes, new.nodes)
    workloads = _changes(old.workloads, new.workloads)
    asks = _changes(old.asks, new.asks)
    return Delta(
        generation=generation,
        nodes=NodeChanges(add=nodes[0], change=nodes[1], remove=nodes[2]),
        workloads=WorkloadChanges(add=workloads[0], change=workloads[1], remove=workloads[2]),
        asks=AskChanges(add=asks[0], change=asks[1], remove=asks[2]),
        resource_versions=versions,
    )


def _changes(old: Mapping[str, T], new: Mapping[str, T]) -> tuple[list[T], list[T], list[str]]:
    """Added, changed, removed."""
    added = [item for name, item in new.items() if name not in old]
    changed = [item for name, item in new.items() if name in old and old[name] is not item and old[name] != item]
    return added, changed, [name for name in old if name not in new]


def told(old: Configuration | None, new: Configuration) -> str:
    """What changed, for the comment of a revision."""
    if old is None:
        return f"followed from the cluster: {len(new.queues)} queues"
    said = [
        *_said("queue", {q.name: q for q in old.queues}, {q.name: q for q in new.queues}),
        *_said("flavor", {f.name: f for f in old.flavors}, {f.name: f for f in new.flavors}),
    ]
    return "followed from the cluster: " + ("; ".join(said) or "the order of queues")


def _said(kind: str, old: Mapping[str, T], new: Mapping[str, T]) -> list[str]:
    added, changed, removed = _changes({n: (n, v) for n, v in old.items()}, {n: (n, v) for n, v in new.items()})
    names = {"added": [n for n, _ in added], "changed": [n for n, _ in changed], "removed": removed}
    return [f"{kind} {_few(of)} {word}" for word, of in names.items() if of]


def _few(names: list[str]) -> str:
    shown = ", ".join(name[:100] for name in names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
