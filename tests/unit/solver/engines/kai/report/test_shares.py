"""What queues are entitled to and hold, and what an administrator is told about a configuration."""

from typing import Any

import msgspec
import pytest

from app.solver import solve
from app.solver.engines.kai.answer import in_units
from app.solver.model.configuration import Configuration
from app.solver.model.request import SharesRequest
from app.solver.model.state import State

NODE = {"name": "n", "capacity": {"cpu": 10, "memory": "10Gi", "nvidia.com/gpu": 4}, "occupied": {"cpu": "500m"}}


def shares(
    queues: list[dict[str, object]], *, nodes: list[dict[str, object]] | None = None,
    settings: dict[str, Any] | None = None, **state: Any,
) -> Any:  # fmt: skip
    body = {
        "configuration": {"queues": queues, "settings": settings or {}},
        "state": {"nodes": nodes or [NODE], **state},
        "asks": [ASK],
    }
    request = msgspec.convert(body, SharesRequest)
    assert isinstance(request.configuration, Configuration)
    assert isinstance(request.state, State)
    assert isinstance(request.asks, list)
    loaded = solve.load(solve.configure(request.configuration, "kai"), request.state)
    return solve.shares(loaded, request.asks, 0)["queues"]


ASK = {"id": "ask", "queue": "b", "tasks": [{"name": "t", "requests": {"cpu": 8, "nvidia.com/gpu": "0.5"}}]}
RUNNING = {
    "id": "w", "queue": "a", "preemptible": False,
    "tasks": [
        {"name": "t0", "node": "n", "requests": {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": 1}},
        {"name": "t1", "node": "n", "state": "releasing", "requests": {"cpu": 2}},
    ],
}  # fmt: skip
QUEUES: list[dict[str, object]] = [
    {"name": "root", "quota": {"nvidia.com/gpu": {"guaranteed": "unlimited"}}},
    {"name": "a", "parent": "root", "quota": {"cpu": {"guaranteed": 4}, "nvidia.com/gpu": {"limit": 2}}},
    {"name": "b", "parent": "root"},
]


def test_shares_count_running_pods_as_use_and_pending_ones_as_requests() -> None:
    got = shares(QUEUES, workloads=[RUNNING])
    assert got["a"]["usage"] == {"cpu": 1.5, "memory": 2**30, "nvidia.com/gpu": 1}
    assert got["a"]["usage_non_preemptible"] == got["a"]["usage"]
    assert got["b"]["request"] == {"cpu": 8, "memory": 0, "nvidia.com/gpu": 0.5}
    assert got["root"]["request"]["cpu"] == 9.5
    assert got["root"]["fair_share"] == {"cpu": 9.5, "memory": 2**30, "nvidia.com/gpu": 1.5}
    assert got["b"]["fair_share"]["cpu"] == 8
    assert got["a"]["limit"] == {"cpu": "unlimited", "memory": "unlimited", "nvidia.com/gpu": 2}
    assert got["root"]["allocatable_share"]["nvidia.com/gpu"] == "unlimited"
    assert got["root"]["share"] == 1


@pytest.mark.parametrize("release", ["0.13", "0.17"])
def test_what_others_hold_of_what_their_node_has_nothing_of_is_nobodys_to_divide(release: str) -> None:
    """However a node counts it."""
    nodes: list[Any] = [NODE, {"name": "m", "capacity": {"cpu": 1}, "occupied": {"nvidia.com/gpu": 1}}]
    got = shares(
        [{"name": "root", "quota": {"nvidia.com/gpu": {"guaranteed": "unlimited"}}}, {"name": "b", "parent": "root"}],
        nodes=nodes, settings={"kai": {"release": release}},
        workloads=[RUNNING | {"queue": "b", "tasks": [{"name": "t", "node": "n", "requests": {"nvidia.com/gpu": 4}}]}],
    )  # fmt: skip
    assert got["root"]["fair_share"]["nvidia.com/gpu"] == 3


def test_whole_amounts_are_integers_and_exact() -> None:
    large = 2**60 + 1
    for value, step, shown in ((2000, 1000, 2), (2500, 1000, 2.5), (3.0, 1, 3), (0.5, 1, 0.5), (large, 1, large)):
        found = in_units(value, step)
        assert (found, type(found)) == (shown, type(shown))
    assert in_units(-1, 1000) == "unlimited"


def test_a_cordoned_node_counts_for_nothing() -> None:
    got = shares(QUEUES, nodes=[{**NODE, "schedulable": False}])
    assert got["root"]["fair_share"] == {"cpu": 0, "memory": 0, "nvidia.com/gpu": 0}


def test_what_is_held_without_a_share_counts_a_thousandfold() -> None:
    got = shares(QUEUES, nodes=[{**NODE, "schedulable": False}], workloads=[RUNNING])
    assert got["a"]["share"] == 1000 * 2**30


def found(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {(f.rule, f.pointer) for f in solve.findings(msgspec.convert(document, Configuration), "kai")}


def test_findings_name_what_kai_does_not_read_and_what_contradicts_itself() -> None:
    document: dict[str, object] = {
        "flavors": [{"name": "f"}],
        "settings": {"kai": {"actions": ["reclaim", "reclaim"]}},
        "queues": [
            {"name": "root", "quota": {"gpu": {"guaranteed": 3}}, "kai": {"reclaim_min_runtime": 5}},
            {
                "name": "a", "parent": "root", "kai": {"reclaim_min_runtime": 60},
                "quota": {"gpu": {"guaranteed": 2, "limit": 1}, "cpu": {"lending_limit": 1}, "ephemeral-storage": {}},
            },
            {
                "name": "b", "parent": "root", "kai": {"reclaim_min_runtime": 60},
                "quota": {"amd.com/gpu": {"guaranteed": 2}, "nvidia.com/mig-1g.5gb": {"guaranteed": 1}},
            },
        ],
    }  # fmt: skip
    assert found(document) == {
        ("kai-unread", "/flavors"),
        ("kai-action-repeated", "/settings/kai/actions"),
        ("kai-unread", "/queues/1/quota/cpu/lending_limit"),
        ("kai-unread", "/queues/1/quota/ephemeral-storage"),
        ("kai-unread", "/queues/2/quota/nvidia.com~1mig-1g.5gb"),
        ("kai-deserved-over-limit", "/queues/1/quota/gpu"),
        ("kai-children-over-deserved", "/queues/0/quota/gpu"),
        ("kai-min-runtime-unused", "/queues/0/kai/reclaim_min_runtime"),
    }


@pytest.mark.parametrize(
    ("children", "unused"), [([], False), ([60], True), ([60, 60], True), ([60, None], False), ([None, None], False)]
)
def test_a_single_root_needs_no_minimum_runtime_that_every_child_overrides(
    children: list[int | None], unused: bool
) -> None:
    queues: list[dict[str, object]] = [{"name": "root", "kai": {"reclaim_min_runtime": 5}}]
    for i, value in enumerate(children):
        own = {} if value is None else {"reclaim_min_runtime": value}
        queues.append({"name": f"q{i}", "parent": "root", "kai": own})
    at = ("kai-min-runtime-unused", "/queues/0/kai/reclaim_min_runtime")
    alone = ("kai-min-runtime-unused", "/queues/1/kai/reclaim_min_runtime")
    named = ((alone, children == [60]), (at, unused))
    assert found({"queues": queues}) == {finding for finding, is_named in named if is_named}
    other: list[dict[str, object]] = [{"name": "other"}]
    assert at not in found({"queues": queues + other}), "another tree may reclaim from this one"
    queue_method = {"settings": {"kai": {"reclaim_resolve_method": "queue"}}, "queues": queues}
    assert found(queue_method) == set()


def test_a_finding_about_a_quota_points_at_the_quota_of_that_resource() -> None:
    over = {"guaranteed": 2, "limit": 1}
    for name, other in (("cpu", "gpu"), ("memory", "nvidia.com/gpu"), ("gpu", "cpu"), ("amd.com/gpu", "memory")):
        document: dict[str, object] = {"queues": [{"name": "q", "quota": {other: {"guaranteed": 1}, name: over}}]}
        at = f"/queues/0/quota/{name.replace('/', '~1')}"
        assert found(document) == {("kai-deserved-over-limit", at)}


@pytest.mark.parametrize(
    ("quota", "rules"),
    [
        ({"guaranteed": 2, "limit": 2}, set[str]()), ({"guaranteed": 3, "limit": 2}, {"kai-deserved-over-limit"}),
        ({"guaranteed": "unlimited", "limit": 2}, {"kai-deserved-over-limit"}),
        ({"guaranteed": "unlimited"}, set[str]()),
        ({"guaranteed": 2, "limit": "unlimited"}, set[str]()),
    ],
)  # fmt: skip
def test_what_is_deserved_may_be_all_that_the_limit_allows(quota: dict[str, object], rules: set[str]) -> None:
    assert {rule for rule, _ in found({"queues": [{"name": "q", "quota": {"gpu": quota}}]})} == rules


@pytest.mark.parametrize(("parent", "told"), [(4, False), (3, True)])
def test_children_may_deserve_all_that_their_parent_does(parent: int, told: bool) -> None:
    two: dict[str, object] = {"parent": "root", "quota": {"gpu": {"guaranteed": 2}}}
    root: dict[str, object] = {"name": "root", "quota": {"gpu": {"guaranteed": parent}}}
    over = ("kai-children-over-deserved", "/queues/0/quota/gpu")
    assert (over in found({"queues": [root, {"name": "a", **two}, {"name": "b", **two}]})) is told
    free = {"name": "c", "parent": "root", "quota": {"gpu": {"guaranteed": "unlimited"}}}
    assert over not in found({"queues": [root, {"name": "a", **two}, {"name": "b", **two}, free]})


def test_a_queue_without_siblings_needs_no_minimum_runtime_wherever_it_stands() -> None:
    one: dict[str, object] = {"name": "one", "parent": "root", "kai": {"reclaim_min_runtime": 60}}
    queues: list[dict[str, object]] = [{"name": "root"}, {"name": "other"}, one]
    at = ("kai-min-runtime-unused", "/queues/2/kai/reclaim_min_runtime")
    assert found({"queues": queues}) == {at}
    assert found({"queues": [*queues, {"name": "two", "parent": "root"}]}) == set()
    assert found({"queues": [{"name": "root"}, one | {"parent": "root"}]}) == {(at[0], at[1].replace("2", "1"))}


def test_what_is_not_read_says_why() -> None:
    quota = {name: {"guaranteed": 1} for name in ("ephemeral-storage", "nvidia.com/mig-1g.5gb", "nvidia.com/gpumem")}
    document = msgspec.convert({"queues": [{"name": "q", "quota": quota}]}, Configuration)
    assert [finding.detail for finding in solve.findings(document, "kai")] == [
        "KAI divides cpu, memory and GPUs only",
        "MIG instances are not supported: request whole GPUs, or a share of one",
        "requests for GPU memory are not supported: request a share of a GPU",
    ]


@pytest.mark.parametrize("rules", ["documented", "shipped"])
def test_what_released_kai_replaces_is_a_finding_and_documented_a_problem(rules: str) -> None:
    settings = {"rules": rules, "default_reclaim_min_runtime": -1, "reclaim_resolve_method": "leaf"}
    told = found({"settings": {"kai": settings}, "queues": [{"name": "root"}]})
    rule = "kai-setting-replaced" if rules == "shipped" else "invalid-document"
    assert told == {
        (rule, "/settings/kai/default_reclaim_min_runtime"), (rule, "/settings/kai/reclaim_resolve_method"),
    }  # fmt: skip


def test_a_clean_configuration_has_no_findings_and_a_broken_one_only_its_problems() -> None:
    assert found({"queues": [{"name": "root"}, {"name": "a", "parent": "root"}]}) == set()
    assert found({"settings": {"kai": {"actions": []}}, "queues": [{"name": "root"}]}) == {
        ("kai-no-actions", "/settings/kai/actions")
    }
    broken = {"queues": [{"name": "a", "parent": "a"}, {"name": "b", "kai": {"preempt_min_runtime": "x"}}]}
    assert found(broken) == {("invalid-document", "/queues/0/parent")}


def test_several_gpu_resources_in_one_queue_are_refused() -> None:
    document: dict[str, object] = {"queues": [{"name": "a", "quota": {"gpu": {}, "nvidia.com/gpu": {}}}]}
    assert found(document) == {
        ("invalid-document", "/queues/0/quota/gpu"),
        ("invalid-document", "/queues/0/quota/nvidia.com~1gpu"),
    }
