"""Which engine reads which field of a situation: what another one has no word for is lost when it is told to it.

The table repeats what the descriptions of the fields say; a test holds both together.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec

from app.solver.model.configuration import Configuration, Queue, Quota
from app.solver.model.state import Ask, Node, State, Task, Workload

Severity = Literal["warning", "info"]

_KUEUE, _YUNIKORN, _KAI, _YTSAURUS = "kueue", "yunikorn", "kai", "ytsaurus"
_ON_NODES = (_YUNIKORN, _KAI, _YTSAURUS)
_IN_ORDER = (_KUEUE, _YUNIKORN, _KAI)
_OF_WORK: dict[str, tuple[str, ...]] = {
    "uid": (_KUEUE, _KAI), "priority": _IN_ORDER, "created_at": _IN_ORDER, "min_available": (_KAI,),
    "weight": (_YTSAURUS,), "limit": (_YTSAURUS,), "ytsaurus": (_YTSAURUS,),
}  # fmt: skip

READ_BY: dict[type[msgspec.Struct], dict[str, tuple[str, ...]]] = {
    Configuration: {"flavors": (_KUEUE,)},
    Queue: {"priority": (_KAI,), "created_at": (_KAI,)},
    Quota: {"borrowing_limit": (_KUEUE,), "lending_limit": (_KUEUE,), "weight": (_KAI,)},
    State: {"nodes": _ON_NODES, "reservations": (_YUNIKORN,), "queues": (_YTSAURUS,)},
    Node: {
        "capacity": _ON_NODES, "occupied": _ON_NODES, "labels": _ON_NODES, "taints": (_KAI, _YUNIKORN),
        "schedulable": _ON_NODES, "ytsaurus": (_YTSAURUS,),
    },
    Workload: {
        **_OF_WORK, "started_at": (_KUEUE, _KAI, _YTSAURUS), "preemptible": _ON_NODES, "evicted": (_KUEUE,),
        "on_preemption": (_KUEUE,), "disruption_cost_milestones": (_KUEUE,),
    },
    Ask: {
        **_OF_WORK, "workload": _ON_NODES, "preemption_policy": (_YUNIKORN,), "preemptible": (_KAI, _YUNIKORN),
        "originator": (_YUNIKORN,), "required_node": _ON_NODES, "feasible_nodes": _ON_NODES,
        "yunikorn": (_YUNIKORN,), "kueue": (_KUEUE,),
    },
    Task: {
        "min_count": (_KUEUE,), "usage": (_YTSAURUS,), "node": _ON_NODES, "flavors": (_KUEUE,),
        "priority": (_YUNIKORN,), "created_at": (_YUNIKORN,), "started_at": (_KAI, _YTSAURUS),
        "preemptible": (_YUNIKORN,), "originator": (_YUNIKORN,), "required_node": _ON_NODES,
        "state": (_YUNIKORN, _KAI), "tolerations": (_KUEUE, _KAI, _YUNIKORN),
        "node_affinity": (_KUEUE, _KAI, _YUNIKORN),
    },
}  # fmt: skip
"""By struct and field, the engines that read it; what is not listed is read by all, or by none."""

_TOLD_ELSEWHERE = {(Queue, "priority"), (Quota, "borrowing_limit"), (Quota, "lending_limit"), (Quota, "weight")}
_WHERE_IT_IS = {(Task, "node"), (Task, "flavors"), (Task, "uid"), (Workload, "uid"), (Ask, "uid"), (Ask, "workload"),
                (State, "nodes"),
    (Node, "capacity"), (Node, "occupied"), (Node, "schedulable")}  # fmt: skip
"""What the other engine does without: it has its own way to say where work is."""


@dataclass(frozen=True, slots=True)
class Unsaid:
    """A field that is set, and that the other engine has no word for."""

    field: str
    severity: Severity


def unsaid(one: msgspec.Struct, kind: type[msgspec.Struct], old: str, new: str) -> Iterator[Unsaid]:
    """The fields of ``one``, a ``kind``, that ``old`` reads, ``new`` does not, and that say something."""
    for field in _LOST[kind, old, new]:
        if getattr(one, field) != _DEFAULTS[kind][field]:
            yield Unsaid(field, "info" if (kind, field) in _WHERE_IT_IS else "warning")


_DEFAULTS = {
    kind: {
        field.name: field.default_factory() if field.default is msgspec.NODEFAULT and
        field.default_factory is not msgspec.NODEFAULT else field.default
        for field in msgspec.structs.fields(kind)
    }
    for kind in READ_BY
}  # fmt: skip
_ENGINES = (_KUEUE, _YUNIKORN, _KAI, _YTSAURUS)
_LOST = {
    (kind, old, new): [
        name for name, readers in fields.items()
        if old in readers and new not in readers and (kind, name) not in _TOLD_ELSEWHERE
    ]
    for kind, fields in READ_BY.items() for old in _ENGINES for new in _ENGINES
}  # fmt: skip
