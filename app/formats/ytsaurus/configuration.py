"""A YTsaurus pool tree, in and out: its settings and pools, in YSON, JSON or YAML.

Two shapes are read. Plain: ``{config: {...}, pools: {name: {..., pools: {...}}}}``. Cypress, as ``yt get`` with
attributes prints it: ``{$attributes: {config: {...}}, $value: {name: {$attributes: {...}, $value: {...}}}}``; that one
is written, in YSON. Durations are whole milliseconds, as YTsaurus writes them, or strings with a unit.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from app.base.documents import MAX_DEPTH, Path, as_mapping
from app.formats.exported import Exported, Lost, flat_quota, number, parents_first, renamed
from app.formats.reader import Findings, Reader, effect_of
from app.formats.ytsaurus.documents import (
    FIELDS,
    MEDIA_TYPE,
    POOL_FIELDS,
    PRESETS,
    TREE_FIELDS,
    is_scheduler_configuration,
    one_tree,
    with_preset,
    write_yson,
)
from app.solver.model import base, ytsaurus
from app.solver.model.base import Duration, Native, NativeDocuments, parse_quantity, scale_of, units
from app.solver.model.configuration import UNWEIGHTED, Configuration, EngineName, Queue, Quota, Settings

DURATIONS = frozenset(
    {
        "fair_share_starvation_timeout", "fair_share_aggressive_starvation_timeout", "preemptive_scheduling_backoff",
        "allocation_preemption_timeout", "job_interrupt_timeout", "allocation_graceful_preemption_timeout",
        "allowed_node_resources_overcommit_duration", "smooth_period", "pool_capacity_saturation_period",
    }
)  # fmt: skip
RESOURCES = frozenset(
    {
        "non_preemptible_resource_usage_threshold", "min_spare_allocation_resources",
        "min_spare_allocation_resources_on_node", "resource_limits_overcommit_tolerance", "resource_flow",
        "burst_guarantee_resources",
    }
)  # fmt: skip

# Settings that are blocks of their own.
_TREE_BLOCKS: dict[str, type[msgspec.Struct]] = {"integral_guarantees": ytsaurus.TreeIntegralGuarantees}
_POOL_BLOCKS: dict[str, type[msgspec.Struct]] = {"integral_guarantees": ytsaurus.IntegralGuarantees}

# Names that older versions gave to the same settings.
_ALIASES = {
    "min_share_resources": "strong_guarantee_resources",
    "fair_share_preemption_timeout": "fair_share_starvation_timeout",
    "truncate_fifo_pool_unsatisfied_child_fair_share": "enable_fair_share_truncation_in_fifo_pool",
}
_BOOKKEEPING = (
    "id", "type", "name", "path", "key", "parent_name", "parent_id", "revision", "attribute_revision",
    "content_revision", "creation_time", "modification_time", "access_time", "access_counter", "builtin", "count",
    "account", "effective_acl", "ref_counter", "resource_usage", "user_attribute_keys", "foreign",
    "life_stage", "native_cell_tag", "estimated_creation_time", "pool_count",
)  # fmt: skip
_TREE = "//sys/pool_trees/TREE"
_MAPS = ("config", "strong_guarantee_resources", "resource_limits", "integral_guarantees")
# What people set, and what no decision depends on.
_OF_PEOPLE = ("acl", "inherit_acl", "owner", "abc", "folder_id")


def read_configuration(documents: list[tuple[Path, Any]], findings: Findings) -> Configuration:
    """The first tree of the source; another one is a finding."""
    documents = one_tree(documents, findings)
    if not documents:
        return Configuration(engine="ytsaurus")
    for path, _ in documents[1:]:
        findings.add("not-carried", "warning", path, "a second pool tree is a cluster of its own: import it by itself")
    path, document = documents[0]
    top = Reader(document, path, findings)
    cypress = "$attributes" in top or "$value" in top
    if cypress:
        _report_opaque(top, findings)
    attributes, children = _split(top, cypress=cypress)
    config = attributes.child("config") if "config" in attributes else attributes
    attributes.not_carried("nodes_filter", "which nodes belong to the tree is for the state to say", "info")
    attributes.keep_as_is(*_OF_PEOPLE)
    presets = config.value.get(PRESETS)
    config.keep_as_is(PRESETS)
    settings = _tree(config)
    if config is not attributes:
        attributes.ignore(*_BOOKKEEPING)
        attributes.close("info")
    fields = attributes.unread("pools")
    if config is attributes:
        beside = {key: fields.pop(key) for key in ("nodes_filter", *_OF_PEOPLE) if key in fields}
        fields = {**beside, **({"config": fields} if fields else {})}
    return Configuration(
        engine="ytsaurus",
        settings=Settings(ytsaurus=settings),
        queues=list(_pools(children, cast(Any, presets) if isinstance(presets, dict) else {}, cypress=cypress)),
        native=NativeDocuments(ytsaurus=fields) if fields else None,
    )


def is_opaque(value: Any) -> bool:
    """Whether ``yt get`` printed ``#`` for it: there is something, and it did not descend."""
    if not isinstance(value, dict):
        return value is None
    of = cast(dict[str, Any], value)
    return "$attributes" in of and of.get("$value") is None


def _report_opaque(top: Reader, findings: Findings) -> None:
    """Every part of a tree of Cypress that would be read and is not there, with the command that shows it."""
    own = as_mapping(top.value.get("$attributes")).get("path")
    pending: list[tuple[Any, Path, str]] = [(top.value, top.path, own if isinstance(own, str) else _TREE)]
    while pending:
        value, place, path = pending.pop()
        if is_opaque(value):
            findings.add(
                "opaque", "error", place, f"opaque (#), so that what is below is unknown: `yt get {path}` shows it"
            )
        if not isinstance(value, dict):
            continue
        of = cast(dict[str, Any], value)
        attributes = as_mapping(of.get("$attributes"))
        for key in _MAPS:
            if key in attributes and is_opaque(attributes[key]):
                detail = f"opaque (#): `yt get {path}/@{key}` shows it"
                findings.add("opaque", "error", (*place, "$attributes", key), detail)
        children, below = (of["$value"], (*place, "$value")) if "$value" in of else (of, place)
        if isinstance(children, dict):
            pending += [
                (child, (*below, name), f"{path}/{name}")
                for name, child in reversed(cast(dict[str, Any], children).items())
                if name != "$attributes"
            ]


def is_tree(document: Any) -> bool:
    """Whether this is a pool tree in either shape, not an object of Kubernetes."""
    if not isinstance(document, dict) or "kind" in document:
        return False
    of = cast(dict[str, Any], document)
    shaped = any(isinstance(of.get(key), dict) for key in ("$attributes", "$value", "pools"))
    return shaped or is_scheduler_configuration(document)


def is_settings(document: Any) -> bool:
    """Whether this can be a pool tree: it has a shape of one, or says something that a tree or a pool can."""
    if not isinstance(document, dict) or "kind" in document:
        return False
    if is_scheduler_configuration(document):
        return True
    known = {
        *TREE_FIELDS,
        *POOL_FIELDS,
        *FIELDS["Pool"],
        *_ALIASES,
        "config",
        "pools",
        "nodes_filter",
        "$attributes",
        "$value",
    }
    return not known.isdisjoint(cast(dict[str, Any], document))


def settings_of(config: Reader) -> ytsaurus.Settings | None:
    """The settings of a tree among all the others that a scheduler tells of it, with every default written out."""
    values = _values(config, TREE_FIELDS, _TREE_BLOCKS)
    return _struct(config, ytsaurus.Settings, values) if values else None


def _split(reader: Reader, *, cypress: bool) -> tuple[Reader, Reader]:
    """Attributes, to be kept, and children of a node, in either shape; without attributes a node of Cypress is its
    children."""
    if "$attributes" in reader or "$value" in reader:
        attributes, children = reader.child("$attributes"), reader.child("$value")
        reader.close()
        return attributes.keep(), children
    if cypress:
        return Reader(None, reader.path, reader.findings), reader
    return reader.keep(), reader.child("pools")


def _tree(config: Reader) -> ytsaurus.Settings | None:
    values = _values(config, TREE_FIELDS, _TREE_BLOCKS)
    if config.value.get("use_precommit_for_preemption") is not None:
        detail = "heartbeats are decided one after the other, so that it changes nothing"
        config.warn("use_precommit_for_preemption", detail, "info", "no-effect")
    if config.value.get("enable_fair_share_truncation_in_fifo_pool"):
        detail = "each pool says it for itself, as in the newest source; older schedulers take it for all"
        config.warn("enable_fair_share_truncation_in_fifo_pool", detail, rule="not-decided")
    _keep_the_rest(config, "PoolTree", "config.")
    config.ignore(*_BOOKKEEPING)
    config.close()
    return _struct(config, ytsaurus.Settings, values) if values else None


def _keep_the_rest(reader: Reader, kind: str, below: str = "") -> None:
    """Keep what is known and not decided here: without a finding, or with one, as the table of fields says."""
    for key in reader.value:
        effect = effect_of(FIELDS, kind, below + key)
        if effect == "none":
            reader.keep_as_is(key)
        elif effect == "info":
            reader.not_carried(key, "it is about how operations get here, which is not decided here", "info")
        elif effect == "warning":
            reader.not_carried(key, "YTsaurus may schedule otherwise for it, which is not decided here")


def _pools(children: Reader, presets: Mapping[str, Any], *, cypress: bool) -> Iterator[Queue]:
    """Pools in the order of the document, parents first; without recursion."""
    findings = children.findings
    seen: dict[str, Path] = {}
    pending: list[tuple[Reader, str, str | None, int]] = [
        (children.child(name), name, None, 1) for name in reversed(list(children.value))
    ]
    while pending:
        reader, name, above, depth = pending.pop()
        if depth > MAX_DEPTH:
            findings.add("bad-value", "error", reader.path, f"pools nested deeper than {MAX_DEPTH} levels: left out")
            continue
        if not name or name in seen:
            findings.add("duplicate", "error", reader.path, f"a second pool {name!r} in one tree: left out")
            continue
        seen[name] = reader.path
        attributes, below = _split(reader, cypress=cypress)
        yield _pool(attributes, presets, name, above)
        pending += [(below.child(child), child, name, depth + 1) for child in reversed(list(below.value))]


def _pool(attributes: Reader, presets: Mapping[str, Any], name: str, above: str | None) -> Queue:
    said = with_preset(attributes, presets)
    renamed = {old: new for old, new in _ALIASES.items() if said.get(old) is not None and said.get(new) is None}
    if said is not attributes.value or renamed:
        under: dict[str, Any] = {**said, **{new: said[old] for old, new in renamed.items()}}
        attributes = Reader(under, attributes.path, attributes.findings).keep()
        attributes.ignore(*renamed)
    guaranteed = attributes.quantities("strong_guarantee_resources")
    limits = attributes.quantities("resource_limits")
    weight = attributes.number("weight")
    values = _values(attributes, POOL_FIELDS, _POOL_BLOCKS)
    mode = attributes.choice("mode", {"fair_share": "fair_share", "fifo": "fifo"})
    block = _struct(attributes, ytsaurus.Queue, values if mode is None else {**values, "mode": mode})
    if attributes.value.get("fifo_sort_parameters") == ["weight", "start_time"]:
        attributes.keep_as_is("fifo_sort_parameters")
    attributes.not_carried("fifo_sort_parameters", "a fifo pool sorts by weight and start time")
    attributes.text("config_preset")
    attributes.keep_as_is("config_preset")
    _keep_the_rest(attributes, "Pool")
    attributes.not_carried("ephemeral_subpools_config", "how operations get here is not decided here", "info")
    attributes.ignore(*_BOOKKEEPING, "pools")
    attributes.keep_as_is(*_OF_PEOPLE)
    attributes.close()
    fields = attributes.unread("pools")
    quota = {key: Quota(guaranteed=guaranteed.get(key), limit=limits.get(key)) for key in {**guaranteed, **limits}}
    return Queue(
        name=name, parent=above, quota=quota or None, weight=UNWEIGHTED if weight is None else weight,
        ytsaurus=None if block is None or block == ytsaurus.Queue() else block,
        native=Native(ytsaurus=fields) if fields else None,
    )  # fmt: skip


def block_of(reader: Reader, kind: Any, fields: tuple[str, ...]) -> Any:
    """The struct ``kind`` of ``fields``; None where the source says none of them."""
    values = _values(reader, fields, {})
    return _struct(reader, kind, values) if values else None


def _values(reader: Reader, fields: tuple[str, ...], blocks: dict[str, type[msgspec.Struct]]) -> dict[str, Any]:
    """What ``reader`` has of ``fields``, as the wire has it; blocks as maps."""
    values: dict[str, Any] = {}
    for key in fields:
        if key in blocks and isinstance(reader.value.get(key), dict):
            below = reader.child(key)
            own = _struct(below, blocks[key], _values(below, blocks[key].__struct_fields__, {}))
            below.close()
            if own is not None:
                values[key] = msgspec.to_builtins(own)
        elif (value := _value(reader, key)) is not None:
            values[key] = value
    return values


def _value(reader: Reader, key: str) -> Any:
    if key in DURATIONS:
        return _duration(reader, key)
    if key in RESOURCES:
        return reader.quantities(key) if key in reader else reader.take(key)
    return reader.take(key)


def _duration(reader: Reader, key: str) -> Duration | None:
    """A number counts milliseconds."""
    if isinstance(reader.value.get(key), str):
        return reader.duration(key)
    millis = reader.number(key)
    if millis is None:
        return None
    return int(millis // 1000) if millis % 1000 == 0 else millis / 1000


def _struct(reader: Reader, kind: Any, values: dict[str, Any]) -> Any:
    """The struct of ``values``; those of a wrong type are findings and left out."""
    valid: dict[str, Any] = {}
    for key, value in values.items():
        try:
            msgspec.convert({key: value}, kind)
        except msgspec.ValidationError as error:
            reader.warn(key, str(error).partition(" - at")[0], "error", "wrong-type")
        else:
            valid[key] = value
    return msgspec.convert(valid, kind) if valid else None


_SPELLED = re.compile(r"[0-9]+(\.[0-9]+)?(ms|s|m|h)")
"""Durations that YTsaurus reads as text: one number, one unit."""


def export(configuration: Configuration) -> Exported:
    """YSON, as ``yt get`` prints a tree with its attributes; durations in milliseconds, or as spelled where YTsaurus
    reads that. It has no comments, so that what is lost is in the findings alone."""
    lost = Lost()
    lost.other_blocks(configuration, "ytsaurus")
    lost.flavors(configuration, "YTsaurus")
    settings = configuration.settings.ytsaurus
    if settings is not None and settings.rules != ytsaurus.Settings().rules:
        lost.add(("settings", "ytsaurus", "rules"), "which rules decide is a choice of Arbiter, not of YTsaurus")
    attributes: dict[str, Any] = {"config": {}}
    if settings is not None:
        attributes["config"] = _written_values(settings, TREE_FIELDS, ("settings", "ytsaurus"), lost)
    pools: dict[str, Any] = {}
    below: dict[str, dict[str, Any]] = {}
    for path, queue in parents_first(configuration.queues):
        pool = lost.native(
            path, _written_pool(queue, path, lost, configuration.engine), _own(queue.native, path, lost), "ytsaurus"
        )
        siblings = pools if queue.parent is None else below[queue.parent]
        below[queue.name] = {}
        siblings[queue.name] = {"$attributes": pool, "$value": below[queue.name]}
    lost.objects(configuration, "ytsaurus", ())
    attributes = lost.native((), attributes, _own(configuration.native, (), lost), "ytsaurus")
    return Exported(write_yson({"$attributes": attributes, "$value": pools}), lost.findings, MEDIA_TYPE)


def _own(native: Native | None, path: Path, lost: Lost) -> Native | None:
    """What was kept. Pools are the configuration's."""
    if native is None or "pools" not in native.ytsaurus:
        return native
    lost.add((*path, "native", "ytsaurus", "pools"), "the configuration has the pools: these are left out")
    return Native(ytsaurus={key: value for key, value in native.ytsaurus.items() if key != "pools"})


def _written_pool(queue: Queue, path: Path, lost: Lost, engine: EngineName | None) -> dict[str, Any]:
    lost.queue(path, queue, "YTsaurus", weight=True, priority=False, created=False)
    shown: dict[str, Any] = {}
    if queue.has_weight:
        shown["weight"] = number(queue.weight)
    guaranteed: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    quotas = renamed(flat_quota(queue, path, "YTsaurus", lost), engine, "ytsaurus", lost)
    for resource, (where, quota) in quotas.items():
        lost.quota(where, quota, "YTsaurus", ("borrowing_limit", "lending_limit", "weight"))
        for field, side in (("guaranteed", guaranteed), ("limit", limits)):
            value = getattr(quota, field)
            if value == "unlimited" and field == "guaranteed":
                lost.add((*where, field), "YTsaurus has no unlimited guarantee: left out")
            elif value is not None and value != "unlimited":
                side[resource] = units(parse_quantity(value, scale_of(resource)), resource)
    block = queue.ytsaurus or ytsaurus.Queue()
    limits |= block.resource_limits or {}
    if guaranteed:
        shown["strong_guarantee_resources"] = guaranteed
    if limits:
        shown["resource_limits"] = limits
    if block.mode != "fair_share":
        shown["mode"] = block.mode
    return shown | _written_values(block, POOL_FIELDS, (*path, "ytsaurus"), lost)


def _written_values(block: msgspec.Struct, fields: tuple[str, ...], path: Path, lost: Lost) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for field in fields:
        value = getattr(block, field)
        if value is None:
            continue
        if isinstance(value, msgspec.Struct):
            shown[field] = _written_values(value, value.__struct_fields__, (*path, field), lost)
            continue
        if field in DURATIONS and not (isinstance(value, str) and _SPELLED.fullmatch(value)):
            micros = base.parse_duration(value)
            if micros % 1000:
                lost.add((*path, field), "YTsaurus counts milliseconds: rounded")
            value = round(micros / 1000)
        shown[field] = number(value) if isinstance(value, float) else value
    return shown
