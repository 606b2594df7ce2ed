"""The catalogue and the code name the same rules: every scene here is told, and together they name them all."""

import json
from collections.abc import Iterator
from typing import Any, cast

from app.solver.engines.kueue.findings import RULES
from app.solver.model.problems import PROPOSALS
from tests.unit.solver.engines.kueue.cluster import (
    asks,
    at,
    configuration,
    decide,
    flavors,
    preemptibility,
    queue,
    runs,
)

Json = dict[str, Any]
PINNED = {"cpu": "default"}
LOWER, ANY = {"within_cluster_queue": "LowerPriority"}, {"reclaim_within_cohort": "Any"}
BORROW = {"reclaim_within_cohort": "LowerPriority", "borrow_within_cohort": {"policy": "LowerPriority"}}
NEWER = {"within_cluster_queue": "LowerOrNewerEqualPriority"}


def scenes() -> Iterator[Json]:
    """Answers, and bodies of preemptibility."""
    pinned: Json = {"flavors": PINNED}
    mixed = configuration(
        queue("c", 3), queue("q", 3, "c", preemption=LOWER | ANY), queue("r", 0, "c"), queue("meek", 1, "c"),
        queue("far", 9),
    )  # fmt: skip
    running = [
        runs("low", "q", 1), runs("mid", "q", 1, 1), runs("high", "q", 0, 7), runs("loan", "r", 1, 9),
        runs("f", "far", 1), runs("fixed", "q", 0, preemptible=False), runs("quiet", "meek", 1), runs("own", "q", 0),
    ]  # fmt: skip
    running[2]["tasks"][0] |= {"requests": {"memory": 1}, "flavors": {}}
    yield _full(mixed, running, asks("x", "q", 4, 5, workload="own", **pinned))
    yield _full(mixed, running, asks("x", "q", 9, 5, **pinned))
    shared = configuration(queue("q", 1)) | {"settings": {"kueue": {"admission_fair_sharing": {}}}}
    shared["queues"][0]["kueue"] = {"admission_mode": "UsageBasedAdmissionFairSharing"}
    for queues in ({}, {"q": {"kueue": {"consumed": {"cpu": 1}}}}):
        yield _full(shared, [], asks("x", "q", 1), queues=queues)
    yield _full(mixed, [], asks("x", "q", 1))
    labelled = configuration(queue("q", **flavors(a=1)), flavors=[{"name": "a", "node_labels": {"zone": "a"}}])
    yield _full(labelled, [], asks("x", "q", 1, node_selector={"zone": "b"}))
    two = configuration(queue("q", **flavors(a=1, b=1)), flavors=[{"name": "a"}, {"name": "b"}])
    left = {"kueue": {"flavor_scan": {"flavors": {"main": {"cpu": 0}}}}}
    yield _full(two, [], asks("x", "q", 1) | left)
    one = configuration(queue("q", 4, preemption=NEWER), queue("never", 4))
    yield _full(one, [runs("a", "q", 2, 1), runs("b", "q", 2, 0)], asks("x", "q", 2, 1))
    yield _full(one, [runs("a", "q", 4, 5)], asks("x", "q", 2, 1))
    yield _full(one, [runs("a", "never", 4)], asks("x", "never", 1, 1))
    yield _full(one, [runs("a", "q", 4)], asks("x", "q", 1, 1, preemption_policy="Never"))
    yield _full(one, [runs("a", "q", 2)], asks("x", "q", 1, 1, count=4, min_count=1, preemption_policy="Never"))
    back = configuration(queue("c"), queue("q", 3, "c", preemption=LOWER | ANY), queue("r", 2, "c"))
    yield _full(back, [runs("a", "q", 1, 1), runs("b", "r", 2), runs("d", "r", 1)], asks("x", "q", 3, 2, **pinned))
    yield _full(back, [runs("a", "q", 3, 1), runs("b", "q", 1), runs("d", "r", 1)], asks("x", "q", 2, 2, **pinned))
    loan = configuration(queue("c", 2), queue("q", 0, "c", preemption=BORROW), queue("r", 0, "c"))
    yield _full(loan, [runs("w", "r", 2)], asks("x", "q", 1, 1))
    no = configuration(queue("c", 2), queue("q", 2, "c", preemption=LOWER), queue("r", 0, "c"))
    yield _full(no, [runs("w", "r", 2), runs("v", "q", 2)], asks("x", "q", 1, 1))
    yield from _fair()
    yield from _cycles()
    yield from _stopped()
    yield from _on_nodes()
    yield from _beyond_kueue()
    yield from _protection(one, no)


def _fair() -> Iterator[Json]:
    both = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
    of = configuration(queue("c", 6), queue("q", 0, "c", preemption=ANY), queue("r", 0, "c"), fair=True)
    of["settings"]["kueue"]["preemption_strategies"] = both
    yield _full(of, [runs("a", "r", 1), runs("b", "r", 5)], asks("x", "q", 2, flavors=PINNED))
    of["settings"]["kueue"]["preemption_strategies"] = both[:1]
    yield _full(of, [runs("b", "r", 6)], asks("x", "q", 2, flavors=PINNED))
    of = configuration(queue("c"), queue("q", 2, "c", preemption=ANY), queue("r", 0, "c"), fair=True)
    yield _full(of, [runs("a", "r", 2)], asks("x", "q", 2))
    halves = [queue("d", parent="c"), queue("e", parent="c"), queue("s", 0, "d"), queue("t", 0, "e")]
    of = configuration(queue("c"), queue("q", 2, "c", preemption=ANY), *halves, fair=True)
    yield _full(of, [runs("a", "s", 1), runs("b", "t", 1)], asks("x", "q", 1, flavors=PINNED))


def _cycles() -> Iterator[Json]:
    of = configuration(
        queue("co"), queue("a", 4, "co", preemption=ANY), queue("b", 4, "co", preemption=ANY), queue("c", 0, "co")
    )
    running = [runs("big", "c", 4, started_at=at("11:00")), runs("small", "c", 4)]
    yield _full(of, running, asks("x", "a", 4), asks("y", "b", 4), asks("z", "b", 1), mode="cycle")
    of = configuration(queue("co", 2), queue("a", 4, "co", preemption=LOWER), queue("b", 0, "co"))
    taking = [asks("x", "a", 6, 1, flavors=PINNED), asks("y", "b", 2, 2)]
    yield _full(of, [runs("w", "a", 4)], *taking, mode="cycle")
    yield _full(of, [runs("w", "a", 4, 9)], *taking, mode="cycle")

    apart = configuration(queue("a", 4), queue("b", 4), fair=True)
    yield _full(apart, [], asks("x", "a", 1), asks("y", "b", 1), mode="cycle")


def _stopped() -> Iterator[Json]:
    """One queue is drained, work of a LocalQueue of another one is, and both are asked for room."""
    of = configuration(
        queue("co"), queue("a", 4, "co", preemption=ANY), queue("b", 0, "co", stop_policy="HoldAndDrain")
    )
    running = [runs("w", "b", 3), runs("v", "a", 1, kueue={"drained": True})]
    yield _full(of, running, asks("x", "a", 4), asks("y", "b", 1))
    yield preemptibility(of, running)
    yield preemptibility(of, running, ask=asks("y", "b", 1))


def _on_nodes() -> Iterator[Json]:
    """Two heads of two cohorts want the one node that there is; a third asks for more than it has."""
    host = "kubernetes.io/hostname"
    node = {"name": "n", "labels": {host: "n"}, "capacity": {"cpu": 2, "pods": 9}}
    of = configuration(
        queue("a", **flavors(f=9)), queue("b", **flavors(f=9)), flavors=[{"name": "f", "topology": "t"}],
        topologies=[{"name": "t", "levels": [host]}],
    )  # fmt: skip
    pending = [asks(name, name, cpu) for name, cpu in (("a", 2), ("b", 2))]
    for ask in pending:
        ask["tasks"][0]["topology_request"] = {"required": host}
    yield _full(of, [], *pending, mode="cycle", nodes=[node])
    pending[0]["tasks"][0]["requests"] = {"cpu": 3}
    yield _full(of, [], pending[0], nodes=[node])
    lost = runs("w", "a", 2, flavor="f", kueue={"unhealthy_nodes": ["gone"]})
    lost["tasks"][0]["topology_assignment"] = {"levels": [host], "domains": [{"values": ["gone"], "count": 2}]}
    yield _full(of, [lost], nodes=[node])


def _beyond_kueue() -> Iterator[Json]:
    waits = {"trigger_after_workload_waiting_seconds": 1e9}
    boost = {"waiting_boost": {"grace": 0, "rate_per_hour": 2, "ceiling": 9}}
    for knob in (waits, boost):
        of = configuration(queue("q", 4, preemption=LOWER | knob))
        yield _full(of, [runs("w", "q", 4, 1)], asks("x", "q", 1, 2 if knob is waits else 0))
    names = [f"f{i}" for i in range(250)]
    of = configuration(queue("q", **flavors(**dict.fromkeys(names, 1))), flavors=[{"name": name} for name in names])
    yield decide(of, [], [asks("x", "q", 2)], explain="summary")


def _protection(one: Json, none: Json) -> Iterator[Json]:
    yield preemptibility(one, [runs("w", "q", 4), runs("v", "never", 1)])
    yield preemptibility(none, [runs("w", "r", 2)])
    yield preemptibility(one, [runs("w", "q", 2)], ask=asks("x", "q", 1))
    yield preemptibility(one, [runs("w", "q", 2)], ask=asks("x", "q", 9))
    yield preemptibility(one, [runs("w", "q", 4)], ask=asks("x", "q", 1, 1))


def _full(of: Json, running: list[Json], *pending: Json, **more: Any) -> Json:
    return decide(of, running, list(pending), explain="full", **more)


def test_what_is_named_and_what_is_catalogued_are_the_same() -> None:
    named: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, list):
            for item in cast(list[Any], value):
                collect(item)
        elif isinstance(value, dict):
            of = cast(Json, value)
            eviction = "workload" in of and "queue" in of and "reason" in of
            if eviction or ("detail" in of and ("rule" in of or "reason" in of)):
                named.add(of.get("rule") or of["reason"])
            for item in of.values():
                collect(item)

    for scene in scenes():
        collect(json.loads(json.dumps(scene)))
    assert named == {rule.rule for rule in set(RULES) - set(PROPOSALS)}
