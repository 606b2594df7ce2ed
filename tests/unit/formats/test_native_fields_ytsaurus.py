"""Each option of a pool tree, a pool and an operation of YTsaurus that decisions depend on, with another value: what is
read is another, or a finding names it. Of every other option is said what the table says."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.base.documents import Path
from app.formats.reader import Effect, Findings
from app.formats.work.read import Beside, Cluster
from app.formats.ytsaurus.configuration import DURATIONS
from app.formats.ytsaurus.orchid import plan_operations
from app.solver.model.configuration import Configuration
from tests.support.left_out import imported, said
from tests.support.native_fields import decided_on, fields, unused

Json = dict[str, Any]
AMOUNTS = {"cpu": 7}
NUMBERS = {
    "fair_share_starvation_tolerance": 0.6, "preemption_satisfaction_threshold": 0.9,
    "aggressive_preemption_satisfaction_threshold": 0.3, "max_unpreemptible_running_job_count": 4,
    "allocation_count_preemption_timeout_coefficient": 2.0, "infer_weight_from_guarantees_share_multiplier": 3.0,
    "relaxed_share_multiplier_limit": 2.5, "weight": 3.5,
}  # fmt: skip
WORDS: Json = {
    "main_resource": "gpu", "scheduling_preemption_priority_scope": "operation_only", "mode": "fifo",
    "config_preset": "other", "fifo_sort_parameters": ["start_time"], "scheduling_tag_filter": "b & !c",
    "guarantee_type": "relaxed", "preemption_mode": "graceful", "pool": "q",
    "pool_config_presets": {"calm": {"fair_share_starvation_timeout": 9000}},
}  # fmt: skip
TURNED = {
    "enable_aggressive_starvation", "enable_absolute_fair_share_starvation_tolerance", "can_accept_free_volume",
    "consider_allocation_on_fair_share_bound_preemptible", "allow_preemption_from_starving_operations",
    "enable_best_allocation_share", "enable_step_function_for_gang_operations", "is_gang", "enable_pool_starvation",
    "enable_improved_fair_share_by_fit_factor_computation", "should_distribute_free_volume_among_children",
    "enable_improved_fair_share_by_fit_factor_computation_distribution_gap", "allow_aggressive_preemption",
    "enable_fifo_children_reordering_for_guarantee_utilization", "allow_aggressive_preemption_for_gang_operations",
    "allow_normal_preemption", "forbid_immediate_operations", "enable_fair_share_truncation_in_fifo_pool",
    "compute_promised_guarantee_fair_share", "enable_priority_strong_guarantee_adjustment",
    "enable_priority_strong_guarantee_adjustment_donorship",
}  # fmt: skip
MAPS = {
    "non_preemptible_resource_usage_threshold", "min_spare_allocation_resources", "strong_guarantee_resources",
    "min_spare_allocation_resources_on_node", "resource_limits", "resource_limits_overcommit_tolerance",
    "resource_flow", "burst_guarantee_resources",
}  # fmt: skip
TREE: Json = {
    "config": {"pool_config_presets": {"calm": {"fair_share_starvation_timeout": 1000}}},
    "pools": {"p": {"config_preset": "calm", "scheduling_tag_filter": "a"}, "q": {}},
}


def other(path: str, was: object = None) -> Any:
    """A value that is not the default."""
    name = path.rpartition(".")[2]
    if name in TURNED:
        return was is not True
    return 7000 if name in DURATIONS else AMOUNTS if name in MAPS else {**NUMBERS, **WORDS}[name]


DECIDED = [(kind, path) for kind, path in fields("ytsaurus") if kind in ("PoolTree", "Pool")]


@pytest.mark.parametrize(("kind", "path"), DECIDED)
def test_another_value_is_another_configuration_or_a_finding(kind: str, path: str) -> None:
    below = "" if kind == "PoolTree" else "pools.p"
    value = other(path, was=path.endswith("can_accept_free_volume"))
    assert unused("ytsaurus", [TREE], kind, path, value, below=below) is None


def planned(spec: Json) -> tuple[Any, list[tuple[str, str]]]:
    """Asks, and where which severity was said."""
    findings = Findings()
    pools = msgspec.convert({"engine": "ytsaurus", "queues": [{"name": "p"}, {"name": "q"}]}, Configuration)
    cluster = Cluster(pools, Beside(), findings, datetime(2026, 11, 22, tzinfo=UTC))
    documents: list[tuple[Path, Any]] = [((), spec)]
    asks = [ask for one in plan_operations(documents, cluster) for ask in one.asks]
    return asks, [(one.severity, one.pointer) for one in findings.all()]


def operation(path: str | None = None, value: object = None) -> Json:
    made: Json = {"pool": "p", "tasks": {"t": {"job_count": 1}}}
    holder, names = made, [] if path is None else path.split(".")
    for name in names[:-1]:
        holder = holder.setdefault(name, {})
    if names:
        holder[names[-1]] = value
    return made


@pytest.mark.parametrize("path", [path for kind, path in fields("ytsaurus") if kind == "Operation"])
def test_another_value_is_another_ask(path: str) -> None:
    assert planned(operation(path, other(path))) != planned(operation())


EFFECTS: tuple[Effect, ...] = ("warning", "error", "info", "none")
OTHERS = [(kind, path, effect) for effect in EFFECTS for kind, path in fields("ytsaurus", effect)
          if not kind.startswith("Orchid")]  # fmt: skip


@pytest.mark.parametrize(("kind", "path", "effect"), OTHERS)
def test_of_what_is_not_decided_is_said_what_the_table_says(kind: str, path: str, effect: Effect) -> None:
    value = ["some"] if path.endswith(("trees", "modules")) else "some"
    value = [*value, "other"] if path == "pool_trees" else value
    if kind == "Operation":
        found = planned(operation(path, value))[1]
    else:
        holder: Json = {"pools": {"p": {}}}
        names = path.split(".") if kind == "PoolTree" else ["pools", "p", path]
        inner = holder
        for name in names[:-1]:
            inner = inner.setdefault(name, {})
        inner[names[-1]] = True if path.endswith(("use_precommit_for_preemption", "truncation_in_fifo_pool")) else value
        found = [(severity, pointer) for severity, _, pointer, _ in said(imported("ytsaurus", holder))]
    last = path.rpartition(".")[2]
    assert {severity for severity, pointer in found if pointer.endswith(f"/{last}")} == (
        set() if effect == "none" else {effect}
    )


PLACES: dict[str, tuple[str, ...]] = {
    "OrchidNode": ("nodes", "n"), "OrchidOperation": ("operations", "op"),
    "OrchidPool": ("pool_trees", "main", "pools", "p"), "OrchidShares": ("pool_trees", "main", "operations", "op"),
}  # fmt: skip
TOLD: Json = {
    "resource_limits": {"cpu": 3}, "tags": ["a"], "state": "offline", "start_time": "2026-11-23T00:00:00Z",
    "running_jobs": {"other": {"address": "n"}}, "running_allocations": {"one": {}, "two": {}}, "suspended": True,
    "spec": {"preemption_mode": "graceful"}, "mode": "fifo", "parent": "<Root>", "weight": 3.0,
    "strong_guarantee_resources": {"cpu": 2}, "specified_resource_limits": {"cpu": 2},
    "forbid_immediate_operations": True,
    "effective_aggressive_starvation_enabled": False, "priority_strong_guarantee_adjustment_enabled": True,
    "specified_resource_limits_overcommit_tolerance": {"cpu": 1}, "integral_guarantee_type": "relaxed",
    "priority_strong_guarantee_adjustment_donorship_enabled": True, "specified_resource_flow": {"cpu": 2},
    "specified_burst_guarantee_resources": {"cpu": 2}, "accumulated_resource_volume": {"cpu": 9.5, "user_memory": 4},
    "fair_share_starvation_tolerance": 0.7, "fair_share_starvation_timeout": 7000, "starvation_status": "starving",
    "fifo_sort_parameters": ["start_time"], "pool": "q", "is_gang": True, "allocation_preemption_timeout": 7000,
    "allocation_graceful_preemption_timeout": 7000, "resource_usage": {"cpu": 2}, "resource_demand": {"cpu": 4},
}  # fmt: skip


def told(kind: str = "", path: str = "", value: object = None) -> Json:
    """An orchid in which every field can matter, with one field of it otherwise."""
    pools: Json = {
        "q": {"effective_aggressive_starvation_enabled": True},
        "p": {"parent": "q", "integral_guarantee_type": "burst", "effective_aggressive_starvation_enabled": True},
    }
    shares = {"pool": "p", "resource_usage": {"cpu": 1}, "resource_demand": {"cpu": 2}}
    jobs: Json = {"running_allocations" if path == "running_allocations" else "running_jobs": {"j": {"address": "n"}}}
    made: Json = {
        "nodes": {"n": {"resource_limits": {"cpu": 4}}}, "operations": {"op": {"start_time": None, **jobs}},
        "pool_trees": {"main": {"pools": pools, "operations": {"op": shares}}},
    }  # fmt: skip
    if path == "pool" and kind == "OrchidOperation":
        del shares["pool"]
    holder = made
    for name in PLACES.get(kind, ()):
        holder = holder[name]
    if kind:
        holder[path] = value
    return made


def of_orchid(effect: Effect) -> list[tuple[str, str]]:
    return [(kind, path) for kind, path in fields("ytsaurus", effect) if kind.startswith("Orchid")]


@pytest.mark.parametrize(("kind", "path"), of_orchid("decided"))
def test_another_value_in_an_orchid_is_another_decision(kind: str, path: str) -> None:
    before, after = (decided_on(imported("ytsaurus", document)) for document in (told(), told(kind, path, TOLD[path])))
    assert before != after


@pytest.mark.parametrize(
    ("kind", "path", "effect"), [(*one, effect) for effect in ("warning", "none") for one in of_orchid(effect)]
)
def test_of_the_rest_of_an_orchid_is_said_what_the_table_says(kind: str, path: str, effect: Effect) -> None:
    value = "pending" if path == "state" else TOLD.get(path, 17)
    before, after = (imported("ytsaurus", document) for document in (told(), told(kind, path, value)))
    found = [(severity, pointer.rpartition("/")[2]) for severity, _, pointer, _ in said(after) if
             pointer not in {one.pointer for one in before.findings}]  # fmt: skip
    assert found == ([] if effect == "none" else [(effect, path)])
    assert decided_on(before) == decided_on(after)


@pytest.mark.parametrize(("option", "severity"), [("scheduling_tag_filter", "error"), ("pool_trees", "warning")])
def test_what_an_operation_in_an_orchid_wants_and_is_not_decided_is_said(option: str, severity: str) -> None:
    found = said(imported("ytsaurus", told("OrchidOperation", "spec", {option: ["a", "b"]})))
    assert [one[0] for one in found if one[2] == f"/operations/op/spec/{option}"] == [severity]
