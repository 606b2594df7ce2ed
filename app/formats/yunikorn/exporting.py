"""A configuration as YuniKorn's queues.yaml: one partition, the tree nested."""

from typing import Any

from app.formats.documents.exported import Exported, Lost, dump, flat_quota, parents_first
from app.formats.documents.source import Path
from app.formats.yunikorn.importing import DEFAULT_PARTITION, ROOT
from app.solver.model import yunikorn
from app.solver.model.configuration import Configuration, Queue


def export(configuration: Configuration) -> Exported:
    """YAML for the key queues.yaml of the ConfigMap yunikorn-configs."""
    lost = Lost()
    lost.other_blocks(configuration, "yunikorn")
    lost.flavors(configuration, "YuniKorn")
    if configuration.settings.yunikorn is not None and configuration.settings.yunikorn != yunikorn.Settings():
        lost.add(("settings", "yunikorn", "rules"), "which rules decide is a choice of Arbiter, not of YuniKorn")
    made: dict[str, dict[str, Any]] = {}
    top: list[dict[str, Any]] = []
    left_out: set[str] = set()
    for at, queue in parents_first(configuration.queues):
        if (queue.yunikorn is not None and queue.yunikorn.dynamic) or queue.parent in left_out:
            lost.add(at, "a dynamic queue is made by placement rules, not by configuration")
            left_out.add(queue.name)
            continue
        made[queue.name] = _queue(queue, at, lost)
        above = made[queue.parent].setdefault("queues", []) if queue.parent is not None else top
        above.append(made[queue.name])
    return dump([{"partitions": [{"name": DEFAULT_PARTITION, "queues": top}]}], lost)


def _queue(queue: Queue, at: Path, lost: Lost) -> dict[str, Any]:
    lost.queue(at, queue, "YuniKorn", weight=False, priority=False, created=False)
    shown: dict[str, Any] = {"name": _name(queue, at, lost)}
    block = queue.yunikorn or yunikorn.Queue()
    if block.parent:
        shown["parent"] = True
    if resources := _resources(queue, at, lost):
        shown["resources"] = resources
    if block.properties:
        shown["properties"] = block.properties
    if block.child_template is not None and block.child_template.properties:
        shown["childtemplate"] = {"properties": block.child_template.properties}
    return shown


def _name(queue: Queue, at: Path, lost: Lost) -> str:
    """The last part of its path, as YuniKorn writes it."""
    name = queue.name
    if queue.parent is not None:
        prefix = f"{queue.parent}."
        if not name.startswith(prefix) or "." in name[len(prefix) :]:
            lost.add((*at, "name"), f"YuniKorn would call this queue {prefix}{name.rpartition('.')[2]}")
        name = name.removeprefix(prefix).rpartition(".")[2]
    elif name != ROOT:
        lost.add((*at, "name"), "YuniKorn has one root, called root: this queue ends up below it")
    if name != name.lower():
        lost.add((*at, "name"), "YuniKorn reads queue names in lower case")
    return name


def _resources(queue: Queue, at: Path, lost: Lost) -> dict[str, Any]:
    """``guaranteed`` and ``max`` by resource, those that say something."""
    guaranteed: dict[str, Any] = {}
    limit: dict[str, Any] = {}
    is_root = queue.parent is None and queue.name.lower() == ROOT
    for resource, (where, quota) in flat_quota(queue, at, "YuniKorn", lost).items():
        if is_root:
            lost.add(where, "YuniKorn refuses resources on the root: its limit is the sum of the nodes")
            continue
        lost.quota(where, quota, "YuniKorn", ("borrowing_limit", "lending_limit", "weight"))
        if quota.guaranteed == "unlimited":
            lost.add((*where, "guaranteed"), "YuniKorn has no unlimited guarantee: left out")
        elif quota.guaranteed is not None:
            guaranteed[resource] = quota.guaranteed
        if quota.limit is not None and quota.limit != "unlimited":
            limit[resource] = quota.limit
    return {name: amounts for name, amounts in (("guaranteed", guaranteed), ("max", limit)) if amounts}
