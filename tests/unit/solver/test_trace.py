from app.solver.trace import SILENT, Why


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
