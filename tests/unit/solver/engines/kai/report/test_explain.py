"""Explanations: what became of whom, and what stands in the way, worked out by hand."""

import ast
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.solver.engines import kai
from app.solver.engines.kai.engine import ENGINE
from app.solver.engines.kai.rule_sets import RULES
from app.solver.model.configuration import Configuration
from app.solver.model.problems import PROPOSALS, InvalidInput
from tests.support.kai_world import Json
from tests.unit.solver.engines.kai.case import Case, ask, node, queue, workload

ROOT = queue("root", gpu="unlimited")
TWO = [ROOT, queue("a", "root", gpu=2), queue("b", "root", gpu=2)]
YOUNG = "2027-01-15T07:59:00Z"


def verdicts(case: Case, name: str) -> dict[str, tuple[str, str]]:
    """Verdict and rule by workload, or by pod."""
    return {
        c.get("task", c["workload"]): (c["verdict"], c["rule"])
        for c in case.decisions[name]["explanation"].get("candidates", [])
    }


def blocker(case: Case, name: str) -> str:
    return case.decisions[name]["explanation"]["blocker"]


def steps(case: Case, name: str) -> dict[str, Json]:
    return {step["rule"]: step for step in case.decisions[name]["explanation"]["steps"]}


def test_reclaim_tells_of_everybody_who_runs() -> None:
    """``b`` may have 2 of the 6 GPUs and ``a`` holds them all: the newest of the lowest priority goes."""
    running = [
        workload("old", "a", "n", priority=40, created_at="2026-01-01T00:00:00Z"),
        workload("new", "a", "n", priority=40, created_at="2026-02-01T00:00:00Z"),
        workload("fixed", "a", "n", preemptible=False),
        workload("young", "a", "n", "n", started_at=YOUNG),
        workload("own", "b", "n", priority=40),
    ]
    queues = [ROOT, queue("a", "root", gpu=2), queue("b", "root", gpu=2)]
    case = Case(
        queues, [node("n", gpu=6)], running, ask("p", "b"), actions=["reclaim"], explain="full",
        default_reclaim_min_runtime="1h",
    )  # fmt: skip
    assert verdicts(case, "p") == {
        "old": ("not-needed", "enough-without"), "new-0": ("victim", "reclaim"),
        "fixed": ("protected", "not-preemptible"), "young": ("protected", "reclaim-min-runtime"),
        "own": ("out-of-reach", "own-queue"),
    }  # fmt: skip
    assert case.decisions["p"]["explanation"]["headline"] == "p: preempt"
    assert "blocker" not in case.decisions["p"]["explanation"]


def test_preempt_tells_of_everybody_who_runs() -> None:
    running = [
        workload("low", "a", "n", priority=40), workload("same", "a", "n", priority=50),
        workload("other", "b", "n", priority=40), workload("above", "root", "n", priority=40),
    ]  # fmt: skip
    case = Case(TWO, [node("n")], running, ask("p", "a"), actions=["preempt"], explain="full")
    assert verdicts(case, "p") == {
        "low-0": ("victim", "preempt"), "same": ("protected", "priority-not-lower"),
        "other": ("out-of-reach", "other-queue"), "above": ("out-of-reach", "other-queue"),
    }  # fmt: skip
    case = Case(TWO, [node("n")], running, ask("p", "b"), actions=["reclaim"], explain="full")
    assert verdicts(case, "p")["above"] == ("out-of-reach", "queue-not-a-leaf")


def test_a_pod_that_is_put_back_says_so_and_one_that_moves_too() -> None:
    """The ask of 2 GPUs leaves 1 of 3 on n0 for ``v``, which goes on there; one of 3 moves it to n1."""
    running = [workload("v", "a", "n0", priority=40)]
    case = Case(TWO, [node("n0", gpu=3)], running, ask("p", "a", gpu=2), actions=["preempt"], explain="full")
    assert verdicts(case, "p") == {"v-0": ("put-back", "fits-with-it")}
    running = [workload("v", "a", "n0", priority=40)]
    nodes = [node("n0", gpu=3), node("n1", gpu=1)]
    case = Case(TWO, nodes, running, ask("p", "a", gpu=3), actions=["consolidation"], explain="full")
    assert verdicts(case, "p") == {"v-0": ("moved", "consolidation")}


def test_consolidation_looks_at_so_many_jobs() -> None:
    running = [workload(f"w{i}", "a", "n0") for i in range(3)]
    case = Case(
        TWO, [node("n0"), node("n1")], running, ask("p", "a", gpu=5), actions=["consolidation"], explain="full",
        max_consolidation_preemptees=1,
    )  # fmt: skip
    assert verdicts(case, "p") == {
        "w0": ("not-needed", "nothing-found"), "w1": ("not-needed", "nothing-found"),
        "w2": ("out-of-reach", "beyond-cap"),
    }  # fmt: skip


def test_who_is_taken_for_one_ask_is_out_of_reach_of_the_next() -> None:
    """Both asks of ``a`` want the only pod of lower priority; the one of higher priority gets it."""
    asks = [ask("first", "a", priority=60), ask("second", "a")]
    case = Case(
        TWO, [node("n", gpu=1)], [workload("w", "a", "n", priority=40)], *asks, actions=["preempt"], explain="full"
    )
    assert verdicts(case, "first") == {"w-0": ("victim", "preempt")}
    assert steps(case, "second").keys() == {"no-victims"}
    running = [workload("w", "a", "n", priority=40), workload("x", "a", "m", priority=45)]
    nodes = [node("n", gpu=1, labels={"at": "n"}), node("m", gpu=1)]
    bound: Json = {"task": {"node_selector": {"at": "n"}}}
    asks = [ask("first", "a", priority=60, **bound), ask("second", "a", **bound)]
    case = Case(
        TWO, nodes, running, *asks, actions=["preempt"], explain="full", use_scheduling_signatures=False,
        max_consolidation_preemptees=5,
    )  # fmt: skip
    assert verdicts(case, "second") == {"w": ("out-of-reach", "already-going"), "x": ("not-needed", "nothing-found")}


def test_who_loses_its_place_shows_no_victims_and_who_has_it_shows_them() -> None:
    queues = [ROOT, queue("a", "root", gpu=0), queue("b", "root", gpu=1)]
    running = [workload("w", "a", "n", priority=40)]
    asks = [ask("p", "a"), ask("q", "b")]
    actions = ["preempt", "reclaim"]
    case = Case(queues, [node("n", gpu=1)], running, *asks, actions=actions, explain="full", rules="shipped")
    assert verdicts(case, "p") == {"w-0": ("not-needed", "goes-for-another")}
    assert verdicts(case, "q") == {"w-0": ("victim", "preempt")}
    assert blocker(case, "p") == "reclaim: q took the place that it was given"
    assert steps(case, "p")["place-taken"]["numbers"] == {"ask": "q"}
    assert steps(case, "q")["place-taken"]["numbers"] == {"ask": "p"}


def test_a_place_that_another_ask_took_is_why_although_the_node_had_room_before_the_cycle() -> None:
    """One GPU is free. Allocate gives it to ``r`` and has no room for ``p``, which then preempts ``w``; reclaim gives
    ``q`` the places of both."""
    queues = [ROOT, queue("a", "root"), queue("b", "root", gpu=2)]
    running = [workload("w", "a", "n", priority=40)]
    asks = [ask("r", "a", priority=60), ask("p", "a"), ask("q", "b", gpu=2)]
    actions = ["allocate", "preempt", "reclaim"]
    case = Case(queues, [node("n", gpu=2)], running, *asks, actions=actions, explain="full", rules="shipped")
    assert [case.outcome(name) for name in ("r", "p", "q")] == ["wait", "wait", "preempt"]
    assert "no-room" in steps(case, "p")
    assert blocker(case, "p") == blocker(case, "r") == "reclaim: q took the place that it was given"


def test_whom_a_validator_protects_is_protected() -> None:
    """``w`` may lose one of its two pods within the minimum runtime, and the ask needs both places."""
    elastic = workload("w", "a", "n", "n", min_available=1, started_at=YOUNG)
    queues = [ROOT, queue("a", "root", gpu=0), queue("b", "root", gpu=2)]
    case = Case(
        queues, [node("n", gpu=2)], [elastic], ask("p", "b", 2), actions=["reclaim"], explain="full",
        default_reclaim_min_runtime="1h",
    )  # fmt: skip
    assert verdicts(case, "p") == {"w": ("protected", "reclaim-min-runtime-gang")}
    assert "would keep 0 of the 1 pods" in blocker(case, "p")


def test_whose_queue_is_within_its_share_is_protected() -> None:
    """``a`` holds the one GPU that it deserves, and what ``c`` holds beyond its share can't be taken."""
    queues = [ROOT, queue("a", "root", gpu=1), queue("b", "root", gpu=1), queue("c", "root", gpu=0)]
    running = [workload("w", "a", "n"), workload("held", "c", "n", preemptible=False)]
    case = Case(queues, [node("n", gpu=2)], running, ask("p", "b"), actions=["reclaim"], explain="full")
    assert verdicts(case, "p") == {
        "w": ("protected", "within-allocatable-share"), "held": ("protected", "not-preemptible"),
    }  # fmt: skip
    assert "a is within its share" in blocker(case, "p")


def test_the_side_that_would_be_more_saturated_may_not_reclaim() -> None:
    """``left`` holds its whole share of 3 with ``held``, which can't be taken. With the ask of ``a`` it would hold 4 of
    3, while ``right`` would be left with nothing of its 1."""
    queues = [
        ROOT, queue("left", "root", gpu=3, weight=0), queue("right", "root", gpu=1, weight=0),
        queue("a", "left", gpu=1), queue("a2", "left", gpu=2), queue("b", "right", gpu=1),
    ]  # fmt: skip
    running = [workload("held", "a2", "n", gpu=3, preemptible=False), workload("w", "b", "n", gpu=2)]
    case = Case(queues, [node("n", gpu=5)], running, ask("p", "a"), actions=["reclaim"], explain="full")
    assert case.outcome("p") == "wait"
    assert verdicts(case, "p") == {"held": ("protected", "not-preemptible"), "w": ("protected", "saturation")}
    assert steps(case, "p")["saturation"]["numbers"]["sibling"] == "right"


def test_what_the_victim_holds_counts_for_saturation_though_the_ask_wants_none_of_it() -> None:
    """An ask for cpu alone, of a side with 4 of its 3 GPUs: ``w`` would leave ``right`` with no GPU of its 1."""
    queues = [
        ROOT, queue("left", "root", gpu=3, weight=0), queue("right", "root", gpu=1, weight=0),
        queue("a", "left", gpu=1), queue("a2", "left", gpu=2), queue("b", "right", gpu=1),
    ]  # fmt: skip
    for gpus, reason in ((4, "Saturation"), (3, "Pipelined")):
        running = [workload("held", "a2", "n", gpu=gpus, preemptible=False), workload("w", "b", "n", gpu=2, cpu=15)]
        case = Case(
            queues, [node("n", gpu=6)], running, ask("p", "a", gpu=0, cpu=4), actions=["reclaim"], explain="full"
        )
        assert case.reason("p") == reason


def test_each_part_of_a_gang_is_told_by_itself() -> None:
    queues = [ROOT, queue("a", "root", gpu=0), queue("b", "root", gpu=2)]
    running = [workload(f"w{i}", "a", "n", priority=40 + i) for i in range(2)]
    case = Case(queues, [node("n", gpu=2)], running, ask("p", "b", 2), actions=["reclaim"], explain="full")
    told = [step["numbers"] for step in case.decisions["p"]["explanation"]["steps"] if step["rule"] == "solved"]
    assert [(of["part"], of["pods_of_gang"], of["victims"], of["count"]) for of in told] == [(1, 2, 1, 1), (2, 2, 2, 1)]


def test_what_is_held_for_other_asks_is_no_lack_of_room() -> None:
    asks = [ask("p", "a", priority=60), ask("q", "a", priority=55), ask("r", "a"), ask("s", "a", 5)]
    case = Case([ROOT, queue("a", "root", gpu=9)], [node("n0", gpu=1), node("n1", gpu=1)], [], *asks, explain="full")
    assert [case.outcome(name) for name in ("p", "q", "r", "s")] == ["admit", "admit", "wait", "wait"]
    assert blocker(case, "r") == "n0 had room for it before the cycle began, and holds p now"
    assert blocker(case, "s").endswith("nobody that it may take from"), "five pods would fit in no case"
    case = Case(
        [ROOT, queue("a", "root", gpu=9)], [node("n0", gpu=1), node("n1", gpu=1)], [], asks[0], asks[1],
        ask("r", "a", 2), explain="full",
    )  # fmt: skip
    assert blocker(case, "r") == "n0, n1 had room for it before the cycle began, and hold p, q now"
    assert case.decisions["r"]["explanation"]["headline"] == f"r waits: {blocker(case, 'r')}"


def test_an_ask_that_nobody_was_searched_for_has_no_candidates() -> None:
    case = Case(TWO, [node("n")], [workload("w", "b", "n")], ask("p", "a"), explain="full")
    assert case.outcome("p") == "admit"
    assert verdicts(case, "p") == {}


def test_who_has_a_place_waits_for_that_place_whatever_failed_before() -> None:
    """Reclaim has nobody to take from; preempt finds that the ask fits with ``w`` where it was. One GPU was free all
    the time."""
    case = Case(
        [ROOT, queue("a", "root", gpu=2)], [node("n", gpu=2)], [workload("w", "a", "n", priority=40)], ask("p", "a"),
        actions=["reclaim", "preempt"], explain="full",
    )  # fmt: skip
    assert (case.outcome("p"), case.placed, case.evicted) == ("wait", {"p-0": "n"}, [])
    assert blocker(case, "p") == "1 of 1 pods have a place that is still being released"
    assert case.decisions["p"]["explanation"]["headline"] == f"p waits: {blocker(case, 'p')}"


def test_neither_what_runs_no_more_nor_the_asking_workload_ends_the_list_of_candidates() -> None:
    going = workload("a", "a", "n", priority=40)
    going["tasks"][0]["state"] = "releasing"
    running = [going, workload("b", "a", "n"), workload("c", "a", "n", priority=40), workload("d", "b", "n")]
    grows = ask("p", "a", workload="b", min_available=1)
    case = Case(TWO, [node("n")], running, grows, actions=["preempt"], explain="full")
    assert verdicts(case, "p") == {"c-0": ("put-back", "fits-with-it"), "d": ("out-of-reach", "other-queue")}


def test_what_forbids_says_more_than_what_was_never_looked_at() -> None:
    """Reclaim does not look at the ask's own queue, and preempt may not take what has no lower priority."""
    running = [workload("w", "a", "n", priority=90), workload("v", "b", "n", priority=40)]
    case = Case(TWO, [node("n", gpu=2)], running, ask("p", "a"), actions=["reclaim", "preempt"], explain="full")
    assert verdicts(case, "p")["w"] == ("protected", "priority-not-lower")


def test_a_gang_of_which_too_few_are_alive_says_how_many() -> None:
    """One pod runs, one is being released, one is pending; the gang needs three."""
    work = workload("w", "a", "n", "n", min_available=3)
    work["tasks"][1]["state"] = "releasing"
    case = Case(TWO, [node("n")], [work], ask("p", "a", workload="w", min_available=3), explain="full")
    assert (case.outcome("p"), case.reason("p")) == ("wait", "GangIncomplete")
    assert blocker(case, "p") == "its gang needs 3 pods and 2 are there"


def test_rules_that_are_emitted_stand_in_the_catalogue_and_the_other_way_round() -> None:
    """Every id of the catalogue is a word of some file of the engine, or one that an action's name makes."""
    folder = Path(kai.__file__).parent
    words: set[Any] = set()
    for file in folder.rglob("*.py"):
        if file.stem == "rules":
            continue
        words |= {n.value for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Constant)}
    made = {f"{action}{end}" for action in ("reclaim", "preempt") for end in ("-min-runtime", "-min-runtime-gang")}
    assert {rule.rule for rule in set(RULES) - set(PROPOSALS)} <= words | made


def test_a_refusal_speaks_of_the_queue_that_it_is_about_and_of_no_other() -> None:
    """b may have all three GPUs. c's one goes first, a's two are what a deserves: nothing that was tried made room, and
    only a's workload is why."""
    queues = [queue("root", gpu="unlimited"), queue("a", "root", gpu=2), queue("b", "root", gpu=3), queue("c", "root")]
    running = [workload("x", "a", "n", "n"), workload("y", "c", "n", priority=10)]
    case = Case(queues, [node("n", gpu=3)], running, ask("p", "b", 3), actions=["reclaim"], explain="full")
    assert case.outcome("p") == "wait"
    candidates = case.decisions["p"]["explanation"]["candidates"]
    assert {c["workload"]: (c["verdict"], c["rule"]) for c in candidates} == {
        "x": ("protected", "within-allocatable-share"), "y": ("not-needed", "nothing-found"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("release", "budgets", "told", "finding"),
    [
        ("0.17", {"max_job_search_duration": "1ms"}, True, "no search ends so here"),
        ("0.17", None, False, None), ("0.13", {}, False, "KAI 0.13 has no such budgets"),
    ],
)  # fmt: skip
def test_a_budget_of_time_ends_no_search_and_an_explanation_says_so(
    release: str, budgets: Json | None, told: bool, finding: str | None
) -> None:
    running = [workload("w", "a", "n"), workload("v", "a", "n")]
    settings = {"release": release, "search_budgets": budgets}
    given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    case = Case(TWO, [node("n", gpu=2)], running, ask("p", "b"), actions=["reclaim"], explain="summary", **given)
    plain = Case(TWO, [node("n", gpu=2)], running, ask("p", "b"), actions=["reclaim"], release=release)
    assert ("search-budgets" in steps(case, "p")) == told
    assert case.answer["plan"] == plain.answer["plan"]
    document: Json = {"engine": "kai", "settings": {"kai": given}, "queues": []}
    details = [found.detail for found in ENGINE.findings(msgspec.convert(document, Configuration))]
    assert [detail for detail in details if finding and detail.startswith(finding)] == details


@pytest.mark.parametrize(
    ("budgets", "place"),
    [
        ({"max_action_search_duration": {"reclaim": "soon"}}, "max_action_search_duration/reclaim"),
        ({"min_job_search_duration": -1}, "min_job_search_duration"),
    ],
)
def test_a_bad_budget_of_time_is_an_error(budgets: Json, place: str) -> None:
    document: Json = {"engine": "kai", "settings": {"kai": {"search_budgets": budgets}}, "queues": []}
    with pytest.raises(InvalidInput) as wrong:
        ENGINE.configure(msgspec.convert(document, Configuration))
    (problem,) = wrong.value.problems
    assert problem.pointer == f"/configuration/settings/kai/search_budgets/{place}"
