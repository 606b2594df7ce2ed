"""What is told of the heads of a cycle: nobody stops for a head that is skipped, and the real blocker is named."""

from typing import Any

from tests.unit.solver.engines.kueue.cluster import asks, configuration, decide, queue, runs, victims

ANY = {"reclaim_within_cohort": "Any"}
PINNED = {"cpu": "default"}
Json = dict[str, Any]


def cycle(of: Json, running: list[Json], *pending: Json) -> dict[str, Json]:
    return decide(of, running, list(pending), mode="cycle", explain="full")["decisions"]


def told(decision: Json) -> dict[str, tuple[str, str]]:
    return {c["workload"]: (c["verdict"], c["rule"]) for c in decision["explanation"]["candidates"]}


def test_a_head_that_fits_after_others_victims_stops_nobody_itself() -> None:
    of = configuration(
        queue("co"), queue("a", 2, "co", preemption=ANY), queue("b", 2, "co", preemption=ANY), queue("c", 0, "co")
    )
    found = cycle(of, [runs("big", "c", 4)], asks("x", "a", 2), asks("y", "b", 2))
    assert victims(found["x"]) == ["big"]
    assert told(found["x"]) == {"big": ("victim", "InCohortReclamation")}
    assert (found["y"]["outcome"], told(found["y"])) == ("wait", {})
    assert found["y"]["explanation"]["blocker"] == "big stops for x; it fits once that is done"


def test_a_head_assigned_again_tells_of_its_second_search() -> None:
    """Both want big first, which is the newer one. y goes on with small."""
    of = configuration(
        queue("co"), queue("a", 4, "co", preemption=ANY), queue("b", 4, "co", preemption=ANY), queue("c", 0, "co")
    )
    running = [runs("big", "c", 4, started_at="2026-01-01T11:00:00Z"), runs("small", "c", 4)]
    found = cycle(of, running, asks("x", "a", 4), asks("y", "b", 4))
    assert told(found["x"]) == {
        "big": ("victim", "InCohortReclamation"),
        "small": ("not-needed", "candidate-not-reached"),
    }
    assert told(found["y"]) == {"big": ("out-of-reach", "already-leaving"), "small": ("victim", "InCohortReclamation")}


def test_a_head_that_is_outrun_stops_nobody() -> None:
    """x could have all 6 once w stops. But y comes first and takes 2 of them."""
    lower = {"within_cluster_queue": "LowerPriority"}
    of = configuration(queue("co", 2), queue("a", 4, "co", preemption=lower), queue("b", 0, "co"))
    running = [runs("w", "a", 4)]
    found = cycle(of, running, asks("x", "a", 6, priority=1, flavors=PINNED), asks("y", "b", 2, priority=2))
    assert (found["x"]["outcome"], found["y"]["outcome"]) == ("wait", "admit")
    assert told(found["x"]) == {"w": ("not-needed", "head-skipped")}
    assert found["x"]["explanation"]["blocker"] == (
        "default/cpu: 2 more needed once all victims are gone; y took 2 before it in this cycle"
    )


def test_only_heads_that_made_a_difference_are_named() -> None:
    """own uses what its queue never lends; elsewhere is in another tree."""
    of = configuration(
        queue("co", 4), queue("a", 0, "co"), queue("b", 0, "co"), queue("c", 0, "co"),
        queue("keeps", {"guaranteed": 2, "lending_limit": 0}, "co"), queue("far", 9),
    )  # fmt: skip
    found = cycle(
        of, [], asks("own", "keeps", 2, 9), asks("elsewhere", "far", 2, 9), asks("x", "a", 2, 5), asks("y", "b", 2, 4),
        asks("z", "c", 3),
    )  # fmt: skip
    assert found["z"]["explanation"]["blocker"] == (
        "default/cpu: 3 more needed once all victims are gone; x and y took 4 before it in this cycle"
    )


def test_a_head_that_finds_nobody_is_told_what_earlier_heads_took() -> None:
    """Of 4, w runs on 1 and may not be touched; y, which is older, takes 2 of the 3 that are left."""
    of = configuration(queue("co", 4), queue("a", 0, "co", preemption=ANY), queue("b", 0, "co"), queue("c", 0, "co"))
    old = {"created_at": "2026-01-01T09:00:00Z"}
    found = cycle(
        of, [runs("w", "c", 1, preemptible=False)], asks("x", "a", 4, flavors=PINNED), asks("y", "b", 2) | old
    )
    assert (found["x"]["outcome"], found["y"]["outcome"]) == ("wait", "admit")
    assert found["x"]["explanation"]["blocker"] == (
        "default/cpu: 3 more needed; what cohort co has in all is used up; most of it (1 in 1 workload(s)) is marked "
        "as not preemptible; y took 2 in this cycle"
    )


def test_an_ask_behind_the_head_of_its_queue_is_told_so() -> None:
    found = cycle(configuration(queue("q", 9)), [], asks("first", "q", 1, 1), asks("second", "q", 1))
    explained = found["second"]["explanation"]
    assert explained["headline"] == "second waits behind first"
    assert explained["blocker"].startswith("first goes first: one ask of a queue is tried in a cycle")


def test_names_past_a_few_are_counted() -> None:
    of = configuration(queue("co", 5), *[queue(f"q{i}", 0, "co") for i in range(6)])
    found = cycle(of, [], *[asks(f"x{i}", f"q{i}", 1, priority=6 - i) for i in range(6)])
    assert found["x5"]["explanation"]["blocker"] == (
        "default/cpu: 1 more needed once all victims are gone; x0, x1, x2 and 2 more took 5 before it in this cycle"
    )


def test_of_two_resources_the_larger_lack_is_named() -> None:
    """y takes 1 of 4 cpu and 6 of 8 gpu; x wants all of both. In steps the cpu would be more."""
    of = configuration(
        {"name": "co", "quota": {"cpu": {"guaranteed": 4}, "gpu": {"guaranteed": 8}}},
        *[{"name": name, "parent": "co", "quota": {r: {"guaranteed": 0} for r in ("cpu", "gpu")}} for name in "ab"],
    )  # fmt: skip

    def pair(name: str, queue_name: str, cpu: int, gpu: int, priority: int) -> Json:
        task = {"name": "main", "requests": {"cpu": cpu, "gpu": gpu}}
        return asks(name, queue_name, 0, priority) | {"tasks": [task]}

    found = cycle(of, [], pair("x", "a", 4, 8, 0), pair("y", "b", 1, 6, 1))
    assert found["x"]["explanation"]["blocker"] == (
        "default/gpu: 6 more needed once all victims are gone; y took 6 before it in this cycle"
    )
