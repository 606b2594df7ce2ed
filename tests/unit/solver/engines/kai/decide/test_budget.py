"""Steps that a request may spend: what is left of them, and what an answer says that had too few."""

import pytest

from app.solver.engines.kai import solver
from app.solver.engines.kai.solver import Budget
from tests.support.bounds import Bounded
from tests.support.kai_answers import ANSWERS
from tests.support.kai_world import Json, decide
from tests.unit.solver.engines.kai.report.clusters import CLUSTERS


def test_what_is_paid_for_with_the_last_step_is_the_last() -> None:
    budget = Budget(3)
    assert [(budget.spend(), budget.spent) for _ in range(3)] == [(True, False), (True, False), (False, True)]
    assert (Budget(3).spend(2), Budget(3).spend(3), Budget(0).spent) == (True, False, True)


def steps_of(answer: Json) -> list[str]:
    return [step["rule"] for d in answer["decisions"] for step in d["explanation"].get("steps", [])]


@pytest.mark.parametrize("name", CLUSTERS)
def test_an_answer_with_too_few_steps_says_so_and_one_with_enough_is_whole(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever number of steps there is: none is spent beyond it, nothing hangs, and what was decided before stays."""
    needed = ANSWERS[name]["steps"]
    whole = decide(CLUSTERS[name])
    for steps in range(1, needed + 3):
        Bounded(monkeypatch)(solver, MOST_STEPS=steps)
        answer = decide(CLUSTERS[name])
        assert ("search-cut-short" in steps_of(answer)) == (steps <= needed), steps
        if steps > needed:
            assert answer["decisions"] == whole["decisions"]
        cut = {d["ask"] for d in answer["decisions"] if d["conditions"][0]["reason"] == "SearchCutShort"}
        assert all(not d["victims"] for d in answer["decisions"] if d["ask"] in cut)


def test_without_a_step_nothing_is_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    Bounded(monkeypatch)(solver, MOST_STEPS=1)
    answer = decide(CLUSTERS["cycle"])
    assert answer["plan"] == {"evictions": [], "placements": []}
    waits = {d["ask"]: d["conditions"][0] for d in answer["decisions"] if d["outcome"] == "wait"}
    assert {of["reason"] for of in waits.values()} == {"SearchCutShort"}
    assert list(waits) == ["late", "first", "waits", "little"]
