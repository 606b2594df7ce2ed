import msgspec
import pytest

from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Change
from app.solver.model.problems import InvalidInput
from app.solver.model.state import Ask, State
from app.solver.question import SILENT, Question, Why
from tests.support.bounds import Bounded


def test_off_records_nothing() -> None:
    SILENT.candidate("victim", "rule", "w")
    SILENT.step("s", "d")
    SILENT.headline("h")
    assert SILENT.explanation() is None


def test_summary_collapses_and_full_lists() -> None:
    for level in ("summary", "full"):
        why = Why(level)
        for i in range(9):
            why.candidate("protected", "priority", f"w{i}", queue="q", priority=i)
        why.candidate("victim", "first", "w3", task="t", freed=2)
        explained = why.explanation()
        assert explained is not None
        if level == "summary":
            assert explained.candidates is None
            assert explained.groups is not None
            assert [(g.verdict, g.count, len(g.examples)) for g in explained.groups] == [
                ("protected", 9, 5),
                ("victim", 1, 1),
            ]
            assert explained.groups[1].examples == ["w3/t"]
        else:
            assert explained.groups is None
            assert explained.candidates is not None
            assert len(explained.candidates) == 10
            assert explained.candidates[0].numbers == {"priority": 0}


def test_a_later_record_of_the_same_candidate_replaces_the_earlier_one() -> None:
    why = Why("full")
    why.candidate("victim", "order", "w")
    why.candidate("put-back", "still-fits", "w")
    explained = why.explanation()
    assert explained is not None
    assert explained.candidates is not None
    assert [c.verdict for c in explained.candidates] == ["put-back"]


def test_a_summary_says_how_many_steps_it_left_out() -> None:
    why = Why("summary")
    for i in range(250):
        why.step("scenario", str(i))
    explained = why.explanation()
    assert explained is not None
    assert explained.steps[-1].rule == "steps-dropped"
    assert "50 more" in explained.steps[-1].detail


def test_all_that_is_recorded_is_told() -> None:
    """Up to the limit a summary has every step, the full explanation has all of them; and who is in the way."""
    change = Change(queue="q", resource="cpu", field="guaranteed", current=1, needed=2, detail="d")
    for level, told, steps in (("summary", 200, 200), ("summary", 201, 201), ("full", 250, 250)):
        why = Why(level)  # pyright: ignore[reportArgumentType]
        why.headline("h")
        why.blocked("b", change)
        for i in range(told):
            why.step("scenario", str(i), at=i)
        explained = why.explanation()
        assert explained is not None
        assert (explained.level, explained.headline, explained.blocker) == (level, "h", "b")
        assert explained.smallest_change == [change]
        assert len(explained.steps) == steps
        assert [step.numbers for step in explained.steps[:200]] == [{"at": i} for i in range(200)]
    assert explained.steps[-1].numbers == {"at": 249}
    bare = Why("full").explanation()
    assert bare is not None
    assert (bare.smallest_change, bare.blocker, bare.steps, bare.candidates) == (None, None, [], [])


def test_what_was_said_of_a_trial_is_taken_back() -> None:
    why = Why("full")
    why.candidate("victim", "order", "w")
    assert [record.workload for record in why.records.values()] == ["w"]
    why.records.clear()
    explained = why.explanation()
    assert explained is not None
    assert explained.candidates == []


def test_one_answer_explains_so_many_candidates_and_no_more(bounded: Bounded) -> None:
    preemption = {"preemption": {"within_cluster_queue": "LowerPriority"}}
    queue = {"name": "q", "quota": {"cpu": {"guaranteed": 4}}, "kueue": preemption}
    tasks = [{"name": "t", "requests": {"cpu": 1}}]
    running = [{"id": f"w{i}", "queue": "q", "tasks": tasks} for i in range(4)]
    loaded = solve.load(
        solve.configure(msgspec.convert({"engine": "kueue", "queues": [queue]}, Configuration)),
        msgspec.convert({"workloads": running}, State),
    )
    asks = msgspec.convert([{"id": f"a{i}", "queue": "q", "priority": 1, "tasks": tasks} for i in range(2)], list[Ask])
    question = Question(0, asks, explain="full")
    bounded("app.solver.question", MOST_CANDIDATES=8)
    for _ in range(2):
        assert [len(d.explanation.candidates or ()) for d in solve.decide(loaded, question).decisions if d.explanation]
    bounded("app.solver.question", MOST_CANDIDATES=7)
    with pytest.raises(InvalidInput) as refused:
        solve.decide(loaded, question)
    assert [problem.pointer for problem in refused.value.problems] == ["/explain"]
    assert solve.decide(loaded, Question(0, asks, explain="summary")).decisions[0].explanation is not None
