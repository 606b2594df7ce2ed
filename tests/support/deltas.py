"""What deltas say, drawn at random."""

import random
from collections.abc import Callable, Iterable
from typing import Any

from app.solver.model.state import Workload

Json = dict[str, Any]


def task_changes(
    rng: random.Random, workloads: Iterable[Workload], task: Callable[[str], Json], added: Callable[[], list[str]]
) -> Json:
    """Some tasks of each of ``workloads`` become another ``task`` or go; those that are ``added`` come."""
    changes: Json = {"add": [], "change": [], "remove": []}
    for workload in workloads:
        for old in workload.tasks:
            kind = rng.choice(("change", "remove", None, None))
            if kind is not None:
                named = task(old.name) if kind == "change" else old.name
                changes[kind].append({"workload": workload.id, "task": named})
        changes["add"] += [{"workload": workload.id, "task": task(name)} for name in added()]
    return changes
