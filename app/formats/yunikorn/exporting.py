"""A configuration as YuniKorn's queues.yaml: one partition, the tree nested."""

import re
from typing import Any, cast

from app.base.documents import Path
from app.formats.exported import Exported, Lost, dump, flat_quota, parents_first, renamed
from app.formats.yunikorn.importing import DEFAULT_PARTITION, OTHER_PARTITIONS
from app.formats.yunikorn.placement import ROOT
from app.solver.model import yunikorn
from app.solver.model.base import Native, NativeDocuments, Quantity
from app.solver.model.configuration import Configuration, EngineName, Queue
from app.solver.model.quantity import parse, scale_of

_READ = re.compile(r"[0-9]+([kMGTPE]|[KMGTPE]i)?")
_MILLI = re.compile(r"[0-9]+m")


def export(configuration: Configuration) -> Exported:
    """YAML for the key queues.yaml of the ConfigMap yunikorn-configs."""
    lost = Lost()
    lost.other_blocks(configuration, "yunikorn")
    lost.flavors(configuration, "YuniKorn")
    if configuration.settings.yunikorn is not None and configuration.settings.yunikorn.rules != "shipped":
        lost.add(("settings", "yunikorn", "rules"), "which rules decide is a choice of Arbiter, not of YuniKorn")
    made: dict[str, dict[str, Any]] = {}
    top: list[dict[str, Any]] = []
    left_out: set[str] = set()
    for at, queue in parents_first(configuration.queues):
        if (queue.yunikorn is not None and queue.yunikorn.dynamic) or queue.parent in left_out:
            lost.add(at, "a dynamic queue is made by placement rules, not by configuration")
            left_out.add(queue.name)
            continue
        made[queue.name] = lost.native(
            at, _queue(queue, at, lost, configuration.engine), _own(queue, at, lost), "yunikorn"
        )
        above = made[queue.parent].setdefault("queues", []) if queue.parent is not None else top
        above.append(made[queue.name])
    lost.objects(configuration, "yunikorn", ())
    settings = configuration.settings.yunikorn or yunikorn.Settings()
    return dump([_document(configuration.native or NativeDocuments(), settings, top, lost)], lost)


def _document(
    native: NativeDocuments, settings: yunikorn.Settings, top: list[dict[str, Any]], lost: Lost
) -> dict[str, Any]:
    """queues.yaml, in its ConfigMap if it came in one, with what was kept of the partition and of others."""
    fields = dict(native.yunikorn)
    holder, others, name = fields.pop("configMap", None), fields.pop(OTHER_PARTITIONS, []), fields.pop("name", None)
    at = ("native", "yunikorn")
    if fields.pop("limits", None) is not None and len(top) == 1 and "limits" in top[0]:
        fields["limits"] = top[0].pop("limits")  # a partition's are its root's
    if fields.pop("queues", None) is not None:
        lost.add((*at, "queues"), "the configuration has the queues: these are left out")
    if not isinstance(others, list):
        lost.add((*at, OTHER_PARTITIONS), "no list of partitions: left out")
        others = []
    called = name if isinstance(name, str) and name else DEFAULT_PARTITION
    own = {"name": called} if settings.preemption else {"name": called, "preemption": {"enabled": False}}
    partition = lost.native((), own, NativeDocuments(yunikorn=fields), "yunikorn")
    document = {"partitions": [{**partition, "queues": top}, *cast(list[Any], others)]}
    return document if holder is None else lost.inside(holder, document, (*at, "configMap"))


def _own(queue: Queue, at: Path, lost: Lost) -> Native | None:
    """What was kept of the queue. Queues below it are the configuration's."""
    if queue.native is None or "queues" not in queue.native.yunikorn:
        return queue.native
    lost.add((*at, "native", "yunikorn", "queues"), "the configuration has the queues: these are left out")
    return Native(yunikorn={key: value for key, value in queue.native.yunikorn.items() if key != "queues"})


def _queue(queue: Queue, at: Path, lost: Lost, engine: EngineName | None) -> dict[str, Any]:
    lost.queue(at, queue, "YuniKorn", weight=False, priority=False, created=False)
    shown: dict[str, Any] = {"name": _name(queue, at, lost)}
    block = queue.yunikorn or yunikorn.Queue()
    if block.parent:
        shown["parent"] = True
    if resources := _resources(queue, at, lost, engine):
        shown["resources"] = resources
    if block.properties:
        shown["properties"] = block.properties
    if block.child_template is not None and (template := _template(block.child_template, at, lost)):
        shown["childtemplate"] = template
    if block.max_applications:
        shown["maxapplications"] = block.max_applications
    if block.limits:
        shown["limits"] = [_limit(limit, (*at, "yunikorn", "limits", i), lost) for i, limit in enumerate(block.limits)]
    return shown


def _template(template: yunikorn.ChildTemplate, at: Path, lost: Lost) -> dict[str, Any]:
    here = (*at, "yunikorn", "child_template")
    resources = {key: _amounts(getattr(template, key), (*here, key), lost) for key in ("guaranteed", "max")}
    shown = {
        "properties": template.properties, "resources": {key: of for key, of in resources.items() if of},
        "maxapplications": template.max_applications,
    }  # fmt: skip
    return {key: value for key, value in shown.items() if value}


def _limit(limit: yunikorn.Limit, at: Path, lost: Lost) -> dict[str, Any]:
    shown = {
        "limit": limit.limit, "users": limit.users, "groups": limit.groups,
        "maxresources": _amounts(limit.max_resources, (*at, "max_resources"), lost),
        "maxapplications": limit.max_applications,
    }  # fmt: skip
    return {key: value for key, value in shown.items() if value}


def _amounts(given: dict[str, Quantity], at: Path, lost: Lost) -> dict[str, Quantity]:
    return {resource: _amount(value, resource, (*at, resource), lost) for resource, value in given.items()}


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


def _resources(queue: Queue, at: Path, lost: Lost, engine: EngineName | None) -> dict[str, Any]:
    """``guaranteed`` and ``max`` by resource, those that say something."""
    guaranteed: dict[str, Any] = {}
    limit: dict[str, Any] = {}
    is_root = queue.parent is None and queue.name.lower() == ROOT
    quotas = renamed(flat_quota(queue, at, "YuniKorn", lost), engine, "yunikorn", lost)
    for resource, (where, quota) in quotas.items():
        if is_root:
            lost.add(where, "YuniKorn refuses resources on the root: its limit is the sum of the nodes")
            continue
        lost.quota(where, quota, "YuniKorn", ("borrowing_limit", "lending_limit", "weight"))
        if quota.guaranteed == "unlimited":
            lost.add((*where, "guaranteed"), "YuniKorn has no unlimited guarantee: left out")
        elif quota.guaranteed is not None:
            guaranteed[resource] = _amount(quota.guaranteed, resource, (*where, "guaranteed"), lost)
        if quota.limit is not None and quota.limit != "unlimited":
            limit[resource] = _amount(quota.limit, resource, (*where, "limit"), lost)
    return {name: amounts for name, amounts in (("guaranteed", guaranteed), ("max", limit)) if amounts}


def _amount(value: Quantity, resource: str, at: Path, lost: Lost) -> Quantity:
    """As YuniKorn reads it: whole numbers, with a suffix if there is one; thousandths of vcore only."""
    if _READ.fullmatch(str(value)) or (resource == "vcore" and _MILLI.fullmatch(str(value))):
        return value
    scale = scale_of(resource)
    steps = parse(value, scale)
    if steps % scale == 0:
        return steps // scale
    if resource == "vcore":
        return f"{steps}m"
    lost.add(at, f"YuniKorn counts whole units of {resource}: rounded up")
    return -(-steps // scale)
