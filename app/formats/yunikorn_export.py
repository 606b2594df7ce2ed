"""A configuration as YuniKorn's queues.yaml: one partition, the tree nested."""

from typing import Any

from app.formats.exported import Exported, Lost, dump, flat_quota, parents_first
from app.formats.source import Path
from app.formats.yunikorn_import import DEFAULT_PARTITION, ROOT
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
    shown: dict[str, Any] = {"name": name}
    block = queue.yunikorn or yunikorn.Queue()
    if block.parent:
        shown["parent"] = True
    guaranteed: dict[str, Any] = {}
    limit: dict[str, Any] = {}
    for resource, (where, quota) in flat_quota(queue, at, "YuniKorn", lost).items():
        if queue.parent is None and name.lower() == ROOT:
            lost.add(where, "YuniKorn refuses resources on the root: its limit is the sum of the nodes")
            continue
        lost.quota(where, quota, "YuniKorn", ("borrowing_limit", "lending_limit", "weight"))
        for field, side in (("guaranteed", guaranteed), ("limit", limit)):
            value = getattr(quota, field)
            if value == "unlimited":
                if field == "guaranteed":
                    lost.add((*where, field), "YuniKorn has no unlimited guarantee: left out")
            elif value is not None:
                side[resource] = value
    if guaranteed or limit:
        shown["resources"] = {**({"guaranteed": guaranteed} if guaranteed else {}), **({"max": limit} if limit else {})}
    if block.properties:
        shown["properties"] = block.properties
    if block.child_template is not None and block.child_template.properties:
        shown["childtemplate"] = {"properties": block.child_template.properties}
    return shown
