"""Durations with KAI's units, defaults, and bad values under both rule sets."""

from typing import Any

import msgspec
import pytest

from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput


def configuration(queue: dict[str, Any] | None = None, **settings: Any) -> Configuration:
    document = {
        "engine": "kai",
        "settings": {"kai": settings},
        "queues": [{"name": "root"}, {"name": "leaf", "parent": "root", "kai": queue or {}}],
    }
    return msgspec.convert(document, Configuration)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"default_reclaim_min_runtime": -1}, "default_reclaim_min_runtime"),
        ({"default_preempt_min_runtime": "soon"}, "default_preempt_min_runtime"),
        ({"reclaim_resolve_method": "leaf"}, "reclaim_resolve_method"),
    ],
)
def test_documented_refuses_what_shipped_replaces_with_a_warning(settings: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        solve.configure(configuration(**settings))
    assert [p.pointer for p in caught.value.problems] == [f"/configuration/settings/kai/{field}"]

    shipped = configuration(rules="shipped", **settings)
    effective = solve.effective_settings(solve.configure(shipped), None)["settings"]
    assert effective["default_reclaim_min_runtime"] == 0
    assert effective["default_preempt_min_runtime"] == 0
    assert effective["reclaim_resolve_method"] == "lca"
    warnings = [f for f in solve.findings(shipped) if f.rule == "kai-setting-replaced"]
    assert [(f.severity, f.pointer) for f in warnings] == [("warning", f"/settings/kai/{field}")]


def test_a_queue_value_that_is_no_duration_is_always_refused_and_a_negative_one_when_documented() -> None:
    for rules in ("documented", "shipped"):
        with pytest.raises(InvalidInput, match="/configuration/queues/1/kai/preempt_min_runtime"):
            solve.configure(configuration({"preempt_min_runtime": "later"}, rules=rules))
    negative = {"reclaim_min_runtime": "-30s"}
    with pytest.raises(InvalidInput, match="negative"):
        solve.configure(configuration(negative))
    effective = solve.effective_settings(solve.configure(configuration(negative, rules="shipped")), None)
    assert effective["queues"]["leaf"]["reclaim_min_runtime"] == -30


def test_effective_settings_name_where_a_value_comes_from() -> None:
    document = configuration(
        {"reclaim_min_runtime": 0}, default_reclaim_min_runtime="1h", default_preempt_min_runtime=5
    )
    answer = solve.effective_settings(solve.configure(document), None)
    leaf = answer["queues"]["leaf"]
    assert (leaf["reclaim_min_runtime"], leaf["reclaim_min_runtime_set_by"]) == (0, "leaf")
    assert (leaf["preempt_min_runtime"], leaf["preempt_min_runtime_set_by"]) == (5, None)
    assert answer["queues"]["root"]["reclaim_min_runtime"] == 3600
    assert answer["settings"]["actions"] == ["allocate", "consolidation", "reclaim", "preempt"]


def grouped(*quotas: dict[str, object]) -> Configuration:
    """A root whose quotas stand in resource groups, one flavor each."""
    groups = [{"resources": list(of), "flavors": [{"name": "f", "quota": of}]} for of in quotas]
    return msgspec.convert({"engine": "kai", "queues": [{"name": "root", "resource_groups": groups}]}, Configuration)


def test_quotas_in_resource_groups_are_read_and_pointed_at_where_they_stand() -> None:
    document = grouped(
        {"cpu": {"guaranteed": 4, "limit": 2}, "x/y": {"guaranteed": 1}},
        {"nvidia.com/gpu": {"guaranteed": 3, "borrowing_limit": 1, "weight": 5}},
    )
    found = {(f.rule, f.pointer) for f in solve.findings(document)}
    assert found == {
        ("kai-deserved-over-limit", "/queues/0/resource_groups/0/flavors/0/quota/cpu"),
        ("kai-unread", "/queues/0/resource_groups/0/flavors/0/quota/x~1y"),
        ("kai-unread", "/queues/0/resource_groups/1/flavors/0/quota/nvidia.com~1gpu/borrowing_limit"),
    }
    root = solve.effective_settings(solve.configure(document), None)["queues"]["root"]
    assert root["deserved"] == {"cpu": 4, "memory": 0, "nvidia.com/gpu": 3}
    assert root["limit"] == {"cpu": 2, "memory": "unlimited", "nvidia.com/gpu": "unlimited"}
    assert root["over_quota_weight"] == {"cpu": 1.0, "memory": 1.0, "nvidia.com/gpu": 5.0}


def test_two_gpu_resources_are_refused_where_they_stand() -> None:
    with pytest.raises(InvalidInput) as refused:
        solve.configure(grouped({"gpu": {}}, {"cpu": {}, "amd.com/gpu": {}}))
    assert [p.pointer for p in refused.value.problems] == [
        "/configuration/queues/0/resource_groups/0/flavors/0/quota/gpu",
        "/configuration/queues/0/resource_groups/1/flavors/0/quota/amd.com~1gpu",
    ]


def test_several_flavors_are_refused() -> None:
    two = [{"name": name, "quota": {"cpu": {"guaranteed": 1}}} for name in "ab"]
    group = {"resources": ["cpu"], "flavors": two}
    document = {"engine": "kai", "queues": [{"name": "root"}, {"name": "leaf", "resource_groups": [group]}]}
    with pytest.raises(InvalidInput) as refused:
        solve.configure(msgspec.convert(document, Configuration))
    at = "/configuration/queues/1/resource_groups/0/flavors"
    assert [p.pointer for p in refused.value.problems if "KAI has no flavors" in p.detail] == [at]
