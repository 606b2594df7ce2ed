"""Proposals of another scheduler, by hand: what each system's rules let go, together and each alone."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.solver import engine, solve
from app.solver.engine import engine_of
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Answer
from app.solver.model.problems import PROPOSALS, InvalidInput
from app.solver.model.request import Proposal
from app.solver.model.state import Ask, State
from app.solver.question import Question
from tests.support.kai_answers import PROTECTED as KAI

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
YUNIKORN: dict[str, Any] = {
    "engine": "yunikorn",
    "queues": [
        {"name": "root"},
        {"name": "root.a", "parent": "root", "quota": {"vcore": {"guaranteed": 4}}},
        {"name": "root.b", "parent": "root", "quota": {"vcore": {"guaranteed": 4}}},
        {"name": "root.f", "parent": "root", "yunikorn": {"properties": {"preemption.policy": "fence"}}},
        {"name": "root.f.x", "parent": "root.f", "quota": {"vcore": {"guaranteed": 2}}},
    ],
}
KUEUE: dict[str, Any] = {
    "engine": "kueue",
    "queues": [
        {"name": "all"},
        {
            "name": "a", "parent": "all", "quota": {"cpu": {"guaranteed": 4}},
            "kueue": {"preemption": {"reclaim_within_cohort": "Any", "within_cluster_queue": "LowerPriority"}},
        },
        {"name": "b", "parent": "all", "quota": {"cpu": {"guaranteed": 4}}},
    ],
}  # fmt: skip


def task(name: str, cpu: int = 1, resource: str = "cpu", **fields: Any) -> dict[str, Any]:
    return {"name": name, "requests": {resource: cpu}, "node": "n", **fields}


def judged(
    configuration: dict[str, Any], workloads: list[dict[str, Any]], ask: dict[str, Any] | None,
    *proposals: list[tuple[str, str | None]],
) -> Answer:  # fmt: skip
    state = {"nodes": [{"name": "n", "capacity": {"cpu": 64, "vcore": 64}}], "workloads": workloads}
    loaded = solve.load(
        solve.configure(msgspec.convert(configuration, Configuration)), msgspec.convert(state, State, strict=False)
    )
    listed = [{"node": f"n{i}", "evict": [{"workload": w, "task": t} for w, t in of]} for i, of in enumerate(proposals)]
    asks = [] if ask is None else [msgspec.convert(ask, Ask, strict=False)]
    question = Question(
        micros(NOW), asks,
        proposals=msgspec.convert(listed, list[Proposal]),
    )  # fmt: skip
    return solve.decide(loaded, question)


def rules(answer: Answer) -> list[list[str]]:
    """By proposal, the rules of its refusals; a proposal is allowed exactly where it has none."""
    assert answer.proposals is not None
    assert all(verdict.allowed == (not verdict.refusals) for verdict in answer.proposals)
    return [[refusal.rule for refusal in verdict.refusals] for verdict in answer.proposals]


def kai_workload(name: str, queue: str, started: str | None, pods: int = 1, **fields: Any) -> dict[str, Any]:
    tasks = [task(f"{name}-{i}") for i in range(pods)]
    return {"id": name, "queue": queue, "min_available": pods, "started_at": started, "tasks": tasks, **fields}


KAI_ASK = {"id": "x", "queue": "b", "priority": 9, "tasks": [{"name": "p", "requests": {"cpu": 1}}]}


def test_kai_keeps_who_has_not_run_for_the_minimum() -> None:
    workloads = [
        kai_workload("young", "a", "2026-11-22T11:55:00Z"),
        kai_workload("old", "a", "2026-11-22T11:45:00Z"),
        kai_workload("fixed", "a", "2026-11-22T01:00:00Z", preemptible=False),
        kai_workload("own", "b", None, priority=9),
        kai_workload("lower", "b", None, priority=8),
    ]
    answer = judged(
        KAI, workloads, KAI_ASK, [("young", "young-0")], [("old", "old-0")], [("old", "old-0"), ("young", "young-0")],
        [("fixed", None)], [("own", None)], [("lower", None)],
    )  # fmt: skip
    assert rules(answer) == [
        ["reclaim-min-runtime"], [], ["reclaim-min-runtime"], ["not-preemptible"], ["priority-not-lower"], [],
    ]  # fmt: skip
    assert answer.decisions[0].outcome == "preempt"
    assert not answer.plan.evictions
    assert answer.proposals is not None
    assert "600 s" in answer.proposals[0].refusals[0].detail


def test_kai_lets_an_elastic_gang_lose_what_it_does_not_need() -> None:
    elastic = kai_workload("e", "a", "2026-11-22T11:55:00Z", pods=4) | {"min_available": 2}
    answer = judged(KAI, [elastic], KAI_ASK, [("e", "e-0"), ("e", "e-1")], [("e", "e-0"), ("e", "e-1"), ("e", "e-2")])
    assert rules(answer) == [[], ["reclaim-min-runtime-gang"] * 3]


def test_the_condition_of_an_ask_that_gets_nothing_says_the_commonest_rule() -> None:
    young = kai_workload("young", "a", "2026-11-22T11:55:00Z")
    decision = judged(KAI, [young], KAI_ASK, [("young", None)], [("young", None)]).decisions[0]
    assert (decision.outcome, decision.conditions[0].reason) == ("wait", "reclaim-min-runtime")
    assert decision.conditions[0].message.startswith("none of 2 proposals is lawful: young: ")


def yunikorn_workload(name: str, queue: str, pods: int, **fields: Any) -> dict[str, Any]:
    return {"id": name, "queue": queue, "tasks": [task(f"{name}-{i}", 1, "vcore", **fields) for i in range(pods)]}


def yunikorn_ask(queue: str, vcore: int = 1) -> dict[str, Any]:
    return {"id": "x", "queue": queue, "priority": 5, "tasks": [{"name": "p", "requests": {"vcore": vcore}}]}


@pytest.mark.parametrize("version", ["documented", "shipped"])
def test_yunikorn_takes_down_to_the_guarantee_and_no_further(version: str) -> None:
    configuration = YUNIKORN | {"settings": {"yunikorn": {"rules": version}}}
    workloads = [yunikorn_workload("over", "root.b", 6)]
    answer = judged(
        configuration, workloads, yunikorn_ask("root.a"),
        [("over", "over-0"), ("over", "over-1")], [("over", f"over-{i}") for i in range(3)],
    )  # fmt: skip
    by = "law-2" if version == "documented" else "within-guarantee"
    assert rules(answer) == [[], [by]]


def test_yunikorn_keeps_a_queue_at_its_guarantee_and_what_is_across_a_fence() -> None:
    workloads = [yunikorn_workload("at", "root.b", 4), yunikorn_workload("over", "root.a", 6)]
    assert rules(judged(YUNIKORN, workloads, yunikorn_ask("root.a"), [("at", "at-0")])) == [["no-claim"]]
    assert rules(judged(YUNIKORN, workloads[1:], yunikorn_ask("root.f.x"), [("over", "over-0")])) == [
        ["outside-the-fence"]
    ]


def kueue_workload(name: str, queue: str, cpu: int, priority: int = 0) -> dict[str, Any]:
    return {"id": name, "queue": queue, "priority": priority, "tasks": [task("main", cpu)]}


KUEUE_ASK = {"id": "x", "queue": "a", "priority": 5, "tasks": [{"name": "main", "requests": {"cpu": 2}}]}


@pytest.mark.parametrize("fair", [False, True])
def test_kueue_takes_back_what_is_borrowed_and_no_more(fair: bool) -> None:
    configuration = KUEUE | {"settings": {"kueue": {"fair_sharing": fair}}}
    borrowers = [kueue_workload(f"b{i}", "b", 2) for i in range(3)]
    answer = judged(
        configuration, borrowers, KUEUE_ASK, [("b0", None)], [("b0", None), ("b1", None)], [("nobody", None)]
    )
    one, both, unknown = rules(answer)
    assert one == []
    assert both == ["queue-back-within-quota"]
    assert unknown == ["unknown-workload"]
    within = [kueue_workload("b0", "b", 4), kueue_workload("a0", "a", 2, 9), kueue_workload("a1", "a", 2, 1)]
    assert rules(judged(configuration, within, KUEUE_ASK, [("b0", None)], [("a0", None)], [("a1", None)])) == [
        ["within-nominal"], ["priority"], []
    ]  # fmt: skip


def test_a_task_is_known_where_its_workload_has_it() -> None:
    work = kueue_workload("b0", "b", 6)
    task = work["tasks"][0]["name"]
    proposed = [[("b0", task)], [("b0", "ghost")], [("nobody", task)], [("b0", "ghost"), ("b0", task)]]
    assert rules(judged(KUEUE, [work], KUEUE_ASK, *proposed)) == [
        [], ["unknown-workload"], ["unknown-workload"], ["unknown-workload"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("strategies", "refused"),
    [
        (["LessThanOrEqualToFinalShare"], ["share-too-low"]),
        (["LessThanInitialShare"], []),
        (["LessThanOrEqualToFinalShare", "LessThanInitialShare"], []),
    ],
)
def test_kueue_judges_by_the_strategies_that_are_on(strategies: list[str], refused: list[str]) -> None:
    """Of 12 a wants 5 and has 4: a share of 83. b has 10, a share of 500; with all of it gone, of 0."""
    fair = {"kueue": {"fair_sharing": True, "preemption_strategies": strategies}}
    queues = [KUEUE["queues"][0] | {"quota": {"cpu": {"guaranteed": 0}}}, *KUEUE["queues"][1:]]
    queues.append({"name": "c", "parent": "all", "quota": {"cpu": {"guaranteed": 4}}})
    work = kueue_workload("b0", "b", 10)
    ask = KUEUE_ASK | {"tasks": [KUEUE_ASK["tasks"][0] | {"requests": {"cpu": 5}}]}
    answer = judged(KUEUE | {"settings": fair, "queues": queues}, [work], ask, [("b0", None)])
    assert rules(answer) == [refused]


@pytest.mark.parametrize("fair", [False, True])
def test_kueue_lets_more_go_than_the_ask_needs_while_their_queue_borrows(fair: bool) -> None:
    configuration = KUEUE | {"settings": {"kueue": {"fair_sharing": fair}}}
    borrowers = [kueue_workload(f"b{i}", "b", 2) for i in range(4)]
    proposed = [[(f"b{i}", None) for i in range(count)] for count in (1, 2, 3)]
    assert rules(judged(configuration, borrowers, KUEUE_ASK, *proposed)) == [[], [], ["queue-back-within-quota"]]


@pytest.mark.parametrize("fair", [False, True])
def test_kueue_lets_nobody_go_in_vain(fair: bool) -> None:
    """Four make room for two of them, and for one not."""
    configuration = KUEUE | {"settings": {"kueue": {"fair_sharing": fair}}}
    borrowers = [kueue_workload(f"b{i}", "b", 2) for i in range(4)]
    ask = KUEUE_ASK | {"tasks": [KUEUE_ASK["tasks"][0] | {"requests": {"cpu": 4}}]}
    proposed = [[("b0", None)], [("b0", None), ("b3", None)]]
    assert rules(judged(configuration, borrowers, ask, *proposed)) == [["not-enough"], []]


def test_kueue_judges_a_pod_of_admitted_work_as_that_work() -> None:
    """Its quota is counted already: asked for again on top of that it would not fit."""
    workloads = [kueue_workload("mine", "a", 4, 5), *[kueue_workload(f"b{i}", "b", 3) for i in range(2)]]
    answer = judged(KUEUE, workloads, KUEUE_ASK | {"workload": "mine"}, [("b0", None)], [("mine", None)])
    assert rules(answer) == [[], ["own-workload"]]


def test_kueue_lends_to_nobody_who_would_borrow() -> None:
    """Within the cohort's quota, but over its own: it may take from none who borrows as well."""
    workloads = [kueue_workload("a0", "a", 4), kueue_workload("b0", "b", 5)]
    roomy = KUEUE | {"queues": [*KUEUE["queues"], {"name": "c", "parent": "all", "quota": {"cpu": {"guaranteed": 9}}}]}
    assert rules(judged(roomy, workloads, KUEUE_ASK, [("b0", None)])) == [["ask-would-borrow"]]


def test_the_rules_that_all_engines_share_are_named_where_proposals_are_judged() -> None:
    said = set(re.findall(r'"([A-Za-z-]+)"', Path(engine.__file__).read_text()))
    assert {rule.rule for rule in PROPOSALS} <= said
    assert all(set(PROPOSALS) <= set(engine_of(name).rules) for name in ("kai", "kueue", "yunikorn"))


def test_work_in_no_queue_takes_from_none_that_is_in_one() -> None:
    answer = judged(KUEUE, [kueue_workload("b0", "b", 4)], None, [("b0", None)], [])
    assert rules(answer) == [["no-queue"], []]
    assert answer.decisions == []


def test_proposals_are_for_one_ask_and_nodes_are_named_once() -> None:
    configured = solve.configure(msgspec.convert(KUEUE, Configuration))
    loaded = solve.load(configured, State())
    asks = [msgspec.convert(KUEUE_ASK | {"id": name}, Ask) for name in "xy"]
    with pytest.raises(InvalidInput) as refused:
        solve.decide(loaded, Question(0, asks, proposals=[Proposal(node="n"), Proposal(node="n")]))
    assert [problem.pointer for problem in refused.value.problems] == ["/asks", "/proposals/1/node"]


def test_ytsaurus_judges_no_proposals() -> None:
    configuration = Configuration(engine="ytsaurus", queues=[])
    loaded = solve.load(solve.configure(configuration), State())
    with pytest.raises(InvalidInput) as refused:
        solve.decide(loaded, Question(0, [], proposals=[]))
    assert refused.value.problems[0].pointer == "/proposals"
