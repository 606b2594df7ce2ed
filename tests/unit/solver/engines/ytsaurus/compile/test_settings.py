from typing import Any

import msgspec
import pytest

from app.solver import solve
from app.solver.engines.ytsaurus.operations import UNLIMITED_STEPS
from app.solver.engines.ytsaurus.settings import has_overrides
from app.solver.engines.ytsaurus.state import CompiledState
from app.solver.model.configuration import Configuration
from app.solver.model.state import State
from app.solver.model.ytsaurus import Workload
from tests.unit.solver.engines.ytsaurus.cluster import (
    alloc,
    ask,
    effective,
    groups,
    node,
    operation,
    pool,
    refused,
    request,
)

TREE = "/configuration/settings/ytsaurus"


def small(**settings: Any) -> dict[str, Any]:
    return request([pool("a")], [node()], [operation("x", "a")], settings=settings)


def findings(document: dict[str, Any]) -> dict[str, list[str]]:
    found = solve.findings(msgspec.convert({"engine": "ytsaurus"} | document, Configuration))
    out: dict[str, list[str]] = {}
    for one in found:
        out.setdefault(f"{one.severity} {one.rule}", []).append(one.pointer)
    return out


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("fair_share_starvation_tolerance", 1.5, "at most 1"),
        ("preemption_satisfaction_threshold", 0, "above 0"),
        ("aggressive_preemption_satisfaction_threshold", -0.1, "at least 0"),
        ("allocation_count_preemption_timeout_coefficient", 0.5, "at least 1"),
        ("fair_share_starvation_timeout", "-1s", "negative"),
        ("fair_share_starvation_timeout", "soon", "not a duration"),
        ("preemptive_scheduling_backoff", -3, "negative"),
    ],
)
def test_values_out_of_range_are_refused_by_name(name: str, value: Any, says: str) -> None:
    assert says in refused(small(**{name: value}))[f"{TREE}/{name}"]


def test_thresholds_in_the_wrong_order() -> None:
    found = refused(small(preemption_satisfaction_threshold=0.5, aggressive_preemption_satisfaction_threshold=0.6))
    assert "exceeds preemption_satisfaction_threshold" in found[f"{TREE}/aggressive_preemption_satisfaction_threshold"]


def test_equal_thresholds_are_in_order() -> None:
    effective(small(preemption_satisfaction_threshold=0.5, aggressive_preemption_satisfaction_threshold=0.5))


def test_timeouts_in_the_wrong_order() -> None:
    found = refused(small(fair_share_starvation_timeout="3m", fair_share_aggressive_starvation_timeout="2m"))
    assert list(found) == [f"{TREE}/fair_share_aggressive_starvation_timeout"]


def test_all_problems_are_named_at_once() -> None:
    body = small(fair_share_starvation_tolerance=2, preemption_satisfaction_threshold=-1)
    body["configuration"]["queues"][0]["ytsaurus"] = {"fair_share_starvation_timeout": "x"}
    body["configuration"]["queues"][0]["quota"] = {"cpu": {"guaranteed": "unlimited"}}
    assert len(refused(body)) == 5


def test_an_operation_where_its_pool_forbids_it() -> None:
    pools = [pool("a", ytsaurus={"forbid_immediate_operations": True}), pool("b", parent="a")]
    body = request(pools, [node()], [operation("x", "a"), operation("y", "b")])
    assert list(refused(body)) == ["/state/workloads/0/queue"]
    body = request(pools, [node()], [], [ask("z", "a") | {"workload": None}])
    assert list(refused(body)) == ["/asks/0/queue"]


def test_a_pool_under_itself_and_an_unknown_node() -> None:
    body = request([pool("a", parent="b"), pool("b", parent="a")], [node()], [])
    assert "/configuration/queues/0/parent" in refused(body)
    body = request([pool("a")], [node()], [operation("x", "a", [alloc("t", on="nowhere")])])
    assert list(refused(body)) == ["/state/workloads/0/tasks/0/node"]


def test_amounts_that_add_up_to_too_much() -> None:
    huge = {"name": "t", "count": 2**31, "requests": {"memory": 2**53}}
    body = request([pool("a")], [node()], [operation("x", "a", [huge])])
    assert list(refused(body)) == ["/state/workloads"]


def test_inheritance() -> None:
    pools = [
        pool("a", ytsaurus={"fair_share_starvation_timeout": "1m", "allow_aggressive_preemption": False}),
        pool("b", parent="a", ytsaurus={"fair_share_starvation_tolerance": 0.5, "enable_aggressive_starvation": True}),
        pool("c", parent="b", ytsaurus={"allow_aggressive_preemption": True}),
    ]
    options = {"fair_share_starvation_timeout": 10, "fair_share_starvation_tolerance": 0.9}
    body = request(pools, [node()], [operation("x", "c", ytsaurus=options), operation("y", "a")])
    found = effective(body)
    assert found["queues"]["c"]["fair_share_starvation_timeout"] == 60
    assert found["queues"]["c"]["fair_share_starvation_tolerance"] == 0.5
    assert found["queues"]["c"]["enable_aggressive_starvation"] is True
    assert [found["queues"][p]["allow_aggressive_preemption"] for p in "abc"] == [False, False, True]
    # An operation may only be more patient and less demanding than its pool.
    assert found["workloads"]["x"]["fair_share_starvation_timeout"] == 60
    assert found["workloads"]["x"]["fair_share_starvation_tolerance"] == 0.5
    assert found["workloads"]["y"]["fair_share_starvation_tolerance"] == 0.8


def test_an_operation_may_be_more_patient() -> None:
    options = {"fair_share_starvation_timeout": "2m", "fair_share_starvation_tolerance": 0.3}
    found = effective(request([pool("a")], [node()], [operation("x", "a", ytsaurus=options)]))["workloads"]["x"]
    assert (found["fair_share_starvation_timeout"], found["fair_share_starvation_tolerance"]) == (120, 0.3)


def test_thresholds_of_usage_replace_in_pools_and_shrink_in_operations() -> None:
    pools = [pool("a", ytsaurus={"non_preemptible_resource_usage_threshold": {"cpu": 4}}), pool("b", parent="a")]
    pools.append(pool("c", parent="a", ytsaurus={"non_preemptible_resource_usage_threshold": {}}))
    own = {"non_preemptible_resource_usage_threshold": {"cpu": 9, "user_slots": 2}}
    body = request(
        pools, [node()], [operation("x", "b", ytsaurus=own), operation("y", "c")],
        settings={"non_preemptible_resource_usage_threshold": {"memory": 7}},
    )  # fmt: skip
    found = effective(body)
    assert found["queues"]["b"]["non_preemptible_resource_usage_threshold"] == {"cpu": 4}
    assert found["workloads"]["x"]["non_preemptible_resource_usage_threshold"] == {"cpu": 4, "user_slots": 2}
    assert found["workloads"]["y"]["non_preemptible_resource_usage_threshold"] == {}


def test_old_names() -> None:
    body = small(max_unpreemptible_running_job_count=3, job_interrupt_timeout=12)
    found = effective(body)["workloads"]["x"]
    assert found["non_preemptible_resource_usage_threshold"] == {"user_slots": 3}
    assert found["allocation_preemption_timeout"] == 12
    body = small(max_unpreemptible_running_job_count=3, non_preemptible_resource_usage_threshold={"user_slots": 1})
    assert effective(body)["workloads"]["x"]["non_preemptible_resource_usage_threshold"] == {"user_slots": 1}


def test_an_allocation_on_the_bound_by_rule_set_and_by_setting() -> None:
    def first(**settings: Any) -> str:
        tasks = [alloc(f"t{i}", i) for i in range(10)]
        body = request(
            [pool("a"), pool("b")], [node()], [operation("x", "a", tasks), operation("y", "b")],
            [ask("x", "a", 9), ask("y", "b", 10)],
            {"aggressive_preemption_satisfaction_threshold": 0.25, "preemption_satisfaction_threshold": 0.5} | settings,
        )  # fmt: skip
        return "".join(groups(body, "x")[f"t{i}"][0] for i in range(10))

    # Fair share 5: bounds at 1.25 and 2.5 allocations.
    assert first(rules="documented") == "nap" + "p" * 7
    assert first(rules="shipped") == "nnap" + "p" * 6
    assert first(rules="shipped", consider_allocation_on_fair_share_bound_preemptible=True) == "nap" + "p" * 7
    assert first(rules="documented", consider_allocation_on_fair_share_bound_preemptible=False) == "nnap" + "p" * 6


def test_findings() -> None:
    found = findings(
        {
            "flavors": [{"name": "f"}],
            "settings": {"ytsaurus": {"fair_share_starvation_timeout": "5m", "enable_aggressive_starvation": True}},
            "queues": [
                {"name": "a", "quota": {"cpu": {"guaranteed": 4, "limit": 2, "lending_limit": 1}}},
                {"name": "b", "parent": "a", "quota": {"memory": {"guaranteed": 1}}, "ytsaurus": {"mode": "fifo"}},
                {"name": "c", "parent": "b", "ytsaurus": {"fair_share_starvation_timeout": "9m"}},
            ],
        }
    )
    assert found["warning ytsaurus-unread"] == ["/flavors", "/queues/0/quota/cpu/lending_limit"]
    assert found["warning ytsaurus-guarantee-over-limit"] == ["/queues/0/quota/cpu/guaranteed"]
    assert found["warning ytsaurus-fifo-inner-pool"] == ["/queues/1/ytsaurus/mode"]
    late = ["/settings/ytsaurus/fair_share_starvation_timeout", "/queues/2/ytsaurus"]
    assert found["warning ytsaurus-timeout-order"] == late
    assert found["info ytsaurus-no-main-guarantee"] == ["/queues/1/quota"]


def test_flags_of_fair_share_that_come_to_nothing_are_findings() -> None:
    reorder = "enable_fifo_children_reordering_for_guarantee_utilization"
    promised = "compute_promised_guarantee_fair_share"
    settings = {"enable_fair_share_truncation_in_fifo_pool": True, "enable_step_function_for_gang_operations": True}
    queues = [
        {"name": "a", "ytsaurus": {"mode": "fifo", reorder: True, promised: True}},
        {"name": "b", "parent": "a", "ytsaurus": {promised: True, "integral_guarantees": {"guarantee_type": "burst"}}},
        {"name": "c", "ytsaurus": {"enable_priority_strong_guarantee_adjustment": True}},
    ]
    found = findings({"settings": {"ytsaurus": settings}, "queues": queues})
    assert found["info ytsaurus-unread"] == [
        "/settings/ytsaurus/enable_fair_share_truncation_in_fifo_pool", f"/queues/0/ytsaurus/{reorder}",
    ]  # fmt: skip
    assert found["warning ytsaurus-nested-promised-guarantee"] == [f"/queues/1/ytsaurus/{promised}"]
    assert found["warning ytsaurus-no-resource-flow"] == ["/queues/1/ytsaurus/integral_guarantees"]
    assert found["warning ytsaurus-no-burst-guarantee"] == ["/queues/1/ytsaurus/integral_guarantees"]
    at = "/queues/2/ytsaurus/enable_priority_strong_guarantee_adjustment"
    assert found["warning ytsaurus-priority-without-donor"] == [at]
    settings[reorder] = True
    queues[1]["ytsaurus"]["integral_guarantees"] = {"guarantee_type": "relaxed", "resource_flow": {"cpu": 1}}
    found = findings({"settings": {"ytsaurus": settings}, "queues": queues})
    assert found["info ytsaurus-unread"] == ["/settings/ytsaurus/enable_fair_share_truncation_in_fifo_pool"]
    assert not {"warning ytsaurus-no-resource-flow", "warning ytsaurus-no-burst-guarantee"} & set(found)


def test_bad_settings_are_findings_that_refuse() -> None:
    found = findings({"settings": {"ytsaurus": {"preemption_satisfaction_threshold": -1}}, "queues": []})
    assert "/settings/ytsaurus/preemption_satisfaction_threshold" in found["error invalid-document"]


def test_a_pool_of_several_flavors_is_refused() -> None:
    body = small()
    flavors = [{"name": name, "quota": {"cpu": {"guaranteed": 1}}} for name in "xy"]
    body["configuration"]["queues"][0]["resource_groups"] = [{"resources": ["cpu"], "flavors": flavors}]
    assert list(refused(body)) == ["/configuration/queues/0/resource_groups/0/flavors/1"]
    del flavors[1]
    assert effective(body)


OVERRIDES: dict[str, Any] = {
    "fair_share_starvation_tolerance": 0.5, "fair_share_starvation_timeout": 1,
    "non_preemptible_resource_usage_threshold": {}, "max_unpreemptible_running_job_count": 0,
    "allocation_preemption_timeout": 0, "job_interrupt_timeout": 0, "allocation_graceful_preemption_timeout": 0,
    "resource_limits": {},
}  # fmt: skip


@pytest.mark.parametrize("name", OVERRIDES)
def test_whatever_an_operation_says_of_its_settings_counts_alone(name: str) -> None:
    assert has_overrides(msgspec.convert({name: OVERRIDES[name]}, Workload))


def test_what_is_no_setting_overrides_none() -> None:
    assert not has_overrides(Workload())
    assert not has_overrides(msgspec.convert({"starvation": "starving", "is_gang": True, "suspended": True}, Workload))


def of_pools(queues: list[dict[str, Any]], **settings: Any) -> dict[str, list[str]]:
    return findings({"settings": {"ytsaurus": settings}, "queues": queues})


@pytest.mark.parametrize(("timeout", "late"), [("120s", False), ("121s", True)])
def test_who_starves_later_than_aggressively_is_told_to(timeout: str, late: bool) -> None:
    rule, tree = "warning ytsaurus-timeout-order", "/settings/ytsaurus/fair_share_starvation_timeout"
    assert of_pools([], fair_share_starvation_timeout=timeout).get(rule, []) == ([tree] if late else [])
    own = {"fair_share_starvation_timeout": timeout}
    queues = [{"name": "a", "ytsaurus": own}, {"name": "b", "parent": "a"}]
    assert of_pools(queues).get(rule, []) == [], "nobody starves aggressively"
    late_pool = ["/queues/0/ytsaurus"] if late else []
    assert of_pools(queues, enable_aggressive_starvation=True).get(rule, []) == late_pool
    queues[1]["ytsaurus"] = {"enable_aggressive_starvation": True}
    assert of_pools(queues).get(rule, []) == (["/queues/1/ytsaurus"] if late else [])
    queues[1]["ytsaurus"] = {"mode": "fifo"}
    assert of_pools(queues, enable_aggressive_starvation=True).get(rule, []) == late_pool, "b says nothing of it"


def test_findings_about_quotas_at_their_edges() -> None:
    limited = {"cpu": {"guaranteed": 4, "limit": 4}, "memory": {"guaranteed": 3, "limit": 2}}
    group = {"resources": ["memory"], "flavors": [{"name": "x", "quota": {"memory": {"guaranteed": 1}}}]}
    queues = [
        {"name": "a", "quota": limited},
        {"name": "b", "quota": {"cpu": {"guaranteed": 0}, "memory": {"guaranteed": 1, "borrowing_limit": 1}}},
        {"name": "c", "resource_groups": [group], "ytsaurus": {"mode": "fifo"}},
        {"name": "d", "quota": {"cpu": {"limit": 1}}},
    ]
    found = of_pools(queues, use_precommit_for_preemption=True)
    assert found["warning ytsaurus-guarantee-over-limit"] == ["/queues/0/quota/memory/guaranteed"]
    assert found["info ytsaurus-no-main-guarantee"] == ["/queues/1/quota", "/queues/2/resource_groups"]
    assert "warning ytsaurus-fifo-inner-pool" not in found
    assert found["info ytsaurus-unread"] == ["/settings/ytsaurus/use_precommit_for_preemption"]
    assert found["warning ytsaurus-unread"] == ["/queues/1/quota/memory/borrowing_limit"]


REORDER, STEPS = "enable_fifo_children_reordering_for_guarantee_utilization", "enable_step_function_for_gang_operations"


@pytest.mark.parametrize(
    ("tree", "own", "unread"),
    [
        ({REORDER, STEPS}, {}, False),
        ({REORDER}, {}, True),
        ({STEPS}, {}, True),
        ({REORDER, STEPS}, {STEPS: False}, True),
    ],
)
def test_reordering_counts_where_three_flags_say_so(tree: set[str], own: dict[str, Any], unread: bool) -> None:
    found = of_pools([{"name": "a", "ytsaurus": {REORDER: True} | own}], **dict.fromkeys(tree, True))
    assert found.get("info ytsaurus-unread", []) == ([f"/queues/0/ytsaurus/{REORDER}"] if unread else [])


def compiled(body: dict[str, Any]) -> CompiledState:
    configuration = msgspec.convert(body["configuration"], Configuration)
    return solve.load(solve.configure(configuration, "ytsaurus"), msgspec.convert(body["state"], State)).compiled


def test_decisions_go_by_what_operations_say_of_themselves() -> None:
    own = {
        "fair_share_starvation_tolerance": 0.3, "fair_share_starvation_timeout": 50, "allocation_preemption_timeout": 7,
        "allocation_graceful_preemption_timeout": 8, "resource_limits": {"cpu": 5, "user_slots": 3},
        "non_preemptible_resource_usage_threshold": {"cpu": 2},
    }  # fmt: skip
    operations = [
        operation("x", "a", ytsaurus=own, limit={"cpu": 4, "gpu": 1}),
        operation("y", "a", limit={"cpu": 2**53 - 1}),
        operation("z", "a", ytsaurus={"resource_limits": {"cpu": 6}}, limit={"cpu": 7}, weight=2.5),
    ]
    found = compiled(request([pool("a")], [node()], operations))
    of, r = found.operations, found.index.index
    assert of.tolerance.tolist() == [0.3, 0.8, 0.8]
    assert of.timeout.tolist() == [50_000_000, 30_000_000, 30_000_000]
    assert of.preemption_timeout.tolist() == [7_000_000, 30_000_000, 30_000_000]
    assert of.graceful_timeout.tolist() == [8_000_000, 60_000_000, 60_000_000]
    assert of.protects.tolist() == [True, False, False]
    assert of.weight.tolist() == [1, 1, 2.5]
    none = UNLIMITED_STEPS
    assert of.limits[:, [r[name] for name in ("cpu", "user_slots", "gpu")]].tolist() == [
        [4000, 3, 1000], [none, none, none], [6000, none, none],
    ]  # fmt: skip
    assert of.non_preemptible[:, [r["cpu"], r["gpu"]]].tolist() == [[2000, none], [none, none], [none, none]]
