"""Random runs: small clusters on which jobs of two queues get into one another's way, under each engine."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import strategies as st

from app.simulations.core.world import World
from app.simulations.schemas import SimulationRequest
from app.solver.rounds import Ahead, Outcome
from tests.unit.simulations.running import as_asked, request_for, without_hopeless

ENGINES = ("kueue", "yunikorn", "kai", "ytsaurus", "kube-scheduler")
LIMITS = {"kueue": "borrowing_limit", "yunikorn": "limit", "kai": "limit", "ytsaurus": "limit"}
"""What bounds a queue, by engine."""
GUARANTEED = 4
Json = dict[str, Any]


def prefix(engine: str) -> str:
    """What the names of queues begin with."""
    return "root." if engine == "yunikorn" else ""


@st.composite
def jobs(draw: st.DrawFn, queues: list[str]) -> list[Json]:
    found: list[Json] = []
    for i in range(draw(st.integers(0, 8))):
        cpu, count = draw(st.integers(1, 4)), draw(st.integers(1, 2))
        ask = {
            "id": f"j{i}", "queue": draw(st.sampled_from(queues)), "priority": draw(st.integers(0, 2)),
            "preemptible": draw(st.booleans()),
            "tasks": [{"name": "t", "count": count, "requests": {"cpu": cpu, "gpu": cpu}}],
        }  # fmt: skip
        if draw(st.integers(0, 3)) == 0:
            ask["min_available"] = 1
        at = draw(st.integers(0, 40))
        one: Json = {"ask": ask, "submitted_at": at, "duration": draw(st.integers(1, 90))}
        if draw(st.booleans()):
            one["checkpoint"] = {"every": draw(st.integers(1, 20)), "cost": draw(st.sampled_from([0, 1, 7]))}
        if draw(st.integers(0, 5)) == 0:
            one["cancelled_at"] = at + draw(st.integers(1, 60))
        found.append(one)
    return found


def quota(engine: str, guaranteed: int, more: int | None) -> Json | None:
    """``more``: what a queue may use beyond its guarantee; None: no bound. A namespace has no quota."""
    if engine == "kube-scheduler":
        return None
    cell: Json = {"guaranteed": guaranteed}
    if more is not None:
        cell[LIMITS[engine]] = more if engine == "kueue" else guaranteed + more
    return {"cpu": cell, "gpu": cell}


@st.composite
def changes(draw: st.DrawFn, engine: str, queues: list[str]) -> list[Json]:
    """A node that goes and comes back; a queue whose quota is another."""
    found: list[Json] = []
    if engine != "kueue" and draw(st.booleans()):
        gone = draw(st.integers(1, 60))
        found.append({"at": gone, "nodes": {"remove": ["n1"]}})
        if draw(st.booleans()):
            found.append({"at": gone + draw(st.integers(1, 60)), "nodes": {"add": [node("n1")]}})
    if engine != "kube-scheduler" and draw(st.booleans()):
        amended = quota(engine, draw(st.integers(1, 6)), draw(st.sampled_from([None, 0, 4])))
        found.append({"at": draw(st.integers(1, 60)), "queues": {draw(st.sampled_from(queues)): {"quota": amended}}})
    return found


def node(name: str) -> Json:
    return {"name": name, "capacity": {"cpu": 4, "gpu": 4}}


@st.composite
def flavored(draw: st.DrawFn) -> SimulationRequest:
    """Runs of Kueue in which cycles leave behind what counts in the next: several flavors, heads that are outrun or
    wait for victims, classes that step aside."""
    names = ["f0", "f1", "f2"][: draw(st.integers(2, 3))]
    found: list[Json] = [{"name": "root"}]
    for name in "abc":
        cells = [
            {"name": flavor, "quota": quota("kueue", draw(st.integers(0, 3)), draw(st.sampled_from([None, None, 2])))}
            for flavor in names
        ]
        fungibility = {
            "when_can_borrow": draw(st.sampled_from(["MayStopSearch", "TryNextFlavor"])),
            "when_can_preempt": draw(st.sampled_from(["MayStopSearch", "TryNextFlavor"])),
        }
        block = {
            "preemption": {
                "within_cluster_queue": draw(st.sampled_from(["Never", "LowerPriority"])),
                "reclaim_within_cohort": draw(st.sampled_from(["Never", "LowerPriority", "Any"])),
            },
            "flavor_fungibility": fungibility,
            "queueing_strategy": draw(st.sampled_from(["BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"])),
        }
        group = {"resources": ["cpu", "gpu"], "flavors": cells}
        found.append({"name": name, "parent": "root", "resource_groups": [group], "kueue": block})
    sharing: Json = {"kueue": {"fair_sharing": draw(st.booleans())}}
    shared = draw(st.booleans())
    if shared:
        half_life = draw(st.sampled_from([0, 30, "10m"]))
        rates = {"usage_half_life_time": half_life, "usage_sampling_interval": draw(st.sampled_from([1, 7, 60]))}
        sharing["kueue"]["admission_fair_sharing"] = rates
        for one in found[1:]:
            one["kueue"]["admission_mode"] = draw(
                st.sampled_from(["NoAdmissionFairSharing", "UsageBasedAdmissionFairSharing"])
            )
    placed = draw(st.booleans())
    configuration = {
        "engine": "kueue", "settings": sharing, "queues": found,
        "flavors": [{"name": name} | ({"topology": "t"} if placed else {}) for name in names],
        "topologies": [{"name": "t", "levels": [_RACK, _HOST]}],
    }  # fmt: skip
    possible = [one | {"ask": one["ask"] | {"tasks": _small(one["ask"]["tasks"])}} for one in draw(jobs(list("abc")))]
    for one in possible if shared else ():
        one["ask"]["kueue"] = {"local_queue": draw(st.sampled_from(["n/x", "n/y", "m/x"]))}
    for one in possible if placed else ():
        one["ask"]["tasks"][0] |= {
            "count": draw(st.integers(1, 3)),
            "topology_request": draw(st.sampled_from(_REQUESTS)),
        }
    return request_for(
        configuration, possible, state={"nodes": [_host(i) for i in range(draw(st.integers(2, 4)))]},
        grace=draw(st.sampled_from([0, 1, 7])), until=200, on_loop=draw(st.sampled_from(["stop", "continue"])),
        options={"kueue": {"requeue_batch_period": draw(st.sampled_from([0, 1, "2s"]))}},
    )  # fmt: skip


@st.composite
def crowded(draw: st.DrawFn) -> SimulationRequest:
    """Runs of Kueue in which hardly anything fits: cohorts in cohorts, limits, every policy."""
    names = ["f0", "f1"][: draw(st.integers(1, 2))]
    cells = [{"name": flavor, "quota": quota("kueue", draw(st.integers(0, 3)), None)} for flavor in names]
    found: list[Json] = [{"name": "root", "resource_groups": [{"resources": ["cpu", "gpu"], "flavors": cells}]}]
    flat = draw(st.booleans())
    found += [] if flat else [{"name": "left", "parent": "root"}, {"name": "right", "parent": "root"}]
    for name in "abcd":
        reclaims = draw(st.sampled_from(["Never", "LowerPriority", "Any"]))
        preemption: Json = {
            "within_cluster_queue": draw(st.sampled_from(["Never", "LowerPriority", "LowerOrNewerEqualPriority"])),
            "reclaim_within_cohort": reclaims,
        }
        if reclaims != "Never" and draw(st.booleans()):
            preemption["borrow_within_cohort"] = {
                "policy": "LowerPriority", "max_priority_threshold": draw(st.sampled_from([None, 1]))
            }  # fmt: skip
        limits = st.sampled_from([None, None, 0, 2])
        cells = list[Json]()
        for flavor in names:
            cell = {
                "guaranteed": draw(st.integers(0, 4)),
                "borrowing_limit": draw(limits),
                "lending_limit": draw(limits),
            }
            other = cell | {"guaranteed": draw(st.sampled_from([cell["guaranteed"], 1, 3]))}
            cells.append({"name": flavor, "quota": {"cpu": cell, "gpu": other}})
        block = {
            "preemption": preemption,
            "flavor_fungibility": {
                "when_can_borrow": draw(st.sampled_from(["MayStopSearch", "TryNextFlavor"])),
                "when_can_preempt": draw(st.sampled_from(["MayStopSearch", "TryNextFlavor"])),
            },
        }
        groups = [{"resources": ["cpu", "gpu"], "flavors": cells}]
        parent = draw(st.sampled_from(["root", "root", None] if flat else ["left", "right", "root", None]))
        found.append({"name": name, "parent": parent, "resource_groups": groups, "kueue": block})
    possible: list[Json] = []
    for i in range(draw(st.integers(4, 24))):
        requests = {"cpu": draw(st.integers(1, 3)), "gpu": draw(st.integers(1, 2))}
        ask = {
            "id": f"j{i}", "queue": draw(st.sampled_from("abcd")), "priority": draw(st.integers(0, 3)),
            "preemptible": draw(st.integers(0, 5)) > 0,
            "preemption_policy": draw(st.sampled_from(["PreemptLowerPriority"] * 4 + ["Never"])),
            "tasks": [{"name": "t", "count": 1, "requests": requests}],
        }  # fmt: skip
        possible.append({"ask": ask, "submitted_at": draw(st.integers(0, 30)), "duration": draw(st.integers(5, 60))})
    settings = {"kueue": {"fair_sharing": draw(st.integers(0, 3)) == 0}}
    configuration = {
        "engine": "kueue", "settings": settings, "queues": found, "flavors": [{"name": name} for name in names],
    }  # fmt: skip
    return request_for(
        configuration, possible, grace=draw(st.sampled_from([0, 0, 3])), until=200,
        options={"kueue": {"requeue_batch_period": draw(st.sampled_from([0, 1]))}},
    )  # fmt: skip


@st.composite
def contended(draw: st.DrawFn, engine: str) -> SimulationRequest:
    """Runs in which many ask for more than there is, alike and unlike, some of them looking for victims."""
    delays, policies = (
        st.sampled_from(["0s", "5s", "30s"]),
        st.sampled_from(["default", "default", "fence", "disabled"]),
    )
    tree, settings = engine == "yunikorn", {}
    names = ["root.a", "root.b.c", "root.b.d", "root.e"] if tree else list("abcd")
    found: list[Json] = [{"name": "root"}] if tree else [{"name": name} for name in names]
    for name in ["root.a", "root.b", "root.b.c", "root.b.d", "root.e"] if tree else []:
        cell: Json = {"guaranteed": draw(st.integers(0, 4)), "limit": draw(st.sampled_from([None, None, None, 8]))}
        properties = {
            "preemption.delay": draw(delays),
            "preemption.policy": draw(policies),
            "priority.offset": str(draw(st.sampled_from([0, 0, 0, -1, 2]))),
        }
        found.append(
            {
                "name": name, "parent": name.rpartition(".")[0], "yunikorn": {"properties": properties},
                "quota": dict.fromkeys(("cpu", "gpu"), cell) if draw(st.integers(0, 3)) else None,
            }
        )  # fmt: skip
    possible: list[Json] = []
    for i in range(draw(st.integers(4, 24))):
        cpu, gpu = draw(st.integers(1, 3)), draw(st.sampled_from([0, 1, 1]))
        task: Json = {"name": "t", "count": draw(st.sampled_from([1, 1, 1, 3])), "requests": {"cpu": cpu, "gpu": gpu}}
        if draw(st.integers(0, 20)) == 0:
            task["required_node"] = "n1"
        if draw(st.integers(0, 4)) == 0:
            task["node_selector"] = {"disk": "ssd"}
        ask: Json = {
            "id": f"j{i:02}", "queue": draw(st.sampled_from(names)), "preemptible": draw(st.integers(0, 5)) > 0,
            "preemption_policy": draw(st.sampled_from(["PreemptLowerPriority"] * 6 + ["Never"])), "tasks": [task],
        }  # fmt: skip
        if draw(st.integers(0, 3)):
            ask["priority"] = draw(st.integers(0, 2))
        if draw(st.integers(0, 60)) == 0:
            ask["pending_reason"] = {"reason": "r", "message": "m", "tried_again": draw(st.booleans())}
        if not tree and draw(st.integers(0, 7)) == 0:
            task |= {"labels": {"app": "x"}, "host_ports": draw(st.sampled_from([[], [{"port": 80}]]))}
            near = {"topology_key": "disk", "label_selector": {"match_labels": {"app": "x"}}}
            task["pod_anti_affinity"] = draw(st.sampled_from([[], [near]]))
        job = {"ask": ask, "submitted_at": draw(st.integers(0, 30)), "duration": draw(st.integers(5, 60))}
        if draw(st.integers(0, 9)) == 0:
            job["cancelled_at"] = job["submitted_at"] + draw(st.integers(1, 30))
        possible.append(job)
    nodes = [node(f"n{i}") | {"labels": {"disk": "ssd"} if i else {}} for i in range(draw(st.integers(2, 4)))]
    if tree:
        settings = {"yunikorn": {"rules": draw(st.sampled_from(["documented", "documented", "documented", "shipped"]))}}
    elif draw(st.booleans()):
        nodes[0]["taints"] = [{"key": "slow", "effect": "PreferNoSchedule"}]
    configuration = {"engine": engine, "settings": settings, "queues": found}
    changed: list[Json] = []
    if draw(st.integers(0, 3)) == 0:
        changed.append({"at": draw(st.integers(5, 40)), "nodes": {"remove": ["n1"]}})
    return request_for(
        configuration, possible, changed, state={"nodes": nodes}, grace=draw(st.sampled_from([0, 1, 7])), until=300,
        round_every=draw(st.sampled_from([1, 3])), requeue=draw(st.sampled_from(["created", "evicted"])),
        on_loop=draw(st.sampled_from(["stop", "continue"])),
    )  # fmt: skip


_RACK, _HOST = "rack", "kubernetes.io/hostname"
_REQUESTS: list[Json | None] = [
    None, {"required": _HOST}, {"required": _RACK}, {"preferred": _HOST}, {"preferred": _RACK}, {"unconstrained": True},
    {"preferred": _RACK, "slice_required": _HOST, "slice_size": 2},
]  # fmt: skip


def _host(i: int) -> Json:
    labels = {_RACK: f"r{i % 2}", _HOST: f"h{i}"}
    return {"name": f"h{i}", "labels": labels, "capacity": {"cpu": 2, "gpu": 2, "pods": 3}}


def _small(tasks: list[Json]) -> list[Json]:
    return [task | {"count": 1, "requests": {"cpu": 1, "gpu": 1}} for task in tasks]


@st.composite
def requests(draw: st.DrawFn, engines: Sequence[str] = ENGINES) -> SimulationRequest:
    engine = draw(st.sampled_from(engines))
    queues = [prefix(engine) + name for name in "ab"]
    top: list[Json] = [{"name": "root"}] if engine not in ("ytsaurus", "kube-scheduler") else []
    if engine == "kai":
        top[0]["quota"] = quota(engine, 2 * GUARANTEED, None)
    below: Json = {"parent": "root"} if top else {}
    if engine == "kueue":
        below["kueue"] = {
            "preemption": {
                "within_cluster_queue": draw(st.sampled_from(["Never", "LowerPriority"])),
                "reclaim_within_cohort": draw(st.sampled_from(["Never", "LowerPriority", "Any"])),
            },
            "queueing_strategy": draw(st.sampled_from(["BestEffortFIFO", "StrictFIFO"])),
        }
    bounds = st.sampled_from([None, 4])  # whoever asks for most has room in an empty cluster
    leaves = [{"name": name, "quota": quota(engine, GUARANTEED, draw(bounds)), **below} for name in queues]
    configuration: Json = {"engine": engine, "queues": [*top, *leaves]}
    if engine == "kueue":
        configuration["settings"] = {"kueue": {"fair_sharing": draw(st.booleans())}}
    nodes = [node(f"n{i}") for i in range(2)] if engine != "kueue" else []
    return request_for(
        configuration, draw(jobs(queues)), draw(changes(engine, queues)), state={"nodes": nodes},
        grace=draw(st.sampled_from([0, 1, 7])), round_every=draw(st.sampled_from([1, 3])),
        requeue=draw(st.sampled_from(["created", "evicted"])), until=300,
    )  # fmt: skip


ASKED = st.sampled_from([0.1, 0.5, 0.9])
"""The part of the rounds."""


def noting(patch: pytest.MonkeyPatch, of: type[Any], name: str, outcomes: list[Any]) -> None:
    """Every round that method ``name`` tells is added to ``outcomes``."""
    method = getattr(of, name)

    def noted(*args: Any) -> Any:
        outcome = method(*args)
        if outcome is not None:
            outcomes.append(outcome)
        return outcome

    patch.setattr(of, name, noted)


def told_after_asked(request: SimulationRequest, seed: int, part: float) -> range:
    """A run of which such a part of the rounds is asked though they may be told comes to what it does where each is:
    what is kept from round to round is right after either. As long as rounds were told after one that was asked."""
    foreseen, rng, told = World._foreseen, random.Random(seed), list[bool]()  # pyright: ignore[reportPrivateUsage]

    def at_times(world: World, ahead: Ahead[Any] | None, now: int) -> Outcome | None:
        outcome = None if rng.random() < part else foreseen(world, ahead, now)
        told.append(outcome is not None)
        return outcome

    possible = without_hopeless(request)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(World, "_foreseen", at_times)
        as_asked(possible)
    return range(sum(again and not before for before, again in pairwise(told)))
