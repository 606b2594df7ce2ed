"""A configuration as a YTsaurus pool tree: settings of the tree, pools nested in their parents."""

import re
from typing import Any

import msgspec

from app.base.documents import Path
from app.formats.documents.exported import Exported, Lost, dump, flat_quota, number, parents_first
from app.formats.documents.resources import renamed
from app.formats.ytsaurus.importing import DURATIONS, POOL_FIELDS, TREE_FIELDS
from app.solver.model import duration, ytsaurus
from app.solver.model.base import Native
from app.solver.model.configuration import Configuration, EngineName, Queue
from app.solver.model.quantity import parse, scale_of, units

_SPELLED = re.compile(r"[0-9]+(\.[0-9]+)?(ms|s|m|h)")
"""Durations that YTsaurus reads as text: one number, one unit."""


def export(configuration: Configuration) -> Exported:
    """YAML with ``config`` and ``pools``; durations in milliseconds, or as spelled where YTsaurus reads that."""
    lost = Lost()
    lost.other_blocks(configuration, "ytsaurus")
    lost.flavors(configuration, "YTsaurus")
    settings = configuration.settings.ytsaurus
    if settings is not None and settings.rules != ytsaurus.Settings().rules:
        lost.add(("settings", "ytsaurus", "rules"), "which rules decide is a choice of Arbiter, not of YTsaurus")
    document: dict[str, Any] = {}
    if settings is not None:
        document["config"] = _values(settings, TREE_FIELDS, ("settings", "ytsaurus"), lost)
    pools: dict[str, Any] = {}
    made: dict[str, dict[str, Any]] = {}
    for at, queue in parents_first(configuration.queues):
        made[queue.name] = lost.native(
            at, _pool(queue, at, lost, configuration.engine), _own(queue.native, at, lost), "ytsaurus"
        )
        above = pools if queue.parent is None else made[queue.parent].setdefault("pools", {})
        above[queue.name] = made[queue.name]
    lost.objects(configuration, "ytsaurus", ())
    document = lost.native((), document, _own(configuration.native, (), lost), "ytsaurus")
    return dump([{**document, "pools": pools}], lost)


def _own(native: Native | None, at: Path, lost: Lost) -> Native | None:
    """What was kept. Pools are the configuration's."""
    if native is None or "pools" not in native.ytsaurus:
        return native
    lost.add((*at, "native", "ytsaurus", "pools"), "the configuration has the pools: these are left out")
    return Native(ytsaurus={key: value for key, value in native.ytsaurus.items() if key != "pools"})


def _pool(queue: Queue, at: Path, lost: Lost, engine: EngineName | None) -> dict[str, Any]:
    lost.queue(at, queue, "YTsaurus", weight=True, priority=False, created=False)
    shown: dict[str, Any] = {}
    if queue.has_weight:
        shown["weight"] = number(queue.weight)
    guaranteed: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    quotas = renamed(flat_quota(queue, at, "YTsaurus", lost), engine, "ytsaurus", lost)
    for resource, (where, quota) in quotas.items():
        lost.quota(where, quota, "YTsaurus", ("borrowing_limit", "lending_limit", "weight"))
        for field, side in (("guaranteed", guaranteed), ("limit", limits)):
            value = getattr(quota, field)
            if value == "unlimited" and field == "guaranteed":
                lost.add((*where, field), "YTsaurus has no unlimited guarantee: left out")
            elif value is not None and value != "unlimited":
                side[resource] = units(parse(value, scale_of(resource)), resource)
    block = queue.ytsaurus or ytsaurus.Queue()
    limits |= block.resource_limits or {}
    if guaranteed:
        shown["strong_guarantee_resources"] = guaranteed
    if limits:
        shown["resource_limits"] = limits
    if block.mode != "fair_share":
        shown["mode"] = block.mode
    return shown | _values(block, POOL_FIELDS, (*at, "ytsaurus"), lost)


def _values(block: msgspec.Struct, fields: tuple[str, ...], at: Path, lost: Lost) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for field in fields:
        value = getattr(block, field)
        if value is None:
            continue
        if isinstance(value, msgspec.Struct):
            shown[field] = _values(value, value.__struct_fields__, (*at, field), lost)
            continue
        if field in DURATIONS and not (isinstance(value, str) and _SPELLED.fullmatch(value)):
            micros = duration.parse(value)
            if micros % 1000:
                lost.add((*at, field), "YTsaurus counts milliseconds: rounded")
            value = round(micros / 1000)
        shown[field] = number(value) if isinstance(value, float) else value
    return shown
