"""Small clusters whose whole answers were worked out by hand; ``answers.json`` has the answers, word for word.

Each cluster meets many rules at once, so that whatever an answer says has a place where it is wrong if the rule is.
"""

from typing import Any

from tests.unit.solver.engines.kueue.cluster import asks, at, configuration, queue, runs

Json = dict[str, Any]
CPU = {"flavors": {"cpu": "default"}}
LOWER = {"within_cluster_queue": "LowerPriority"}


def limited(guaranteed: float, **limits: float) -> Json:
    """A quota with limits."""
    return {"guaranteed": guaranteed} | limits


def _classical() -> Json:
    """13 in all, all used. ``mine`` owns 4 and uses 3; ``team`` has 6 below it, ``other`` 2, of which ``far`` uses 5.
    While borrowing only priorities up to 3 may go."""
    preemption = {
        "reclaim_within_cohort": "LowerPriority", "within_cluster_queue": "LowerOrNewerEqualPriority",
        "borrow_within_cohort": {"policy": "LowerPriority", "max_priority_threshold": 3},
    }  # fmt: skip
    of = configuration(
        queue("root", 2), queue("team", 1, "root"), queue("mine", 4, "team", preemption=preemption),
        queue("near", 1, "team"), queue("other", parent="root"), queue("far", 2, "other"), queue("home", 3, "root"),
        queue("island", 5),
    )  # fmt: skip
    running = [
        runs("own-high", "mine", 1, 6), runs("own-old", "mine", 1, 4, created_at=at("09:00")),
        runs("own-gone", "mine", 1, 0, evicted=True), runs("near-low", "near", 2, 2), runs("near-mid", "near", 1, 4),
        runs("far-low", "far", 4, 1), runs("far-marked", "far", 1, 0, preemptible=False), runs("home", "home", 2, 0),
        runs("isle", "island", 1, 0), runs("none", "near", 0, 0) | {"tasks": []},
    ]  # fmt: skip
    pending = [asks(f"wants-{cpu}", "mine", cpu, 4, **CPU) for cpu in (4, 9, 30)]
    return {"configuration": of, "workloads": running, "asks": pending}


def _fair() -> Json:
    """21 in all, 20 used. One borrowed is a share of 1000/21; ``left`` has weight 2, ``e`` weight 0."""
    preemption = {"reclaim_within_cohort": "Any"} | LOWER
    of = configuration(
        queue("root", 8), queue("left", 4, "root", weight=2), queue("a", 2, "left", preemption=preemption),
        queue("b", 0, "left"), queue("right", 2, "root"), queue("c", 0, "right"), queue("d", 2, "right"),
        queue("e", 1, "root", weight=0), queue("f", 2, "root"), fair=True,
    )  # fmt: skip
    running = [
        runs("a-low", "a", 1, 0), runs("a-high", "a", 1, 9), runs("b1", "b", 2, 1),
        runs("b2", "b", 3, 5, started_at=at("11:00")), runs("c1", "c", 5, 0), runs("c2", "c", 1, 2),
        runs("d1", "d", 2, 0), runs("e1", "e", 3, 7), runs("f1", "f", 2, 0),
    ]  # fmt: skip
    pending = [asks(f"wants-{cpu}", "a", cpu, 5, **CPU) for cpu in (3, 12)]
    return {"configuration": of, "workloads": running, "asks": pending}


def _cycle() -> Json:
    """12 in all, 11 used. Both p1 and q1 choose r1; q1 is first, and p1 finds r2."""
    reclaims = {"reclaim_within_cohort": "Any", "borrow_within_cohort": {"policy": "LowerPriority"}}
    of = configuration(
        queue("co", 0), queue("p", 4, "co", preemption=reclaims), queue("q", 4, "co", preemption=reclaims),
        queue("r", 0, "co"), queue("s", 1, "co", queueing_strategy="StrictFIFO"), queue("t", 3, "co"),
    )  # fmt: skip
    running = [runs("r1", "r", 4, 0, started_at=at("11:00")), runs("r2", "r", 4, 0), runs("t1", "t", 3, 0)]
    pending = [
        asks("p1", "p", 3, 1), asks("p2", "p", 1, 0), asks("q1", "q", 4, 2), asks("s1", "s", 1, 3),
        asks("s2", "s", 1, 0), asks("t2", "t", 2, 9),
    ]  # fmt: skip
    return {"configuration": of, "workloads": running, "asks": pending, "mode": "cycle"}


def _group(resources: str, **quotas: tuple[int, ...]) -> Json:
    names = resources.split()
    flavors = [
        {"name": flavor, "quota": {r: {"guaranteed": amount} for r, amount in zip(names, amounts, strict=True)}}
        for flavor, amounts in quotas.items()
    ]
    return {"resources": names, "flavors": flavors}


def _work(name: str, priority: int, **takes: tuple[str, int]) -> Json:
    task = {
        "name": "main",
        "requests": {resource: amount for resource, (_, amount) in takes.items()},
        "flavors": {resource: flavor for resource, (flavor, _) in takes.items()},
    }
    return runs(name, "q", 0, priority) | {"tasks": [task]}


def _flavors(*, cards: bool) -> Json:
    """Of five flavors the second pod set may only use ``west``; with ``cards`` its GPUs are held by a higher priority
    too. ``disk`` is nobody's."""
    declared = [
        {
            "name": "spot", "node_labels": {"zone": "a"},
            "node_taints": [{"key": "spot", "value": "yes", "effect": "NoSchedule"}],
        },
        {"name": "gone", "node_labels": {"zone": "b"}}, {"name": "east", "node_labels": {"zone": "a", "disk": "ssd"}},
        {"name": "west", "node_labels": {"zone": "a"}}, {"name": "cards"},
    ]  # fmt: skip
    first = _group("cpu memory", spot=(9, 9), gone=(9, 9), missing=(9, 9), east=(4, 8), west=(4, 20))
    rules = {"when_can_borrow": "TryNextFlavor", "when_can_preempt": "TryNextFlavor"}
    of = configuration(
        queue("co"),
        queue("q", parent="co", preemption=LOWER, flavor_fungibility=rules)
        | {"resource_groups": [first, _group("gpu", cards=(2,))]},
        queue("lend", parent="co") | {"resource_groups": [_group("cpu memory", east=(2, 2), west=(1, 9))]},
        flavors=declared,
    )
    running = [
        _work("e1", 0, cpu=("east", 3), memory=("east", 2)), _work("w1", 1, cpu=("west", 3), memory=("west", 4)),
    ]  # fmt: skip
    affinity = [[{"key": "disk", "operator": "DoesNotExist"}, {"key": "other", "operator": "Exists"}]]
    tasks = [
        {"name": "lead", "requests": {"cpu": 1, "memory": 1}},
        {
            "name": "work", "count": 3, "min_count": 1, "requests": {"cpu": 1, "gpu": "500m"},
            "node_selector": {"zone": "a"}, "node_affinity": affinity,
        },
    ]  # fmt: skip
    pending = [
        asks("two", "q", 0, 3) | {"tasks": tasks},
        asks("never", "q", 0, 3) | {"tasks": [{"name": "main", "requests": {"cpu": 3, "disk": 1}}]},
    ]
    held = [_work("g1", 5, gpu=("cards", 2))] if cards else []
    return {"configuration": of, "workloads": running + held, "asks": pending}


def _limits() -> Json:
    """q may have 7 and uses 6; mid lends 1 and may borrow 3; o keeps 4 to itself and uses 1 of them."""
    of = configuration(
        queue("root", 2), queue("mid", limited(2, borrowing_limit=3, lending_limit=1), "root"),
        queue("q", limited(3, borrowing_limit=4, lending_limit=2), "mid"),
        queue("n", limited(4, lending_limit=1), "mid"), queue("o", limited(6, lending_limit=2), "root"),
    )  # fmt: skip
    running = [runs("w", "q", 6), runs("v", "n", 2), runs("u", "o", 1)]
    pending = [asks("in-q", "q", 4, 1, **CPU), asks("in-n", "n", 7, 1, **CPU)]
    return {"configuration": of, "workloads": running, "asks": pending}


def _knobs() -> Json:
    """x counts as 5, ``old`` as 1, ``mid`` as 3. The longest runner goes first, and before that the cheapest: ``old``
    costs 2, ``mid`` 8, ``new`` 10, ``own`` 99."""
    preemption = LOWER | {
        "trigger_after_workload_waiting_seconds": 1800, "workload_sorting": ["ByLongestRuntime", "ByLowestPriority"],
        "disruption_cost_milestones": [{"seconds": 3600, "cost": 10}, {"seconds": 18000, "cost": 2}],
        "long_runner_penalty": {"grace": "1h", "rate_per_hour": 2, "floor": 1},
        "waiting_boost": {"grace": "30m", "rate_per_hour": 4, "ceiling": 6},
    }  # fmt: skip
    dear = [{"seconds": 0, "cost": 99}]
    running = [
        runs("old", "q", 2, 9, started_at=at("07:00")), runs("new", "q", 2, 3, started_at=at("11:45")),
        runs("mid", "q", 2, 5, on_preemption="Terminate"),
        runs("own", "q", 2, 0, started_at=at("10:30"), disruption_cost_milestones=dear),
    ]  # fmt: skip
    pending = [
        asks("x", "q", 3, 3), asks("y", "q", 3, 3, created_at=at("11:40")),
        asks("z", "q", 1, 0, preemption_policy="Never"),
    ]  # fmt: skip
    return {"configuration": configuration(queue("q", 8, preemption=preemption)), "workloads": running, "asks": pending}


CLUSTERS: dict[str, Json] = {
    "classical": _classical(), "fair": _fair(), "cycle": _cycle(), "flavors": _flavors(cards=False),
    "flavors-held": _flavors(cards=True), "limits": _limits(), "knobs": _knobs(),
}  # fmt: skip
