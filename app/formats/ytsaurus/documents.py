"""YTsaurus' documents before they are read: YSON, and what a pool tree takes from elsewhere.

YSON is what ``yt get`` prints, text or binary, one document; attributes are ``{$attributes: …, $value: …}``. The parser
is YTsaurus' own, the extra ``arbiter-preemption[yson]``. What it makes is walked once, without recursion, and bounded
as other documents are. Writing text needs no extra.

A pool tree takes the templates of the scheduler's configuration that hold for it, and its pools presets. Source:
``TPoolsConfigParser`` and the strategy's ``BuildConfig``: what a tree or a pool says itself goes before a preset and a
template; maps are merged.
"""

import importlib
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from app.base.documents import MAX_BYTES, MAX_DEPTH, MAX_VALUES, Path, Unreadable, as_mapping, read
from app.formats.reader import Fields, Findings, Reader, each
from app.solver.model import ytsaurus
from app.solver.question import safe_point

MEDIA_TYPE = "application/x-yt-yson-text"
"""Of text, as YTsaurus' HTTP proxies call it."""
_TEXT = re.compile(rb'\s*(<|\{\s*("(?:[^"\\]|\\.){0,500}"|[A-Za-z_][\w.\-]{0,500})\s*=|\{\s*\x01|\x01)')
_DEEP = re.compile(rb'"(?:[^"\\]|\\.)*"|[<\[{>\]}]', re.DOTALL)
_BINARY_STRING = b"\x01"


def is_yson(body: bytes) -> bool:
    """Whether ``body`` begins as YSON does and no JSON or YAML: with attributes, or a key before ``=``."""
    return _TEXT.match(body[:2048]) is not None


def read_any(body: bytes) -> list[tuple[Path, Any]]:
    """The documents of ``body``, in YSON, JSON or YAML. Raises Unreadable."""
    return read_yson(body) if is_yson(body) else read(body)


def read_yson(body: bytes) -> list[tuple[Path, Any]]:
    """The document of ``body``. Raises Unreadable."""
    if len(body) > MAX_BYTES:
        raise Unreadable(f"{len(body)} bytes: a manifest may have {MAX_BYTES}")
    _refuse_depth(body)
    try:
        parser: Any = importlib.import_module("yt.yson")
    except ImportError:
        raise Unreadable("this is YSON: to read it, install arbiter-preemption[yson]") from None
    safe_point()
    try:
        parsed = parser.loads(body, encoding=None, always_create_attributes=False)
    except (parser.YsonError, ValueError, TypeError, RecursionError) as error:
        raise Unreadable(
            f"no YSON: {str(error).splitlines()[0][:300] if str(error) else 'it ends too early'}"
        ) from None
    return [((), _plain(parsed))]


def _refuse_depth(body: bytes) -> None:
    """Brackets of text are counted before anybody recurses into them; in binary form strings hide brackets, so that the
    count is of no use, and the parser's own limit holds."""
    if _BINARY_STRING in body:
        return
    depth = 0
    for match in _DEEP.finditer(body):
        word = match[0]
        if word in b"<[{":
            depth += 1
            if depth > 2 * MAX_DEPTH:
                raise Unreadable(f"nested deeper than {MAX_DEPTH} levels")
        elif word in b">]}":
            depth -= 1


def _plain(root: Any) -> Any:
    """Dicts, lists and scalars. Raises Unreadable for what is too deep, too large or no text."""
    holder: list[Any] = [None]
    pending: list[tuple[Any, Any, Any, int]] = [(root, holder, 0, 1)]
    values = 0
    while pending:
        value, into, key, depth = pending.pop()
        safe_point()
        values += 1
        if depth > MAX_DEPTH:
            raise Unreadable(f"nested deeper than {MAX_DEPTH} levels")
        if values > MAX_VALUES:
            raise Unreadable(f"more than {MAX_VALUES} values")
        attributes = getattr(value, "attributes", None)
        if attributes:
            pair: dict[str, Any] = {"$attributes": None, "$value": None}
            into[key] = pair
            pending.append((dict(attributes), pair, "$attributes", depth + 1))
            into, key = pair, "$value"
        into[key] = _node(value, pending, depth)
    return holder[0]


def _node(value: Any, pending: list[tuple[Any, Any, Any, int]], depth: int) -> Any:
    if isinstance(value, dict):
        mapping = cast(dict[Any, Any], value)
        plain: dict[str, Any] = {_text(key): None for key in mapping}
        pending += [(inner, plain, _text(key), depth + 1) for key, inner in mapping.items()]
        return plain
    if isinstance(value, list):
        listed = cast(list[Any], value)
        items: list[Any] = [None] * len(listed)
        pending += [(inner, items, i, depth + 1) for i, inner in enumerate(listed)]
        return items
    return _scalar(value)


def _scalar(value: Any) -> Any:
    """Subclasses that carry attributes become the plain types that they are."""
    if isinstance(value, (bytes, str)):
        return _text(value)
    if type(value).__name__ == "YsonBoolean":
        return bool(value)
    if type(value).__name__ == "YsonEntity" or value is None:
        return None
    if isinstance(value, bool):
        return value
    return int(value) if isinstance(value, int) else float(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    try:
        return bytes(value).decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"a string is not UTF-8 at its byte {error.start}") from None


_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_ESCAPED = re.compile(r'[\x00-\x1f"\\\x7f]')


def write_yson(value: Any) -> str:
    """``value`` as text YSON that reads back as it was, a key or an item a line. Numbers are finite; integers have 64
    bits."""
    parts: list[str] = []
    _write(value, "\n", parts)
    return "".join(parts) + "\n"


def _write(value: Any, line: str, parts: list[str]) -> None:
    """``line``: what begins one, its indent included."""
    safe_point()
    if _has_attributes(value) and not _has_attributes(value["$value"]):  # which only one level of a node can have
        if value["$attributes"]:
            _write_pairs(value["$attributes"], "<>", line, parts)
            parts.append(" ")
        value = value["$value"]
    if isinstance(value, dict):
        _write_pairs(cast(dict[str, Any], value), "{}", line, parts)
    elif isinstance(value, list):
        parts.append("[")
        for item in cast(list[Any], value):
            parts.append(f"{line}    ")
            _write(item, f"{line}    ", parts)
            parts.append(";")
        parts.append(f"{line}]" if value else "]")
    else:
        parts.append(_written(value))


def _has_attributes(value: Any) -> bool:
    node = as_mapping(value)
    return set(node) == {"$attributes", "$value"} and isinstance(node["$attributes"], dict)


def _write_pairs(pairs: dict[str, Any], brackets: str, line: str, parts: list[str]) -> None:
    parts.append(brackets[0])
    for key, inner in pairs.items():
        parts.append(f"{line}    {key if _PLAIN_KEY.fullmatch(key) else _written(key)} = ")
        _write(inner, f"{line}    ", parts)
        parts.append(";")
    parts.append(f"{line}{brackets[1]}" if pairs else brackets[1])


def _written(value: Any) -> str:
    if isinstance(value, str):
        return f'"{_ESCAPED.sub(_escape, value)}"'
    if isinstance(value, bool):
        return "%true" if value else "%false"
    return "#" if value is None else repr(value)


def _escape(match: re.Match[str]) -> str:
    """Three octal digits: what comes after them can't be taken for more of them."""
    character = match[0]
    return f"\\{character}" if character in '"\\' else f"\\{ord(character):03o}"


Attributes = Mapping[str, Any]
TEMPLATES = "template_pool_tree_config_map"
PRESETS = "pool_config_presets"
_OF_PRESETS = frozenset({
    "fair_share_starvation_timeout", "fair_share_preemption_timeout", "fair_share_starvation_tolerance",
    "enable_aggressive_starvation", "allow_aggressive_preemption", "allow_normal_preemption",
    "allow_regular_allocations_on_ssd_nodes", "allow_regular_jobs_on_ssd_nodes", "enable_lightweight_operations",
})  # fmt: skip
"""YTsaurus: ``TPoolPresetConfig``."""
_SIMPLE = re.compile(r"(?:[^*+?{)\\]|\\.|\)(?![*+?{])|[*+?](?!\+)){0,200}", re.DOTALL)
_REPEATED = re.compile(r"[*+?]")


def is_scheduler_configuration(document: Any) -> bool:
    """Whether this is ``//sys/scheduler/config`` with templates of trees."""
    return TEMPLATES in as_mapping(document) or TEMPLATES in as_mapping(as_mapping(document).get("$value"))


def one_tree(documents: list[tuple[Path, Any]], findings: Findings) -> list[tuple[Path, Any]]:
    """``documents`` without the scheduler's configuration, and of several trees together (``//sys/pool_trees``) the
    default one, else the first; with its templates' settings below its own."""
    templates = [(path, _templates(document)) for path, document in documents if is_scheduler_configuration(document)]
    trees: list[tuple[Path, Any]] = []
    for path, document in documents:
        if not is_scheduler_configuration(document):
            place, name, tree = _chosen(path, document, findings)
            for where, of in templates:
                tree = _with_templates(tree, place, name, of, where, findings)
            trees.append((place, tree))
    return trees


def with_preset(pool: Reader, presets: Attributes) -> Attributes:
    """What the pool says, and of its preset what it does not say itself; each of that is a finding of severity info."""
    name = pool.value.get("config_preset")
    if not isinstance(name, str):
        return pool.value
    preset = presets.get(name)
    wrong = [f"no preset {name!r} among the tree's {PRESETS}"] if not isinstance(preset, dict) else [
        f"{key!r} is no option of a preset" for key in as_mapping(preset) if key not in _OF_PRESETS
    ]  # fmt: skip
    for detail in wrong:
        pool.warn("config_preset", f"{detail}: YTsaurus takes no change of the tree", "error", "unresolved")
    used = {key: value for key, value in as_mapping(preset).items() if key in _OF_PRESETS and key not in pool.value}
    for key in used:
        pool.warn(key, f"of preset {name!r}; an export writes it at the pool", "info", "resolved")
    return {**pool.value, **used}


def _chosen(path: Path, document: Any, findings: Findings) -> tuple[Path, str | None, Any]:
    """The place of the tree, its name where the source says it, and the tree."""
    attributes = as_mapping(as_mapping(document).get("$attributes"))
    trees = as_mapping(as_mapping(document).get("$value"))
    if not trees or not all("config" in as_mapping(as_mapping(tree).get("$attributes")) for tree in trees.values()):
        said = attributes.get("name") or str(attributes.get("path") or "").rpartition("/")[2]
        return path, said if isinstance(said, str) and said else None, document
    default = attributes.get("default_tree")
    name = default if isinstance(default, str) and default in trees else next(iter(trees))
    for other in trees:
        if other != name:
            detail = f"pool tree {other!r} is a cluster of its own: left out, {name!r} is read"
            findings.add("not-carried", "warning", (*path, "$value", other), detail)
    return (*path, "$value", name), name, trees[name]


def _templates(document: Any) -> Attributes:
    top = as_mapping(document)
    return as_mapping(top.get(TEMPLATES) or as_mapping(top.get("$value")).get(TEMPLATES))


def _with_templates(
    tree: Any, path: Path, name: str | None, templates: Attributes, where: Path, findings: Findings
) -> Any:
    """``tree`` with the settings of templates whose filter is its whole name; of two the one of higher priority."""
    matching: list[tuple[int, str, Attributes]] = []
    for key, template in templates.items():
        of = as_mapping(template)
        if of.get("filter") is None:
            continue
        if name is None:
            detail = "the source does not say the tree's name, by which templates hold: `yt get //sys/pool_trees` does"
            findings.add("unresolved", "error", path, detail)
            return tree
        if _matches(of["filter"], name, (*where, TEMPLATES, key), findings):
            priority = of.get("priority")
            matching.append((priority if isinstance(priority, int) else 0, key, as_mapping(of.get("config"))))
    plain = "$attributes" not in as_mapping(tree)
    attributes = dict(as_mapping(tree) if plain else as_mapping(as_mapping(tree)["$attributes"]))
    place: Path = path if plain else (*path, "$attributes")
    holder: Path = (*place, "config") if "config" in attributes else place
    own = as_mapping(attributes["config"]) if "config" in attributes else attributes
    settings: Attributes = {}
    said: dict[str, str] = {}
    for _, key, config in sorted(matching, key=lambda match: match[0]):
        settings = _patched(settings, config)
        said |= dict.fromkeys(config, key)
    settings = _patched(settings, own)
    for field, key in said.items():
        if settings[field] != own.get(field):
            detail = f"of template {key!r} of the scheduler's configuration; an export writes it at the tree"
            findings.add("resolved", "info", (*holder, field), detail)
    attributes = {**attributes, "config": settings} if "config" in attributes else dict(settings)
    return attributes if plain else {**as_mapping(tree), "$attributes": attributes}


def _matches(pattern: Any, name: str, path: Path, findings: Findings) -> bool:
    """Whether ``pattern`` is all of ``name``. Those that could take long to look for are findings."""
    simple = isinstance(pattern, str) and _SIMPLE.fullmatch(pattern) and len(_REPEATED.findall(pattern)) <= 3
    if simple and len(name) <= 100:
        try:
            return re.fullmatch(cast(str, pattern), name) is not None
        except re.error:
            pass
    detail = f"whether it holds for pool tree {name[:100]!r} is not decided: no plain regular expression"
    findings.add("unresolved", "error", (*path, "filter"), detail)
    return False


def _patched(below: Attributes, above: Attributes) -> dict[str, Any]:
    """``above`` over ``below``; maps of both are merged."""
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _patched(as_mapping(merged[key]), as_mapping(value)) if both else value
    return merged


TREE_FIELDS = tuple(name for name in ytsaurus.Settings.__struct_fields__ if name not in ("rules", "release"))
POOL_FIELDS = tuple(name for name in ytsaurus.Queue.__struct_fields__ if name not in ("mode", "resource_limits"))
_OF_ELEMENTS = """
    scheduling_status effective_fair_share_starvation_tolerance effective_fair_share_starvation_timeout
    effective_non_preemptible_resource_usage_threshold effective_waiting_for_resources_on_node_timeout
    lowest_aggressively_starving_ancestor lowest_starving_ancestor max_share_ratio dominant_resource usage_share
    usage_ratio dominant_usage_share demand_share demand_ratio dominant_demand_share resource_limits limits_share
    scheduling_tag_filter_resource_limits limited_resource_demand limited_demand_share dominant_limited_demand_share
    min_share strong_guarantee_share strong_guarantee_share_by_tier min_share_resources effective_min_share_resources
    effective_strong_guarantee_resources inferred_strong_guarantee_resources min_share_ratio fair_share_ratio
    detailed_fair_share detailed_dominant_fair_share fair_resources detailed_promised_guarantee_fair_share
    detailed_dominant_promised_guarantee_fair_share promised_fair_share promised_dominant_fair_share
    promised_fair_share_resources estimated_guarantee_share dominant_estimated_guarantee_share
    estimated_guarantee_resources proposed_integral_share best_allocation_share fair_share_functions_statistics
    satisfaction_ratio local_satisfaction_ratio schedulable"""
"""What an orchid shows of pools and of operations alike, and nothing is decided by."""
FIELDS: Final[Fields] = {
    "PoolTree": {
        **each("decided", " ".join((*TREE_FIELDS, "pool_config_presets")), "config."),
        **each("warning", """
            enable_fair_share_truncation_in_fifo_pool packing scheduling_segments ssd_priority_preemption
            default_gpu_full_host_preemption gpu_scheduling_policy batch_operation_scheduling
            max_schedulable_element_count_in_fifo_pool preemption_check_starvation preemption_check_satisfaction
            enable_conditional_preemption min_job_resource_limits max_job_resource_limits guaranteed_job_resources
            min_node_resource_limits allow_gang_operations_only_in_fifo_pools enable_guarantee_priority_scheduling
            consider_single_allocation_vanilla_operations_as_gang testing_options
            max_running_operation_count max_running_operation_count_per_pool""", "config."),
        **each("info", """
            node_tag_filter default_parent_pool forbid_immediate_operations_in_root max_ephemeral_pools_per_user
            max_operation_count max_operation_count_per_pool use_user_default_parent_pool_map
            non_tentative_operation_types tentative_tree_saturation_deactivation_period
            allow_single_job_large_gpu_operations_in_multiple_trees use_precommit_for_preemption""", "config."),
        "nodes_filter": "info",
        **each("none", """
            enable_unrecognized_alert heartbeat_tree_scheduling_info_log_backoff enable_operations_profiling
            update_preemptible_list_duration_logging_threshold custom_profiling_tag_filter node_reconnection_timeout
            best_allocation_share_update_period enable_by_user_profiling enable_pools_vector_profiling
            enable_resource_tree_structure_lock_profiling enable_resource_tree_usage_lock_profiling
            enable_operations_vector_profiling sparsify_fair_share_profiling enable_limiting_ancestor_check
            profiled_pool_resources profiled_operation_resources waiting_for_resources_on_node_timeout
            min_child_heap_size metering_tags allowed_resource_usage_staleness
            cached_allocation_preemption_statuses_update_period max_event_log_pool_batch_size
            max_event_log_operation_batch_size accumulated_resource_distribution_update_period
            enable_scheduled_and_preempted_resources_profiling check_operation_for_liveness_in_preschedule
            running_allocation_statistics_update_period per_pool_satisfaction_digest
            per_pool_satisfaction_profiling_quantiles min_node_resource_limits_check_period
            enable_detailed_logs_for_starving_operations
            enable_detailed_logs_for_single_allocation_vanilla_operations enable_preliminary_resource_limits_check
            enable_resource_tree_random_sleeps""", "config."),
    },
    "Pool": {
        **each("decided", "weight strong_guarantee_resources resource_limits mode config_preset fifo_sort_parameters"),
        **each("decided", " ".join(POOL_FIELDS)),
        **each("warning", """
            max_share_ratio allow_regular_allocations_on_ssd_nodes enable_lightweight_operations
            fifo_pool_scheduling_order historic_usage_aggregation_period infer_children_weights_from_historic_usage
            use_pool_satisfaction_for_scheduling enable_priority_scheduling_segment_module_assignment
            max_running_operation_count"""),
        **each("info", """
            max_operation_count create_ephemeral_subpools ephemeral_subpool_config allowed_profiling_tags
            offloading_settings allow_idle_cpu_policy"""),
        **each("none", "enable_by_user_profiling abc enable_detailed_logs metering_tags"),
    },
    "Operation": {
        **each("decided", """
            pool weight resource_limits is_gang preemption_mode fair_share_starvation_tolerance
            fair_share_starvation_timeout non_preemptible_resource_usage_threshold
            max_unpreemptible_running_job_count allocation_preemption_timeout job_interrupt_timeout
            allocation_graceful_preemption_timeout scheduling_options_per_pool_tree"""),
        **each("error", """
            scheduling_tag_filter max_share_ratio scheduling_options_per_pool_tree.physical.scheduling_tag_filter
            scheduling_options_per_pool_tree.physical.max_share_ratio"""),
        **each("warning", """
            pool_trees schedule_in_single_tree tentative_pool_trees probing_pool_tree
            use_default_tentative_pool_trees scheduling_segment scheduling_segment_modules
            apply_specified_resource_limits_to_demand"""),
        **each("none", """
            strong_guarantee_resources enable_aggressive_starvation
            max_concurrent_controller_schedule_allocation_calls
            consider_guarantees_for_single_tree tentative_tree_eligibility custom_profiling_tag
            update_preemptible_allocations_list_logging_period try_avoid_duplicating_jobs
            max_speculative_job_count_per_task max_probing_job_count_per_task probing_ratio
            enable_limiting_ancestor_check testing_operation_options erase_trees_with_pool_limit_violations
            allow_idle_cpu_policy"""),
    },
    "OrchidNode": {
        **each("decided", "resource_limits tags state"),
        **each("none", """
            scheduler_state scheduling_heartbeat_complexity master_state resource_usage data_center
            infiniband_cluster last_non_preemptive_heartbeat_statistics last_preemptive_heartbeat_statistics"""),
    },
    "OrchidOperation": {
        **each("decided", "start_time running_jobs running_allocations pool suspended spec"),
        **each("warning", "state"),
        **each("none", """
            operation_id operation_type authenticated_user mutation_id user_transaction_id unrecognized_spec
            full_spec task_names events slot_index_per_pool_tree"""),
    },
    "OrchidPool": {
        **each("decided", """
            mode parent strong_guarantee_resources specified_resource_limits forbid_immediate_operations
            effective_aggressive_starvation_enabled specified_resource_limits_overcommit_tolerance
            priority_strong_guarantee_adjustment_enabled priority_strong_guarantee_adjustment_donorship_enabled
            integral_guarantee_type specified_resource_flow specified_burst_guarantee_resources
            accumulated_resource_volume fair_share_starvation_tolerance fair_share_starvation_timeout
            starvation_status weight"""),
        **each("warning", "fifo_sort_parameters"),
        **each("none", _OF_ELEMENTS),
        **each("none", """
            resource_usage resource_demand running_operation_count lightweight_running_operation_count
            schedulable_operation_count pool_operation_count operation_count max_running_operation_count
            max_operation_count total_resource_flow_ratio total_burst_ratio aggressive_starvation_enabled
            lightweight_operations_enabled effective_lightweight_operations_enabled gang_operations_allowed
            is_ephemeral integral_pool_capacity specified_burst_ratio specified_resource_flow_ratio
            accumulated_resource_ratio_volume estimated_burst_usage_duration_seconds abc full_path child_pool_count
            redirect_to_cluster"""),
    },
    "OrchidShares": {
        **each("decided", """
            pool is_gang allocation_preemption_timeout allocation_graceful_preemption_timeout
            fair_share_starvation_tolerance fair_share_starvation_timeout resource_usage resource_demand
            starvation_status weight"""),
        **each("none", _OF_ELEMENTS),
        **each("none", """
            strong_guarantee_resources specified_resource_limits specified_resource_limits_overcommit_tolerance
            effective_aggressive_starvation_enabled slot_index start_time fifo_index grouped_needed_resources
            detailed_min_needed_job_resources aggregated_min_needed_job_resources tentative probing offloading
            starving_since lightweight disk_request_media unschedulable_reason user type title"""),
    },
}  # fmt: skip
"""What becomes of every field of its documents."""
