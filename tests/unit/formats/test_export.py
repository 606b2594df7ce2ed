"""What each system is told, and what an export says that it had to leave out."""

import json
from typing import Any

import msgspec
import pytest
import yaml

from app.formats import EXPORTS, Unreadable, export, export_configuration, import_configuration
from app.formats.exported import go_duration, weight_text
from app.formats.ytsaurus.documents import read_yson
from app.solver.model.configuration import Configuration
from tests.support.roundtrip import plain_tree


def configuration(**document: Any) -> Configuration:
    return msgspec.json.decode(json.dumps(document), type=Configuration)


def documents(text: str) -> list[Any]:
    return list(yaml.safe_load_all(text))


def tree(text: str) -> Any:
    return plain_tree(read_yson(text.encode())[0][1])


def lost(made: Configuration, system: str) -> set[str]:
    return {finding.pointer for finding in export(made, system).findings if finding.severity != "info"}


def test_kueue_gets_cohorts_cluster_queues_and_the_default_flavor_of_the_shorthand() -> None:
    made = configuration(
        settings={"kueue": {"fair_sharing": True}},
        queues=[
            {
                "name": "cq", "parent": "team", "weight": 0.5,
                "quota": {"cpu": {"guaranteed": 5, "borrowing_limit": "1500m"}},
            },
            {"name": "team", "parent": "org"},
        ],
    )  # fmt: skip
    manager, queue, cohort = documents(export_configuration(made, "kueue"))
    assert manager["fairSharing"]["preemptionStrategies"] == ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
    assert (queue["kind"], queue["apiVersion"]) == ("ClusterQueue", "kueue.x-k8s.io/v1beta2")
    assert queue["spec"] == {
        "cohortName": "team",
        "resourceGroups": [
            {
                "coveredResources": ["cpu"],
                "flavors": [
                    {"name": "default", "resources": [{"name": "cpu", "nominalQuota": 5, "borrowingLimit": "1500m"}]}
                ],
            }
        ],
        "fairSharing": {"weight": "0.5"},
    }
    assert (cohort["kind"], cohort["spec"]) == ("Cohort", {"parentName": "org"})
    assert lost(made, "kueue") == set()


def test_kueue_has_no_word_for_these() -> None:
    made = configuration(
        settings={"kueue": {"preemption_strategies": ["LessThanInitialShare"]}, "kai": {}},
        queues=[
            {"name": "team", "kueue": {"queueing_strategy": "StrictFIFO"}},
            {
                "name": "cq", "parent": "team", "priority": 5, "weight": 1e-12, "kai": {"preempt_min_runtime": 1},
                "quota": {"cpu": {"guaranteed": "unlimited", "limit": 3, "weight": 2}},
                "kueue": {"preemption": {"waiting_boost": {"grace": 1, "rate_per_hour": 1, "ceiling": 2},
                                         "workload_sorting": ["ByLowestPriority"]}},
            },
        ],
    )  # fmt: skip
    assert lost(made, "kueue") == {
        "/settings/kueue/preemption_strategies", "/settings/kai", "/queues/0/kueue", "/queues/1/kai",
        "/queues/1/priority", "/queues/1/weight", "/queues/1/quota/cpu/guaranteed", "/queues/1/quota/cpu/limit",
        "/queues/1/quota/cpu/weight", "/queues/1/kueue/preemption/waiting_boost",
        "/queues/1/kueue/preemption/workload_sorting",
    }  # fmt: skip
    assert export_configuration(made, "kueue").startswith("# not carried over: /settings/kai: ")


def test_yunikorn_gets_a_nested_tree() -> None:
    made = configuration(
        queues=[
            {
                "name": "root.a.b", "parent": "root.a",
                "yunikorn": {"parent": True, "properties": {"priority.offset": "5"}},
            },
            {"name": "root"},
            {"name": "root.a", "parent": "root", "quota": {"vcore": {"guaranteed": 1, "limit": "2500m"}}},
            {"name": "root.a.c", "parent": "root.a", "yunikorn": {"dynamic": True}},
        ]
    )  # fmt: skip
    (document,) = documents(export_configuration(made, "yunikorn"))
    inner = {"name": "b", "parent": True, "properties": {"priority.offset": "5"}}
    middle = {"name": "a", "resources": {"guaranteed": {"vcore": 1}, "max": {"vcore": "2500m"}}, "queues": [inner]}
    assert document == {"partitions": [{"name": "default", "queues": [{"name": "root", "queues": [middle]}]}]}
    assert lost(made, "yunikorn") == {"/queues/3"}


def test_yunikorn_has_no_word_for_these() -> None:
    made = configuration(
        flavors=[{"name": "f"}],
        settings={"yunikorn": {"rules": "documented"}},
        queues=[
            {"name": "Root", "weight": 2, "priority": 1, "created_at": "2026-01-01T00:00:00Z"},
            {"name": "other.x", "parent": "Root", "quota": {"vcore": {"guaranteed": "unlimited", "lending_limit": 1}}},
            {
                "name": "Root.two", "parent": "Root",
                "resource_groups": [{"resources": ["vcore"], "flavors": [
                    {"name": "f", "quota": {"vcore": {"guaranteed": 1}}}, {"name": "g", "quota": {"vcore": {}}}]}],
            },
        ],
    )  # fmt: skip
    assert lost(made, "yunikorn") == {
        "/flavors", "/settings/yunikorn/rules", "/queues/0/name", "/queues/0/weight", "/queues/0/priority",
        "/queues/0/created_at", "/queues/1/name", "/queues/1/quota/vcore/guaranteed",
        "/queues/1/quota/vcore/lending_limit", "/queues/2/resource_groups/0/flavors/1",
    }  # fmt: skip


def test_yunikorn_keeps_no_resources_of_the_root() -> None:
    made = configuration(
        queues=[
            {"name": "root", "quota": {"vcore": {"guaranteed": 1}, "memory": {"limit": 2}}},
            {"name": "root.a", "parent": "root", "quota": {"vcore": {"guaranteed": 1}}},
        ]
    )  # fmt: skip
    (document,) = documents(export_configuration(made, "yunikorn"))
    inner = {"name": "a", "resources": {"guaranteed": {"vcore": 1}}}
    assert document == {"partitions": [{"name": "default", "queues": [{"name": "root", "queues": [inner]}]}]}
    assert lost(made, "yunikorn") == {"/queues/0/quota/vcore", "/queues/0/quota/memory"}


def test_kai_counts_in_its_own_units() -> None:
    made = configuration(
        settings={
            "kai": {"default_reclaim_min_runtime": 90, "reclaim_resolve_method": "queue", "actions": ["preempt"]}
        },
        queues=[
            {
                "name": "q", "weight": 3, "kai": {"preempt_min_runtime": 0.25, "reclaim_min_runtime": "1h"},
                "quota": {
                    "cpu": {"guaranteed": "1500m", "limit": 2}, "memory": {"guaranteed": "1Gi", "weight": 0.5},
                    "nvidia.com/gpu": {"guaranteed": "unlimited", "limit": "500m"},
                },
            }
        ],
    )  # fmt: skip
    shard, queue = documents(export_configuration(made, "kai"))
    assert queue["spec"] == {
        "priority": 0,
        "resources": {
            "cpu": {"quota": 1500, "limit": 2000, "overQuotaWeight": 3},
            "memory": {"quota": 1073.741824, "limit": -1, "overQuotaWeight": 0.5},
            "gpu": {"quota": -1, "limit": 0.5, "overQuotaWeight": 3},
        },
        "reclaimMinRuntime": "1h",
        "preemptMinRuntime": "250000us",
    }
    assert shard["spec"]["args"]["max-consolidation-preemptees"] == "-1"
    assert shard["spec"]["plugins"]["minruntime"]["arguments"] == {
        "defaultReclaimMinRuntime": "90s", "reclaimResolveMethod": "queue"
    }  # fmt: skip
    assert {name for name, of in shard["spec"]["actions"].items() if of["enabled"]} == {"preempt"}
    back = import_configuration(export_configuration(made, "kai").encode(), "kai").configuration
    assert (back.queues[0].quota or {})["memory"].guaranteed == 2**30


def test_kai_has_no_word_for_these() -> None:
    made = configuration(
        settings={"kai": {"actions": ["reclaim", "reclaim"]}},
        queues=[{"name": "q", "quota": {"cpu": {"borrowing_limit": 1}, "ephemeral-storage": {"limit": 1}}}],
    )
    assert lost(made, "kai") == {
        "/settings/kai/actions/1", "/queues/0/quota/cpu/borrowing_limit", "/queues/0/quota/ephemeral-storage",
    }  # fmt: skip


def test_ytsaurus_counts_milliseconds_and_nests_pools() -> None:
    made = configuration(
        settings={"ytsaurus": {"fair_share_starvation_timeout": "1m30s", "preemptive_scheduling_backoff": 0.0005}},
        queues=[
            {"name": "b", "parent": "a", "ytsaurus": {"mode": "fifo", "resource_limits": {"cpu": 3}}},
            {"name": "a", "weight": 2, "quota": {"cpu": {"guaranteed": 5, "limit": 9}}},
        ],
    )
    document = tree(export_configuration(made, "ytsaurus"))
    assert document["config"] == {"fair_share_starvation_timeout": 90000, "preemptive_scheduling_backoff": 0}
    assert document["pools"] == {
        "a": {
            "weight": 2, "strong_guarantee_resources": {"cpu": 5}, "resource_limits": {"cpu": 9},
            "pools": {"b": {"resource_limits": {"cpu": 3}, "mode": "fifo"}},
        }
    }  # fmt: skip
    assert lost(made, "ytsaurus") == {"/settings/ytsaurus/preemptive_scheduling_backoff"}
    made = configuration(settings={"ytsaurus": {"fair_share_starvation_timeout": "90s"}})
    document = tree(export_configuration(made, "ytsaurus"))
    assert document["config"] == {"fair_share_starvation_timeout": "90s"}


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0s"), (5400, "5400s"), ("1h30m", "1h30m"), (0.5, "500000us"), ("250ms", "250ms")]
)
def test_durations_as_go_writes_them(value: float | str, text: str) -> None:
    assert go_duration(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1, "1"), (0.75, "0.75"), (1e-9, "0.000000001"), (1500.0, "1500"), (0, "0")]
)
def test_weights_as_quantities(value: float, text: str) -> None:
    assert weight_text(value) == text


@pytest.mark.parametrize("system", ["yunikorn", "kai", "ytsaurus"])
def test_a_cohort_that_is_only_named_becomes_a_queue_where_there_are_no_cohorts(system: str) -> None:
    made = configuration(queues=[{"name": "a", "parent": "team"}])
    back = import_configuration(export_configuration(made, system).encode(), system).configuration
    found = {queue.name.rpartition(".")[2]: (queue.parent or "").rpartition(".")[2] for queue in back.queues}
    assert found["a"] == "team"
    assert "team" in found


def test_a_format_that_is_not_there() -> None:
    with pytest.raises(Unreadable, match="kueue, yunikorn, kai, ytsaurus"):
        export(configuration(), "kubernetes")
    with pytest.raises(Unreadable, match="kubernetes"):
        import_configuration(b"", "slurm")


def test_nothing_is_exported_as_nothing() -> None:
    empty: dict[str, list[Any]] = {
        "yunikorn": [{"partitions": [{"name": "default", "queues": []}]}],
    }
    assert tree(export_configuration(configuration(), "ytsaurus")) == {"config": {}}
    for system in set(EXPORTS) - {"ytsaurus"}:
        assert documents(export_configuration(configuration(), system)) == empty.get(system, [])
