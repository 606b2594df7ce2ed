"""Consolidation, reclaim and preempt: who is taken, who is spared, what moves."""

import gc
from typing import Any
from weakref import ReferenceType, ref

import pytest

from app.solver.engines.kai import engine, solver
from app.solver.engines.kai.actions import Cycle, begin
from app.solver.engines.kai.overlay import Overlay
from tests.support.bounds import Bounded
from tests.support.kai_world import Json, crowded, decide
from tests.unit.solver.engines.kai.case import Case, ask, node, queue, workload

ROOT = queue("root", gpu="unlimited")
TWO = [ROOT, queue("a", "root", gpu=2), queue("b", "root", gpu=2)]
FULL = [workload(f"w{i}", "a", "n", priority=40 + i) for i in range(4)]


def test_reclaim_takes_the_newest_of_lowest_priority_back_to_the_deserved_quota() -> None:
    case = Case(TWO, [node("n")], FULL, ask("p", "b", 2))
    assert case.outcome("p") == "preempt"
    assert case.evicted == ["w0-0", "w1-0"]
    assert case.waiting == {"p-0", "p-1"}
    (first, _) = case.answer["plan"]["evictions"]
    assert (first["reason"], first["for_ask"], first["node"], first["queue"]) == ("reclaim", "p", "n", "a")
    assert "starts" not in case.decisions["p"]


def test_reclaim_never_takes_a_queue_below_its_share() -> None:
    case = Case(TWO, [node("n")], FULL, ask("p", "b", 3))
    assert case.outcome("p") == "wait"
    assert case.reason("p") == "OverFairShare"
    assert not case.evicted


def test_reclaim_spares_what_is_not_preemptible() -> None:
    fixed = [w | {"preemptible": False} for w in FULL[:3]]
    case = Case(
        [ROOT, queue("a", "root", gpu=4), queue("b", "root", gpu=2)], [node("n")], [*fixed, FULL[3]], ask("p", "b")
    )
    assert not case.evicted
    case = Case(TWO, [node("n")], [*fixed, FULL[3]], ask("p", "b"))
    assert case.evicted == ["w3-0"]


def test_a_gang_goes_whole_and_an_elastic_job_pod_by_pod() -> None:
    gang = workload("g", "a", "n", "n", "n", "n")
    case = Case(TWO, [node("n")], [gang], ask("p", "b"))
    assert case.evicted == ["g-3", "g-2", "g-1", "g-0"]
    case = Case(TWO, [node("n")], [gang | {"min_available": 1}], ask("p", "b"))
    assert case.evicted == ["g-3"]


def test_victims_that_find_another_place_move() -> None:
    nodes = [node("n", gpu=4), node("other", gpu=1)]
    case = Case(TWO, nodes, FULL, ask("p", "b", gpu=2), actions=["reclaim"])
    assert case.outcome("p") == "preempt"
    assert case.evicted == ["w0-0", "w1-0"]
    assert case.placed == {"p-0": "n", "w1-0": "other"}
    kept = next(v for v in case.decisions["p"]["victims"] if v["workload"] == "w1")
    assert kept["message"].endswith("it runs on at other")


def test_consolidation_moves_pods_and_nobody_loses() -> None:
    nodes = [node("n0", gpu=2), node("n1", gpu=2)]
    running = [workload("x", "a", "n0"), workload("y", "a", "n1")]
    queues = [ROOT, queue("a", "root", gpu=4)]
    case = Case(queues, nodes, running, ask("p", "a", gpu=2))
    assert case.outcome("p") == "preempt"
    assert len(case.evicted) == 1
    assert {e["reason"] for e in case.answer["plan"]["evictions"]} == {"consolidation"}
    assert case.placed.keys() == {"p-0", *case.evicted}
    none = Case(queues, nodes, running, ask("p", "a", gpu=2), max_consolidation_preemptees=0)
    assert none.outcome("p") == "wait"
    fixed = Case(queues, nodes, running, ask("p", "a", gpu=2, preemptible=False))
    assert fixed.outcome("p") == "wait"


def test_consolidation_needs_as_many_gpus_free_as_the_gang_asks_for() -> None:
    nodes = [node("n0", gpu=2), node("n1", gpu=2)]
    running = [workload("x", "a", "n0"), workload("y", "a", "n1"), workload("z", "a", "n1")]
    case = Case([ROOT, queue("a", "root", gpu=4)], nodes, running, ask("p", "a", gpu=2), actions=["consolidation"])
    assert case.reason("p") == "TooFewGpusFree"


def test_preempt_takes_lower_priority_of_its_own_queue() -> None:
    running = [*FULL[:2], workload("s", "a", "n", priority=70), workload("o", "b", "n", priority=10)]
    queues = [ROOT, queue("a", "root", gpu=4), queue("b", "root", gpu=4)]
    case = Case(queues, [node("n")], running, ask("p", "a", 2, priority=60))
    assert case.evicted == ["w0-0", "w1-0"]
    assert {e["reason"] for e in case.answer["plan"]["evictions"]} == {"preempt"}
    case = Case(queues, [node("n")], running, ask("p", "a", 3, priority=60))
    assert case.outcome("p") == "wait"
    case = Case(queues, [node("n")], running, ask("p", "a", priority=40), actions=["preempt"])
    assert case.reason("p") == "NoVictims"


def test_preempt_holds_a_fixed_job_to_the_deserved_quota() -> None:
    held = [workload("h", "a", "n", preemptible=False, priority=90), *FULL[:3]]
    case = Case(TWO, [node("n")], held, ask("p", "a", 2, priority=60, preemptible=False), actions=["preempt"])
    assert case.reason("p") == "NonPreemptibleOverQuota"
    case = Case(TWO, [node("n")], held, ask("p", "a", 1, priority=60, preemptible=False), actions=["preempt"])
    assert case.evicted == ["w0-0"]


def test_gpu_memory_counts_by_the_largest_node_for_the_quota_that_preempt_looks_at() -> None:
    nodes = [node("m", gpu=1, gpu_memory=16000), node("n", gpu=1, gpu_memory=80000)]
    memory = ask("p", "a", gpu=0, priority=60, preemptible=False, task={"gpu_memory": 32000})
    running = [workload("v", "b", "m"), workload("w", "a", "n")]
    queues = [ROOT, queue("a", "root", gpu=1), queue("b", "root", gpu=1)]
    assert Case(queues, nodes, running, memory, actions=["preempt"], release="0.17").evicted == ["w-0"]


def test_actions_run_in_the_order_given() -> None:
    idle = [node("n"), node("free")]
    assert Case(TWO, idle, FULL, ask("p", "b"), actions=["reclaim", "allocate"]).evicted == ["w0-0"]
    assert Case(TWO, idle, FULL, ask("p", "b"), actions=["allocate", "reclaim"]).evicted == []


def protected(reclaim: int, ran: str, **more: object) -> Case:
    queues = [ROOT, queue("a", "root", gpu=2, kai={"reclaim_min_runtime": reclaim}), queue("b", "root", gpu=2)]
    running = [w | {"started_at": ran} for w in FULL]
    return Case(queues, [node("n")], [w | more for w in running], ask("p", "b"), explain="full")


def test_minimum_runtimes_protect_from_reclaim() -> None:
    assert protected(3600, "2027-01-15T07:30:00Z").outcome("p") == "wait"
    assert protected(3600, "2027-01-15T06:30:00Z").evicted == ["w0-0"]
    future = protected(3600, "2028-01-01T00:00:00Z")
    assert future.outcome("p") == "wait"
    assert future.reason("p") == "NoVictims"
    explanation = future.decisions["p"]["explanation"]
    assert {(c["workload"], c["verdict"], c["rule"]) for c in explanation["candidates"]} == {
        (f"w{i}", "protected", "reclaim-min-runtime") for i in range(4)
    }


@pytest.mark.parametrize(("least", "taken"), [(2, ["e-3", "e-2"]), (3, ["e-3"]), (4, [])])
def test_a_protected_elastic_workload_keeps_its_gang(least: int, taken: list[str]) -> None:
    queues = [ROOT, queue("a", "root", kai={"reclaim_min_runtime": 3600}), queue("b", "root", gpu=4)]
    elastic = workload("e", "a", "n", "n", "n", "n", started_at="2027-01-15T07:59:00Z", min_available=least)
    asks = [ask(f"p{i}", "b") for i in range(3)]
    case = Case(
        queues, [node("n")], [elastic], *asks, actions=["reclaim"], explain="full", use_scheduling_signatures=False
    )
    assert case.evicted == taken
    waits = case.decisions["p2"]
    assert waits["outcome"] == "wait"
    if least < 4:
        steps = {step["rule"]: step for step in waits["explanation"]["steps"]}
        refused = steps["reclaim-min-runtime-gang"]["numbers"]
        assert (refused["keeps"], refused["needs"]) == (0, least)


def test_released_rules_count_pods_that_would_not_go() -> None:
    """Shipped: a listed pod counts as lost although this try leaves it alone; documented: only what is evicted."""
    queues = [ROOT, queue("a", "root", kai={"reclaim_min_runtime": 3600}), queue("b", "root", gpu=4)]
    guarded = workload("e", "a", "n", "n", started_at="2027-01-15T07:59:00Z", min_available=1, priority=10)
    other = workload("o", "a", "m", started_at="2027-01-01T00:00:00Z", priority=20)
    nodes = [node("n", gpu=2), node("m", gpu=1, labels={"k": "v"})]
    wants = ask("p", "b", task={"node_selector": {"k": "v"}})
    documented = Case(queues, nodes, [guarded, other], wants, actions=["reclaim"])
    assert documented.evicted == ["o-0"]
    shipped = Case(queues, nodes, [guarded, other], wants, actions=["reclaim"], rules="shipped", explain="full")
    assert shipped.reason("p") == "ReclaimMinRuntimeGang"
    steps = shipped.decisions["p"]["explanation"]["steps"]
    told = [(step["rule"], step["numbers"]["count"], step["numbers"]["pods"]) for step in steps]
    assert told == [("too-few-gpus", 1, 0), ("too-few-victims", 1, 1), ("reclaim-min-runtime-gang", 1, 2)], (
        "nobody after the two pods of e is looked at"
    )
    kept = Case(queues, nodes, [guarded | {"min_available": 0}, other], wants, actions=["reclaim"], rules="shipped")
    assert kept.evicted == ["o-0"], "a gang of none is never undercut"


def test_jobs_like_one_that_failed_are_skipped_only_with_signatures() -> None:
    queues = [ROOT, queue("a", "root", gpu=2), queue("b", "root", gpu=8)]
    running = [workload(f"w{i}", "a", "n") for i in range(2)]
    asks = [ask("big", "b", 2, gpu=2, priority=60), ask("like", "b", 2, gpu=2), ask("small", "b", 1, gpu=1)]
    for on, reason in ((True, "NoEasier"), (False, "WithinAllocatableShare")):
        case = Case(
            queues,
            [node("n", gpu=2)],
            running,
            *asks,
            actions=["reclaim"],
            explain="full",
            use_scheduling_signatures=on,
        )
        assert case.outcome("like") == case.outcome("small") == "wait"
        steps = case.decisions["like"]["explanation"]["steps"]
        assert ("no-easier" in {s["rule"] for s in steps}) == on, reason


@pytest.mark.parametrize(("release", "served"), [("0.13", False), ("0.17", True)])
@pytest.mark.parametrize(("action", "asking"), [("reclaim", "b"), ("preempt", "a")])
@pytest.mark.parametrize("first", [[], ["allocate"]])
def test_since_0_17_nobody_is_skipped_for_a_job_larger_than_any_node(
    release: str, served: bool, action: str, asking: str, first: list[str]
) -> None:
    """More GPUs than the largest node has, and less CPU than the next job, which is therefore no easier."""
    nodes = [node("m", gpu=2), node("n", gpu=2)]
    running = [workload(f"w{i}", "a", where, priority=10) for i, where in enumerate("mmnn")]
    asks = [ask("large", asking, gpu=3, cpu=1, priority=70), ask("fits", asking, gpu=1, cpu=2, priority=60)]
    queues = [ROOT, queue("a", "root", gpu=1), queue("b", "root", gpu=3)]
    case = Case(queues, nodes, running, *asks, actions=[*first, action], explain="full", release=release)
    assert len(case.evicted) == served
    rules = {step["rule"] for step in case.decisions["large"]["explanation"]["steps"]}
    assert ("larger-than-any-node" in rules) == served


@pytest.mark.parametrize(
    ("large", "closed", "skipped"),
    [
        ({"gpu": 4}, node("closed", schedulable=False), True),
        ({"gpu": 4}, node("closed", schedulable=False, occupied={"gpu": 2}), True),
        ({"gpu": 4}, node("closed", gpu=3, schedulable=False), False),
        ({"gpu": 1, "fpga": 1}, node("closed", schedulable=False), False),
        ({"gpu_memory": 10**6}, node("closed", gpu=3, schedulable=False), True),
    ],
)
def test_the_largest_node_is_the_largest_whoever_holds_it(large: Json, closed: Json, skipped: bool) -> None:
    """A pod that fits only what is cordoned or held by others fails, and those that are no easier are skipped. What no
    node has is more than any has; of GPU memory nobody knows."""
    running = [workload(f"w{i}", "a", "n", priority=10) for i in range(2)]
    memory = large.pop("gpu_memory", None)
    pod = {"name": "large-0", "requests": {"cpu": 1, **large}, **({"gpu_memory": memory} if memory else {})}
    asks = [ask("large", "a", priority=70) | {"tasks": [pod]}, ask("fits", "a", gpu=1, cpu=2, priority=60)]
    case = Case(TWO, [node("n", gpu=2), closed], running, *asks, actions=["preempt"], release="0.17")
    assert case.evicted == ([] if skipped else ["w1-0"])


def test_evicted_asks_of_the_same_cycle_just_wait() -> None:
    """What allocate has just placed may be taken again by a later action: nothing that runs is stopped for it."""
    queues = [ROOT, queue("a", "root"), queue("b", "root", gpu=4)]
    case = Case(
        queues, [node("n", gpu=2)], [], ask("x", "a", 2), ask("y", "b", 2, priority=90), actions=["allocate", "reclaim"]
    )
    assert case.outcome("y") == "admit"
    assert case.outcome("x") == "wait"
    assert case.answer["plan"]["evictions"] == []


def test_a_search_out_of_steps_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    Bounded(monkeypatch)(solver, MOST_STEPS=6)
    case = Case(TWO, [node("n")], FULL, ask("p", "b", 2), ask("q", "a", gpu=9))
    assert case.outcome("p") == "wait"
    assert case.reason("p") == "SearchCutShort"
    assert not case.evicted
    assert case.reason("q") == "LargerThanAnyNode"


def test_independent_asks_do_not_see_one_another() -> None:
    asks: list[Json] = [ask("p", "b", 2), ask("q", "b", 2)]
    alone = Case(TWO, [node("n")], FULL, *asks, mode="independent")
    assert [alone.outcome("p"), alone.outcome("q")] == ["preempt", "preempt"]
    plans = [[e["task"] for e in one["plan"]["evictions"]] for one in alone.answer["decisions"]]
    assert plans == [["w0-0", "w1-0"], ["w0-0", "w1-0"]]
    assert alone.answer["plan"] == {"evictions": [], "placements": []}
    together = Case(TWO, [node("n")], FULL, *asks)
    assert [together.outcome("p"), together.outcome("q")] == ["preempt", "wait"]


@pytest.mark.parametrize("rules", ["documented", "shipped"])
def test_a_victim_put_back_for_one_part_is_taken_once_at_most_for_the_next(rules: str) -> None:
    """n0 has 1 GPU free, n1 2, n2 none. Part 1 (2 GPUs) goes to n1 with ``new`` evicted, which moves to n0. Part 2 (and
    1 GPU in zone a) fits with ``new`` put back: p-0 on n1, p-1 on n0, and 1 GPU is left for ``new`` on n1. Part 3 (and
    3 GPUs in zone b) takes ``new`` and ``old`` from n1: of its 6 GPUs 5 are used, so that ``new`` stays."""
    nodes = [
        node("n0", gpu=2, labels={"zone": "a"}),
        node("n1", gpu=6, labels={"zone": "b"}),
        node("n2", gpu=3, labels={"zone": "a"}),
    ]
    running = [
        workload("old", "a", "n1", gpu=3, priority=40, created_at="2027-01-01T00:00:00Z"),
        workload("new", "a", "n1", gpu=1, priority=40, created_at="2027-01-01T00:01:00Z"),
        workload("x", "a", "n0", gpu=1, priority=45),
        workload("y", "a", "n2", gpu=3, priority=45),
    ]
    gang = ask("p", "a", 3)
    for task, (gpus, zone) in zip(gang["tasks"], [(2, None), (1, "a"), (3, "b")], strict=True):
        task["requests"]["gpu"] = gpus
        task["node_selector"] = {"zone": zone} if zone else {}
    case = Case([queue("root", gpu="unlimited"), queue("a", "root", gpu=9)], nodes, running, gang, actions=["preempt"],
                rules=rules)  # fmt: skip
    assert case.evicted == ["old-0"]
    assert case.placed == {"p-0": "n1", "p-1": "n0", "p-2": "n1"}


def test_pods_that_wait_for_a_place_do_not_start_now() -> None:
    """One GPU is idle for the gang of one, the second pod waits for the one that is reclaimed."""
    queues = [ROOT, queue("a", "root", gpu=2), queue("b", "root", gpu=0)]
    case = Case(queues, [node("n", gpu=2)], [workload("w", "b", "n")], ask("p", "a", 2, min_available=1))
    assert (case.outcome("p"), case.evicted, case.waiting) == ("preempt", ["w-0"], {"p-1"})
    (condition,) = case.decisions["p"]["conditions"]
    assert condition["message"] == "1 of 2 pods start now, 1 more once what is on its place is gone"


def test_an_ask_of_which_some_pod_starts_is_admitted_although_another_waits() -> None:
    """One GPU is idle, one is being released: nobody has to be evicted for it."""
    queues = [ROOT, queue("a", "root", gpu=2)]
    going = workload("w", "a", "n")
    going["tasks"][0]["state"] = "releasing"
    case = Case(queues, [node("n", gpu=2)], [going], ask("p", "a", 2, min_available=1))
    assert (case.outcome("p"), case.evicted, case.waiting, len(case.placed)) == ("admit", [], {"p-1"}, 2)


def test_who_loses_its_place_again_waits_and_its_victims_go_for_whoever_has_the_room() -> None:
    """``p`` preempts ``w`` of its own queue, which deserves nothing; then ``q`` reclaims the place that ``p`` got."""
    queues = [ROOT, queue("a", "root", gpu=0), queue("b", "root", gpu=1)]
    running = [workload("w", "a", "n", priority=40)]
    asks = [ask("p", "a"), ask("q", "b")]
    case = Case(queues, [node("n", gpu=1)], running, *asks, actions=["preempt", "reclaim"], rules="shipped")
    eviction, again = case.answer["plan"]["evictions"]
    assert (eviction["task"], eviction["reason"], eviction["for_ask"]) == ("w-0", "preempt", "q")
    assert again == {
        "workload": "p", "task": "p-0", "queue": "a", "node": "n", "reason": "reclaim", "for_ask": "q",
        "just_placed": True,
    }  # fmt: skip
    assert (case.outcome("p"), case.decisions["p"]["victims"]) == ("wait", [])
    (condition,) = case.decisions["p"]["conditions"]
    assert (condition["reason"], condition["message"]) == (
        "PlaceTaken", "reclaim: q took the place that it was given"
    )  # fmt: skip
    assert (case.outcome("q"), case.placed) == ("preempt", {"q-0": "n"})
    (victim,) = case.decisions["q"]["victims"]
    assert victim["message"].endswith("p, which has a higher priority in the same queue a; q has that room now")


def test_of_those_who_took_its_places_one_by_one_the_last_is_named() -> None:
    """``p`` preempts both workloads of its own queue, a pod an action; then ``q`` and ``r`` reclaim a pod each."""
    queues = [ROOT, queue("a", "root"), queue("b", "root", gpu=2)]
    running = [workload(f"w{i}", "a", "n", priority=40) for i in range(2)]
    asks = [ask("p", "a", 2, min_available=1), ask("q", "b"), ask("r", "b")]
    actions = ["preempt", "preempt", "reclaim"]
    case = Case(queues, [node("n", gpu=2)], running, *asks, actions=actions, rules="shipped")
    assert [case.outcome(name) for name in ("p", "q", "r")] == ["wait", "wait", "preempt"]
    assert case.decisions["p"]["conditions"][0]["message"] == "reclaim: r took the place that it was given"
    evictions = case.answer["plan"]["evictions"]
    assert {e["for_ask"] for e in evictions if "just_placed" not in e} == {"r"}
    assert {(e["task"], e["for_ask"]) for e in evictions if "just_placed" in e} == {("p-0", "r"), ("p-1", "q")}


def test_victims_go_for_the_ask_whose_pods_they_make_room_for() -> None:
    """Two asks grow one workload by a pod each, and each of the pods takes one of the two that ``w`` runs."""
    queues = [ROOT, queue("a", "root", gpu=9), queue("b", "root", gpu=0)]
    running = [workload("w", "b", "n", "n", min_available=1), workload("own", "a", "n", min_available=1)]
    grown = [ask(name, "a", workload="own", min_available=1) for name in ("p", "q")]
    case = Case(queues, [node("n", gpu=3)], running, *grown, actions=["reclaim", "reclaim"])
    assert [[v["task"] for v in case.decisions[name]["victims"]] for name in ("p", "q")] == [["w-1"], ["w-0"]]
    assert [case.outcome(name) for name in ("p", "q")] == ["preempt", "preempt"]


def test_saturation_is_asked_of_what_is_wanted_or_taken_alone() -> None:
    """``p`` holds twice its share of the GPUs and ``q`` none of its own: no matter where only CPU changes hands. ``q``
    uses 12 of the 16 CPUs and deserves 8; ``p`` has a higher priority, so that ``q`` does not take them back."""
    cpu = {"quota": {"cpu": {"guaranteed": 8}}}
    queues = [
        ROOT, queue("p", "root", gpu=1, priority=200, **cpu), queue("p1", "p", **cpu), queue("p2", "p", gpu=1),
        queue("q", "root", gpu=1, **cpu), queue("q1", "q", gpu=1, **cpu),
    ]  # fmt: skip
    running = [workload(f"g{i}", "p2", "n", preemptible=False) for i in range(2)]
    running += [workload(f"c{i}", "q1", "n", gpu=0, cpu=4) for i in range(3)]
    asks = [ask("a", "p1", gpu=0, cpu=4, priority=60), ask("gpu", "q1")]
    case = Case(queues, [node("n", gpu=2)], running, *asks, actions=["reclaim"])
    assert case.evicted == ["c2-0"]
    gpu = Case(queues, [node("n", gpu=2)], running, ask("a", "p1", cpu=4, priority=60), asks[1], actions=["reclaim"])
    assert gpu.outcome("a") == "wait"
    assert gpu.evicted == []


@pytest.mark.parametrize("release", ["0.13", "0.17"])
def test_what_a_decision_has_built_goes_with_it(monkeypatch: pytest.MonkeyPatch, release: str) -> None:
    """No ring of references keeps it until somebody looks for garbage."""
    overlays: list[ReferenceType[Overlay]] = []

    def begun(*args: Any, **more: Any) -> Cycle:
        cycle = begin(*args, **more)
        overlays.append(ref(cycle.overlay))
        return cycle

    monkeypatch.setattr(engine, "begin", begun)
    body = crowded(1)
    body["configuration"]["settings"]["kai"]["release"] = release
    gc.disable()
    try:
        assert decide(body)["plan"]["evictions"]
        assert overlays
        assert not any(overlay() for overlay in overlays)
    finally:
        gc.enable()
