"""A configuration as KAI Scheduler's objects: a SchedulingShard for the settings, and its Queues."""

from decimal import Decimal
from typing import Any

from app.formats.documents.exported import Exported, Lost, dump, flat_quota, go_duration, number, placed
from app.formats.documents.source import Path
from app.formats.kai.importing import ACTIONS, RULES_ANNOTATION, UNITS
from app.solver.model import kai
from app.solver.model.base import Quantity
from app.solver.model.configuration import Configuration, Queue, Quota
from app.solver.model.instant import at as instant_at
from app.solver.model.instant import micros
from app.solver.model.quantity import UNLIMITED, parse, scale_of

QUEUE_VERSION = "scheduling.run.ai/v2"
SHARD_VERSION = "kai.scheduler/v1"


def export(configuration: Configuration) -> Exported:
    """Multi-document YAML for ``kubectl apply``."""
    lost = Lost()
    lost.other_blocks(configuration, "kai")
    lost.flavors(configuration, "KAI Scheduler")
    documents: list[dict[str, Any]] = []
    if configuration.settings.kai is not None:
        documents.append(_shard(configuration.settings.kai, lost))
    documents += [_queue(queue, at, lost) for at, queue in placed(configuration.queues)]
    return dump(documents, lost)


def _shard(settings: kai.Settings, lost: Lost) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "default"}
    if settings.rules != "documented":
        metadata["annotations"] = {RULES_ANNOTATION: settings.rules}
    cap = settings.max_consolidation_preemptees
    arguments: dict[str, Any] = {}
    for field, native in (
        ("default_reclaim_min_runtime", "defaultReclaimMinRuntime"),
        ("default_preempt_min_runtime", "defaultPreemptMinRuntime"),
    ):
        value = getattr(settings, field)
        if value is not None:
            arguments[native] = go_duration(value)
    if settings.reclaim_resolve_method != "lca":
        arguments["reclaimResolveMethod"] = settings.reclaim_resolve_method
    spec: dict[str, Any] = {
        "args": {
            "max-consolidation-preemptees": str(-1 if cap is None else cap),
            "use-scheduling-signatures": _word(settings.use_scheduling_signatures),
            "allow-consolidating-reclaim": _word(settings.allow_consolidating_reclaim),
        }
    }
    if arguments:
        spec["plugins"] = {"minruntime": {"arguments": arguments}}
    if settings.actions is not None:
        spec["actions"] = _actions(settings.actions, lost)
    return {"apiVersion": SHARD_VERSION, "kind": "SchedulingShard", "metadata": metadata, "spec": spec}


def _word(value: bool) -> str:
    return "true" if value else "false"


def _actions(actions: list[kai.Action], lost: Lost) -> dict[str, Any]:
    """An order is written as falling priorities; what is not listed is off."""
    shown: dict[str, Any] = {}
    for rank, action in enumerate(actions):
        if action in shown:
            lost.add(("settings", "kai", "actions", rank), "a SchedulingShard runs an action once")
        else:
            shown[action] = {"enabled": True, "priority": 1000 - rank}
    return shown | {action: {"enabled": False} for action in ACTIONS if action not in shown}


def _queue(queue: Queue, at: Path, lost: Lost) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": queue.name}
    if queue.created_at is not None:
        metadata["creationTimestamp"] = instant_at(micros(queue.created_at)).isoformat().replace("+00:00", "Z")
    quotas = flat_quota(queue, at, "KAI Scheduler", lost)
    named: dict[str, tuple[Path, Quota]] = {}
    for resource, (where, quota) in quotas.items():
        key = "gpu" if resource.endswith("/gpu") else resource
        if key not in UNITS:
            lost.add(where, "KAI divides cpu, memory and GPUs only")
            continue
        lost.quota(where, quota, "KAI Scheduler", ("borrowing_limit", "lending_limit"))
        named[key] = (where, quota)
    spec: dict[str, Any] = {} if queue.parent is None else {"parentQueue": queue.parent}
    spec["priority"] = queue.priority
    spec["resources"] = {name: _resource(name, named.get(name, (at, Quota()))[1], queue.weight) for name in UNITS}
    for field, native in (("reclaim_min_runtime", "reclaimMinRuntime"), ("preempt_min_runtime", "preemptMinRuntime")):
        value = None if queue.kai is None else getattr(queue.kai, field)
        if value is not None:
            spec[native] = go_duration(value)
    return {"apiVersion": QUEUE_VERSION, "kind": "Queue", "metadata": metadata, "spec": spec}


def _resource(name: str, quota: Quota, weight: float) -> dict[str, Any]:
    return {
        "quota": _amount(0 if quota.guaranteed is None else quota.guaranteed, name),
        "limit": -1 if quota.limit is None else _amount(quota.limit, name),
        "overQuotaWeight": number(weight if quota.weight is None else quota.weight),
    }


def _amount(value: Quantity, name: str) -> int | float:
    if value == UNLIMITED:
        return -1
    steps = Decimal(parse(value, scale_of(name))) / UNITS[name]
    return number(float(steps))
