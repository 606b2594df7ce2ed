"""Answers, comparisons and plans as people read them: whole pages, by hand; and the columns they stand in."""

from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.answering.comparison import Comparison
from app.answering.plan_bodies import PlanAnswer
from app.base.documents import Unreadable
from app.base.errors import BadInput, NotFound
from app.cli import output
from app.cli import plan as plan_report
from app.cli.output import BAD_INPUT, Source, as_json, fields_of, gathered, joined, table, tried
from app.solver.model.decision import Answer
from app.solver.model.problems import InvalidInput, Problem
from tests.support.instead import Machine

Json = dict[str, Any]
Captured = pytest.CaptureFixture[str]
AROUND: Json = {"engine": "kai", "configuration": {"digest": "c"}, "state": {"digest": "s"}}


def victim(workload: str, task: str | None = None, message: str = "m", **more: Any) -> Json:
    own = {"workload": workload, "task": task, "queue": "q", "reason": "Reclaim", "message": message, "conditions": []}
    return own | {"freed": {"cpu": 1.5, "memory": 3 << 20}} | more


def condition(reason: str, message: str) -> Json:
    return {"type": "t", "status": "True", "reason": reason, "message": message,
            "last_transition_time": "2026-01-01T00:00:00Z"}  # fmt: skip


def decision(ask: str, outcome: str, *victims: Json, **more: Any) -> Json:
    return {"ask": ask, "outcome": outcome, "victims": list(victims), "conditions": [], **more}


def eviction(workload: str, task: str | None = None, **more: Any) -> Json:
    return {"workload": workload, "task": task, "queue": "q", "reason": "why", **more}


def placement(node: str, **more: Any) -> Json:
    return {"node": node, "task": "m", "pipelined": False, **more}


def plan(evictions: list[Json] | None = None, placements: list[Json] | None = None) -> Json:
    return {"evictions": evictions or [], "placements": placements or []}


def shown(capsys: Captured, *decisions: Json, why: bool = False, **more: Any) -> list[str]:
    document = AROUND | {"decisions": list(decisions), "plan": plan(**more)}
    output.answer(msgspec.convert(document, Answer), why=why)
    return capsys.readouterr().out.splitlines()


def test_an_ask_with_its_victims_conditions_and_shortages(capsys: Captured) -> None:
    short = {"resource": "cpu", "requested": 4, "available": 1 << 20, "short": 3, "queue": "q", "node": "n"}
    one = decision(
        "a", "preempt", victim("w", node="n1"), victim("v", "t", "other"), victim("u"), node="n0", borrowing=True,
        assignment={"main": {"cpu": "spot", "gpu": "a"}}, conditions=[condition("R", "said"), condition("S", "")],
        shortages=[short, short | {"queue": None, "node": None, "flavor": "f"}],
    )  # fmt: skip
    assert shown(capsys, one) == [
        "a: preempt on n0, main on cpu=spot, gpu=a, borrowing, evicts 3",
        "  VICTIM  QUEUE  NODE  FREES                REASON",
        "  w       q      n1    cpu 1.5, memory 3Mi  Reclaim",
        "  v/t     q            cpu 1.5, memory 3Mi  Reclaim",
        "  u       q            cpu 1.5, memory 3Mi  Reclaim",
        "  m", "  other", "  R: said",
        "  short of 3 cpu (4 requested, 1Mi free; q, n)", "  short of 3 cpu (4 requested, 1Mi free; f)", "",
    ]  # fmt: skip
    messages = shown(capsys, decision("a", "preempt", *(victim(f"w{i}", message=f"m{i}") for i in range(7))))
    assert messages[9:] == [f"  m{i}" for i in range(5)] + [""]
    assert shown(capsys, decision("a", "wait")) == ["a: wait", ""]


def test_where_pods_would_go(capsys: Captured) -> None:
    domains = [{"values": ["r", f"n{i}"], "count": i} for i in range(1, 8)]
    placed = {"main": {"levels": ["rack", "host"], "domains": domains}}
    told = shown(capsys, decision("a", "admit", assignment={"main": {"cpu": "f"}}, topology_assignment=placed))
    places = "r/n1 (1), r/n2 (2), r/n3 (3), r/n4 (4), r/n5 (5) and 2 more"
    assert told == [f"a: admit, main on cpu=f, main at {places}", ""]


def test_long_lists_end(capsys: Captured) -> None:
    victims = [victim(f"w{i}") for i in range(202)]
    lines = shown(capsys, decision("a", "preempt", *victims))
    assert (lines[202], len(lines)) == ("  and 2 more; --json has all", 205)
    assert not any("more" in line for line in shown(capsys, decision("a", "preempt", *victims[:200])))
    evictions = [eviction(f"w{i}") for i in range(201)]
    placements = [placement("n", ask=f"a{i}") for i in range(201)]
    lines = shown(capsys, evictions=evictions, placements=placements)
    assert [i for i, line in enumerate(lines) if line == "  and 1 more; --json has all"] == [202, 405]


def test_why_it_was_so(capsys: Captured) -> None:
    explained = {
        "level": "full", "headline": "it fits", "steps": [{"rule": "r1", "detail": "looked"}],
        "candidates": [
            {"workload": "w", "task": "t", "queue": "q", "node": "n", "verdict": "victim", "rule": "r2", "detail": "d",
             "numbers": {"a": 1, "b": {"c": 2, "d": {"e": 3}}}},
            {"workload": "v", "verdict": "protected", "rule": "r3", "detail": "d2"},
        ],
        "groups": [{"count": 7, "verdict": "protected", "rule": "r3", "examples": ["x", "y"]}],
        "blocker": "no room",
        "smallest_change": [
            {"field": "limit", "resource": "cpu", "queue": "q", "flavor": "f", "current": 1, "needed": 1 << 30},
            {"field": "guaranteed", "resource": "cpu", "queue": "q", "needed": 2},
        ],
    }  # fmt: skip
    one = decision("a", "wait", explanation=explained)
    assert shown(capsys, one, why=True) == [
        "a: wait", "  why: it fits", "  - looked [r1]",
        "  CANDIDATE  QUEUE  NODE  BECAME     RULE  DETAIL  NUMBERS",
        "  w/t        q      n     victim     r2    d       a=1, b c=2, b d e=3",
        "  v                       protected  r3    d2",
        "  CANDIDATES  BECAME     RULE  SUCH AS", "  7           protected  r3    x, y", "  in the way: no room",
        "  would let it in: limit of cpu in q (f) from 1 to 1Gi",
        "  would let it in: guaranteed of cpu in q from none to 2", "",
    ]  # fmt: skip
    assert shown(capsys, one) == ["a: wait", ""]
    budget = {"field": "disruptions_allowed", "resource": "pods", "queue": "q", "current": 0, "needed": 2}
    explained = {"level": "full", "steps": [], "smallest_change": [budget]}
    assert shown(capsys, decision("a", "preempt", explanation=explained), why=True) == [
        "a: preempt", "  would keep a budget: disruptions_allowed of pods in q from 0 to 2", "",
    ]  # fmt: skip
    assert shown(capsys, decision("a", "wait", explanation={"level": "full", "steps": []}), why=True) == ["a: wait", ""]


def test_the_rest_of_a_plan(capsys: Captured) -> None:
    lines = shown(
        capsys, decision("a", "preempt", victim("w")),
        evictions=[eviction("w"), eviction("w", "t", node="n", for_ask="b")],
        placements=[placement("n", ask="a", pipelined=True), placement("o", workload="v", stage="s")],
    )  # fmt: skip
    assert lines[4:] == [
        "", "also evicted", "  WORKLOAD  QUEUE  NODE  REASON  FOR", "  w/t       q      n     why     b", "placed",
        "  WHAT  NODE  WHEN        STAGE", "  a/m   n     once freed", "  v/m   o     now         s",
    ]  # fmt: skip


def test_asks_that_were_decided_each_alone(capsys: Captured) -> None:
    alone = decision("a", "preempt", victim("w"), plan=plan([eviction("w"), eviction("x")]))
    note = "each ask as if it were alone: their plans exclude one another (--mode cycle decides them together)"
    lines = shown(capsys, alone, decision("b", "wait"))
    assert lines[4:] == ["also evicted", "  WORKLOAD  QUEUE  REASON", "  x         q      why", "", "b: wait", "", note]
    assert note not in shown(capsys, alone)
    assert note not in shown(capsys, decision("a", "wait"), decision("b", "wait"))


def test_a_comparison(capsys: Captured) -> None:
    answer = AROUND | {"decisions": [decision("a", "wait"), decision("b", "admit"), decision("c", "wait")],
                       "plan": plan([eviction("w")])}  # fmt: skip
    problems = [{"pointer": "/x", "detail": f"no {i}"} for i in range(6)]
    finding = {"rule": "r", "severity": "info", "pointer": "/y", "detail": "lost"}
    differences = [
        {"ask": "a", "field": "victims", "values": {"one": [], "two": ["w", "v/t"]}},
        {"field": "evictions", "values": {"one": None, "two": "n"}},
    ]  # fmt: skip
    document: Json = {
        "variants": [{"name": "one", "answer": answer, "findings": [finding]}, {"name": "two", "problems": problems}],
        "differences": differences, "stats": {},
    }  # fmt: skip
    output.comparison(msgspec.convert(document, Comparison))
    assert capsys.readouterr().out.splitlines() == [
        "VARIANT  ENGINE  OUTCOMES         EVICTIONS", "one      kai     2 wait, 1 admit  1",
        "two              refused", "  one: info /y: lost", *(f"  two: refused, /x: no {i}" for i in range(5)), "",
        "a: victims", "  VARIANT  SAYS", "  one      nobody", "  two      w, v/t",
        "beside the asks: evictions", "  VARIANT  SAYS", "  one      -", "  two      n",
    ]  # fmt: skip
    output.comparison(msgspec.convert(document | {"differences": []}, Comparison))
    assert capsys.readouterr().out.splitlines()[-1] == "no differences"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1.5, "1.5"), (1 << 20, "1Mi"), (3 << 19, "1572864"), (1 << 30, "1Gi"), (3 << 29, "1536Mi"),
     (5 << 40, "5Ti"), (-(1 << 30), "-1Gi"), (float(1 << 20), "1Mi")],
)  # fmt: skip
def test_amounts(value: float, text: str) -> None:
    assert output.amount(value) == text


def test_a_plan(capsys: Captured) -> None:
    why = {"level": "summary", "headline": "h", "steps": [{"rule": "r", "detail": "s"}], "blocker": "b"}
    work = {"object": "Job x", "queue": "q", "priority": 3, "pods": 4, "requests": {"cpu": 2, "memory": 1 << 30},
            "outcome": "wait", "asks": ["a", "b", "c", "d"]}  # fmt: skip
    resources = {
        "cpu": {"guaranteed": 4, "used_before": 1.0, "used_after": 2.00004, "fair_share_after": "unlimited"},
        "gpu": {"limit": 2, "used_before": 0, "used_after": 0},
    }
    document = AROUND | {
        "outcome": "wait", "work": [work, work | {"object": "Job y", "asks": ["e"]}], "asks": [], "waiting": [],
        "decisions": [
            decision("a", "wait", explanation=why), decision("b", "wait"), decision("c", "preempt", victim("w")),
            decision("d", "preempt", victim("v")), decision("e", "admit"),
        ],
        "plan": plan([eviction("w"), eviction("v")]), "findings": [], "stats": {},
        "queues": [{"queue": "q", "resources": resources, "share_before": 0.25, "share_after": 0.123456},
                   {"queue": "r", "resources": {"cpu": resources["gpu"]}}],
    }  # fmt: skip
    plan_report.print_plan(msgspec.convert(document, PlanAnswer))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "OBJECT  QUEUE  PRIORITY  PODS  ASKS FOR           OUTCOME",
        "Job x   q      3         4     cpu 2, memory 1Gi  wait",
        "Job y   q      3         4     cpu 2, memory 1Gi  wait",
        "", "Job x: 4 asks, 1 of them fare like those below",
    ]  # fmt: skip
    assert [line for line in lines if line[:2] in ("a:", "b:", "c:", "d:", "e:")] == [
        "a: wait", "c: preempt, evicts 1", "d: preempt, evicts 1", "e: admit",
    ]  # fmt: skip
    assert "  - s [r]" not in lines
    assert "  in the way: b" in lines
    assert lines[-4:] == [
        "QUEUE  RESOURCE  GUARANTEED  LIMIT  USED  THEN  THEN       SHARE  THEN",
        "q      cpu       4                  1     2     unlimited  0.25   0.1235",
        "       gpu                   2      0     0", "r      cpu                   2      0     0",
    ]  # fmt: skip


def test_columns_are_as_wide_as_they_need_to_be(capsys: Captured) -> None:
    table(("A", "EMPTY", "C"), [("long", "", "x"), ("b", "", "")], indent="> ")
    assert capsys.readouterr().out == "> A     C\n> long  x\n> b\n"


def test_what_is_wrong_with_a_file_is_an_exit_code(capsys: Captured) -> None:
    def failing(error: Exception) -> str:
        def act() -> int:
            raise error

        assert tried("f", act) == BAD_INPUT
        return capsys.readouterr().err

    two = [Problem(pointer="/a", detail="b"), Problem(pointer="", detail="c")]
    assert failing(InvalidInput(two)) == "f: 2 problems\n  /a: b\n  (document): c\n"
    assert failing(BadInput(two[:1])) == "f: 1 problem\n  /a: b\n"
    assert failing(NotFound("gone")) == "f: gone\n"
    assert failing(FileNotFoundError(2, "No such file", "g")) == "g: No such file\n"
    assert failing(OSError("odd")) == "f: odd\n"
    assert tried("f", lambda: 7) == 7


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_somebody_at_a_terminal_is_told_what_is_waited_for(capsys: Captured, machine: Machine) -> None:
    machine.reads(Terminal())
    output.hint("a file")
    assert capsys.readouterr().err == ""
    output.hint("-")
    assert capsys.readouterr().err == "reading standard input; end it with Ctrl-D, or name a file\n"
    machine.reads(StringIO())
    output.hint("-")
    assert capsys.readouterr().err == ""


def test_files_folders_and_standard_input(tmp_path: Path, machine: Machine) -> None:
    for name in ("b.yaml", "a.json", "c.yml", "d.txt"):
        (tmp_path / name).write_text(f"name: {name}")
    empty = tmp_path / "empty"
    empty.mkdir()
    one, folder = str(tmp_path / "d.txt"), str(tmp_path)
    assert [Path(source.name).name for source in gathered(folder, [one])] == ["a.json", "b.yaml", "c.yml", "d.txt"]
    assert gathered("-", [one]) == [Source(one, b"name: d.txt")], "nobody asked for standard input"
    machine.reads(b"name: d.txt")
    assert gathered("-", None) == [Source("-", b"name: d.txt")]
    with pytest.raises(FileNotFoundError, match="file in this folder"):
        gathered(str(empty), None)


@pytest.mark.parametrize(
    ("body", "expected"),
    [(b' {"a": 1}', b' {"a": 1}'), (b"[1]", b"[1]"), (b" ", b" "), (b"a: 1", b'{"a": 1}'), (b"- 1", b"[1]"),
     (b"word", b"word")],
)  # fmt: skip
def test_yaml_is_read_as_json(body: bytes, expected: bytes) -> None:
    assert as_json(body) == expected


def test_several_documents_are_one_too_many_or_one_list() -> None:
    with pytest.raises(Unreadable, match="2 documents: one is expected"):
        as_json(b"a: 1\n---\nb: 2\n")
    together = joined([Source("f", b"a: 1\n---\nb: 2\n"), Source("g", b'{"c": 3}')])
    assert together.body == b'[{"a": 1}, {"b": 2}, {"c": 3}]'
    assert [together.place(at) for at in ("/1/b", "/2/c", "/2", "/3/c", "", "/x")] == [
        ("f", "/1/b"), ("g", "/c"), ("g", ""), ("", "/3/c"), ("", ""), ("", "/x"),
    ]  # fmt: skip


def test_fields_on_the_command_line() -> None:
    assert fields_of(["a.b=12", "c=x=y", 'd="7"', "e=", "f=[1]"]) == {
        "a.b": 12, "c": "x=y", "d": "7", "e": "", "f": [1],
    }  # fmt: skip
    for word in ("a", "=1", ""):
        with pytest.raises(InvalidInput) as refused:
            fields_of([word])
        assert refused.value.problems[0].detail == f"--set {word!r}: a path, = and a value are expected"
