"""What tests of kueue cycle share with those beside them."""

from typing import Any

from hypothesis import strategies as st

from tests.unit.solver.engines.kueue.cluster import at, configuration

Cluster = tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]


FLAVORS = ("a", "b")


NEUTRAL = {
    "trigger_after_workload_waiting_seconds": 0,
    "workload_sorting": ["ByLowestPriority", "ByLowestRuntime"],
    "disruption_cost_milestones": [{"seconds": 0, "cost": 3}],
    "long_runner_penalty": {"grace": 0, "rate_per_hour": 0, "floor": 0},
    "waiting_boost": {"grace": 0, "rate_per_hour": 0, "ceiling": 9},
}


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Two cohorts below a root, up to five queues with one group of two flavors, workloads within quota or borrowing,
    and up to seven asks."""
    number = st.integers(0, 6)
    names = [f"q{i}" for i in range(draw(st.integers(2, 5)))]
    queues: list[dict[str, Any]] = [
        {"name": "root"},
        {"name": "left", "parent": "root"},
        {"name": "right", "parent": "root"},
    ]
    for name in names:
        quota = [{"name": f, "quota": {"cpu": {"guaranteed": draw(number)}}} for f in FLAVORS]
        if draw(st.booleans()):
            quota[0]["quota"]["cpu"]["borrowing_limit"] = draw(number)
        preemption = {
            "within_cluster_queue": draw(st.sampled_from(["Never", "LowerPriority", "LowerOrNewerEqualPriority"])),
            "reclaim_within_cohort": draw(st.sampled_from(["Never", "LowerPriority", "Any"])),
        }
        if preemption["reclaim_within_cohort"] != "Never" and draw(st.booleans()):
            preemption["borrow_within_cohort"] = {"policy": "LowerPriority"}
        rules = {
            "when_can_borrow": draw(st.sampled_from(["MayStopSearch", "TryNextFlavor"])),
            "when_can_preempt": draw(st.sampled_from(["MayStopSearch", "TryNextFlavor"])),
        }
        queues.append({
            "name": name, "parent": draw(st.sampled_from(["left", "right", "root"])), "weight": draw(st.integers(0, 2)),
            "resource_groups": [{"resources": ["cpu"], "flavors": quota}],
            "kueue": {"preemption": preemption, "flavor_fungibility": rules},
        })  # fmt: skip
    room = {
        f: sum(q["resource_groups"][0]["flavors"][i]["quota"]["cpu"]["guaranteed"] for q in queues[3:])
        for i, f in enumerate(FLAVORS)
    }
    running: list[dict[str, Any]] = []
    for i in range(draw(st.integers(0, 8))):
        flavor, cpu = draw(st.sampled_from(FLAVORS)), draw(st.integers(1, 3))
        if room[flavor] >= cpu:
            room[flavor] -= cpu
            task = {"name": "main", "requests": {"cpu": cpu}, "flavors": {"cpu": flavor}}
            running.append({
                "id": f"w{i}", "uid": f"w{i}", "queue": draw(st.sampled_from(names)),
                "priority": draw(st.integers(0, 3)), "created_at": at("09:00"),
                "started_at": at(f"1{draw(st.integers(0, 1))}:0{i}"), "tasks": [task],
            })  # fmt: skip
    pending: list[dict[str, Any]] = []
    for i in range(draw(st.integers(1, 7))):
        count = draw(st.integers(1, 4))
        task = {"name": "main", "count": count, "requests": {"cpu": draw(st.integers(1, 3))}}
        if draw(st.booleans()):
            task["min_count"] = draw(st.integers(1, count))
        pending.append({
            "id": f"x{i}", "uid": f"x{i}", "queue": draw(st.sampled_from(names)), "priority": draw(st.integers(0, 3)),
            "created_at": at(f"11:{draw(st.integers(10, 50))}"), "tasks": [task],
        })  # fmt: skip
    return configuration(*queues, fair=draw(st.booleans()), flavors=[{"name": f} for f in FLAVORS]), running, pending
