"""What the pages show, worked out: amounts, verdicts, sentences, measures, circles. No page is drawn."""

from collections import Counter
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from jinja2 import Undefined
from starlette.responses import Response

from app.console import decisions as deciding
from app.console.decisions import Recorded
from app.console.overview import by_interval
from app.console.queues import Use, uses
from app.console.quotas import quota_of
from app.console.simulations import MEASURES, circle
from app.console.situation import VERDICTS, Cell, Group, chosen, groups, named, paged, rules_of, sentence
from app.console.visit import cookie_of, drop_cookie, entries, set_cookie
from app.console.words import amount, amounts, lasted, moment, pretty, readable, seconds, settled

Json = dict[str, Any]
NARROW = "\u202f"


@pytest.mark.parametrize(
    ("value", "resource", "text"),
    [
        (None, "cpu", "–"), (Undefined(), "cpu", "–"), ("unlimited", "cpu", "unlimited"), (0, "cpu", "0"),
        (1234567, "cpu", f"1{NARROW}234{NARROW}567"), (1.5, "cpu", "1.5"), (2.0, "cpu", "2"), (1.23456, "cpu", "1.235"),
        (1234.5, "cpu", f"1{NARROW}234.5"), (1 << 20, "memory", "1 MiB"),
        ((1 << 20) - 1, "memory", "1 MiB"), (512 << 20, "memory", "512 MiB"),
        (1536 << 20, "memory", "1.5 GiB"), (-(1 << 30), "memory", "-1 GiB"), (3 << 40, "ephemeral-storage", "3 TiB"),
        (1 << 50, "hugepages-2Mi", "1 PiB"), (1 << 30, "cpu", f"1{NARROW}073{NARROW}741{NARROW}824"),
    ],
)  # fmt: skip
def test_amounts(value: Any, resource: str, text: str) -> None:
    assert settled(amount(value, resource)) == text


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((1 << 30, 1 << 29, 0), "1 GiB, 0.5 GiB, 0 GiB"), ((1 << 40, 1 << 29), f"1{NARROW}024 GiB, 0.5 GiB"),
        ((1 << 40, 1 << 20), f"1{NARROW}024 GiB, 0.00098 GiB"), ((100 << 30, 1 << 20), f"102{NARROW}400 MiB, 1 MiB"),
        ((0,), "0"), ((3 << 50, 1), f"3{NARROW}072 TiB, 9.1e-13 TiB"), ((1 << 20, 1024), "1 MiB, 0.00098 MiB"),
    ],
)  # fmt: skip
def test_sizes_of_a_page_are_in_one_unit(sizes: tuple[int, ...], said: str) -> None:
    assert settled(", ".join(amount(one, "memory") for one in sizes)) == said


def test_spans_that_are_compared_are_in_one_unit_and_others_by_themselves() -> None:
    assert settled(f"{lasted(90)}, {lasted(5400)}, {lasted(0)}; {seconds(30)}") == "1.5 min, 90 min, 0 min; 30 s"
    assert settled(f"{lasted(7200.0)}, {amount(1 << 30, 'memory')}") == "2 h, 1 GiB"
    assert lasted(None) == "–"


def test_nobody_else_can_write_a_figure() -> None:
    forged = "\ue000size1024\ue001"
    assert settled(f"{forged} {amount(1 << 30, 'memory')}") == f"{forged} 1 GiB"


def test_words() -> None:
    assert settled(amounts({"cpu": 1.5, "memory": 1 << 20})) == "1.5 cpu, 1 MiB memory"
    assert amounts({}) == "nothing"
    assert amounts({Cell("cpu", "of-memory"): 1 << 20}) == f"1{NARROW}048{NARROW}576 cpu in of-memory"
    noon = datetime(2026, 3, 2, 12, 30, 5, tzinfo=UTC)
    found = [moment(one) for one in (noon, "2026-03-02T12:30:05Z", "soon", "", None)]
    assert found == ["2026-03-02 12:30:05"] * 2 + ["soon", "–", "–"]
    assert pretty({"a": 1}) == pretty(b'{"a":1}') == '{\n  "a": 1\n}'
    assert settled(readable({"after": 2 << 30}, "spot/memory")) == "after 2 GiB"
    assert readable({"a": 1, "b": [1.5, "x"], "c": {"d": None}}) == "a 1, b 1.5, x, c d null"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 s"), (119.6, "120 s"), (120, "2 min"), (7199, "120 min"), (7200, "2 h"), (172799, "48 h"),
     (172800, "2 d"), (1e6, "11.6 d")],
)  # fmt: skip
def test_spans(value: Any, text: str) -> None:
    assert seconds(value) == text


def candidate(workload: str, verdict: str, rule: str = "r", **more: Any) -> Json:
    return {"workload": workload, "verdict": verdict, "rule": rule, **more}


def test_candidates_are_grouped_by_what_became_of_them() -> None:
    kinds = ["out-of-reach", *["protected"] * 4, "victim", *["protected"] * 2]
    rules = ["r", "r", "r", "r", "r", "r", "s", "s"]
    seen = [candidate(f"w{i}", verdict, rules[i], task="t" if i == 1 else None) for i, verdict in enumerate(kinds)]
    assert groups({"candidates": seen}) == [
        Group("victim", "r", 1, ["w5"]), Group("protected", "r", 4, ["w1/t", "w2", "w3"]),
        Group("protected", "s", 2, ["w6", "w7"]), Group("out-of-reach", "r", 1, ["w0"]),
    ]  # fmt: skip
    given = [{"verdict": verdict, "rule": "r", "count": 1, "examples": []} for verdict in reversed(VERDICTS)]
    assert [one.verdict for one in groups({"groups": given, "candidates": seen})] == list(VERDICTS)
    assert groups({}) == []
    alike = [{"verdict": "victim", "rule": rule, "count": 2, "examples": []} for rule in ("b", "a")]
    assert [one.rule for one in groups({"groups": alike})] == ["a", "b"]


def test_candidates_are_chosen_by_verdict_rule_and_words() -> None:
    explanation = {"candidates": [
        candidate("Alpha", "victim", "r", task="t1", queue="q1", node="n1"),
        candidate("beta", "victim", "s", queue="q2"),
        candidate("gamma", "protected", "r", queue="q1"),
    ]}  # fmt: skip

    def places(*given: Any) -> list[int]:
        return [place for place, _ in chosen(explanation, *given)]

    assert places(None, None, None) == places(None, None, "") == [1, 2, 3]
    assert places("victim", None, None) == [1, 2]
    assert places("victim", "r", None) == [1]
    assert [places(None, None, words) for words in ("ALPHA", "/T1", "q1", "N1", "nobody")] == [
        [1],
        [1],
        [1, 3],
        [1],
        [],
    ]
    assert chosen({}, None, None, None) == []
    assert [named(one) for one in explanation["candidates"]] == ["Alpha/t1", "beta", "gamma"]


@pytest.mark.parametrize(
    ("count", "number", "expected"),
    [(0, 1, (1, 1, 1, 0)), (10, 1, (1, 1, 4, 3)), (10, 3, (7, 3, 4, 3)), (10, 4, (10, 4, 4, 1)), (10, 9, (10, 4, 4, 1)),
     (9, 9, (7, 3, 3, 3)), (10, -1, (1, 1, 4, 3))],
)  # fmt: skip
def test_pages(count: int, number: int, expected: tuple[int, int, int, int]) -> None:
    found = paged(list(range(count)), number, 3)
    assert (found.first, found.number, found.last, len(found.rows)) == expected
    assert found.total == count
    assert not found.rows or found.rows[0] == found.first - 1


def test_rules_have_their_sentences() -> None:
    rules = rules_of({"rules": [{"rule": "r", "sentence": "says", "source": "where"}, {"rule": "s"}]})
    assert [(rules.sentence(one), rules.source(one)) for one in ("r", "s", "t")] == [
        ("says", "where"),
        ("s", ""),
        ("t", ""),
    ]


def decided(outcome: str, *victims: tuple[str, str | None], **more: Any) -> Json:
    stopped = [{"workload": workload, "task": task} for workload, task in victims]
    return {"ask": "a", "outcome": outcome, "victims": stopped, "conditions": [], **more}


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (decided("admit"), "a can start now; nothing has to stop."),
        (decided("admit", node="n"), "a can start now on n; nothing has to stop."),
        (decided("preempt", ("x", None)), "a can start once x has stopped."),
        (decided("preempt", ("x", None), ("y", None), ("x", None)), "a can start once x and y have stopped."),
        (decided("preempt", *((f"w{i}", None) for i in range(4)), node="n"),
         "a can start on n once 4 workloads have stopped."),
        (decided("preempt", *((f"w{i}", None) for i in range(3))), "a can start once w0 and w1 and w2 have stopped."),
        (decided("preempt", ("x", "t")), "a can start once 1 task of x has stopped."),
        (decided("preempt", ("x", "t"), ("x", "u")), "a can start once 2 tasks of x have stopped."),
        (decided("preempt", ("x", "t"), ("y", "u")), "a can start once 2 tasks of 2 workloads have stopped."),
        (decided("wait"), "a has to wait."),
        (decided("infeasible", conditions=[{"message": ""}, {"message": "no such node"}, {"message": "x"}]),
         "a can never start under this configuration: no such node"),
        (decided("wait", explanation={"headline": "both nodes are held"}), "both nodes are held"),
        (decided("wait", explanation={"headline": "a: wait"}), "a has to wait."),
        (decided("preempt", ("x", None), explanation={"headline": "told"}), "a can start once x has stopped."),
    ],
)  # fmt: skip
def test_the_answer_in_one_sentence(one: Json, said: str) -> None:
    assert sentence(one) == said


TOTAL: Json = {
    "jobs": 1200, "finished": 7, "wait": {"p50": 30, "p90": 7200}, "completion": {"p50": 1},
    "slowdown": {"p90": 1.2345},
    "evictions": 3, "work_lost": {"cpu": 5400, "gpu": 0}, "utilisation": {"cpu": 0.51234}, "shortfall": {},
}  # fmt: skip


def test_measures_of_a_run() -> None:
    assert [(one.title, settled(one.of(TOTAL))) for one in MEASURES] == [
        ("Jobs", f"1{NARROW}200"), ("Finished", "7"), ("Cancelled", "0"), ("Wait, median", "30 s"),
        ("Wait, 90 %", "2 h"), ("Completion, median", "1 s"), ("Completion, 90 %", "0 s"), ("Slowdown, 90 %", "1.23×"),
        ("Evictions", "3"), ("Most of one job", "0"), ("Work lost", "1.5 cpu·h"), ("Used", "cpu 51.2 %"),
        ("Missing", "none"),
    ]  # fmt: skip
    assert [one.of({}) for one in MEASURES][3:] == ["–"] * 5 + ["0", "0", "none", "–", "none"]
    assert [one.title for one in MEASURES if not one.queues] == [
        "Cancelled", "Completion, median", "Slowdown, 90 %", "Most of one job",
    ]  # fmt: skip


def test_who_stops_whom_on_a_circle() -> None:
    pairs = Counter({("a", "b"): 5, ("b", "a"): 2, ("c", "c"): 3, ("d", "a"): 1})
    dots, edges = circle(pairs, 3)
    assert [(dot.name, round(dot.x), round(dot.y)) for dot in dots] == [
        ("a", 250, 50),
        ("b", 380, 275),
        ("c", 120, 275),
    ]
    assert [(edge.source, edge.to, edge.times, edge.mutual, edge.path) for edge in edges] == [
        ("a", "b", 5, True, "M 250 50 Q 355 139 380 275"), ("c", "c", 3, False, "M 120 275 c -60 40 60 40 2 2"),
        ("b", "a", 2, True, "M 380 275 Q 274 186 250 50"),
    ]  # fmt: skip
    assert circle(Counter()) == ([], [])
    crowd = Counter({(f"q{i}", f"q{j}"): 1 for i in range(12) for j in range(12)})
    dots, edges = circle(crowd + Counter({("x", "y"): 1}))
    assert (len(dots), len(edges)) == (12, 120)


def test_decisions_by_interval_in_the_colours_of_their_badges() -> None:
    counted = [
        {"at": "2026-03-02T12:00:30Z", "outcomes": {"admit": 2, "wait": 1}},
        {"at": "2026-03-02T12:01:30Z", "outcomes": {"preempt": 1}},
    ]
    chart = by_interval(counted)
    start = datetime(2026, 3, 2, 12, 0, 30, tzinfo=UTC).timestamp()
    assert chart["x"] == [start, start + 60]
    found = {one["label"]: (one["values"], one["ink"], one["dash"]) for one in chart["series"]}
    assert found == {
        "admit": ([2, 0], "good", False), "preempt": ([0, 1], "stop", False), "wait": ([1, 0], "wait", False),
        "infeasible": ([0, 0], "wait", True),
    }  # fmt: skip


def test_the_navigation_shows_where_one_is_and_may_go() -> None:
    class Reader:
        def may(self, scope: str) -> bool:
            return scope == "read"

    shown = entries("/decisions/7", Reader())
    assert [one.title for one in shown] == [
        "Overview", "Queues", "Nodes", "Decisions", "Why me", "Who is next", "Simulations", "Forecasts",
        "Backtests", "Sweeps", "Traces", "Configurations", "Clusters",
    ]  # fmt: skip
    assert [one.title for one in shown if one.current] == ["Decisions"]
    for path, current in (("/", ["Overview"]), ("/decisionsx", []), ("/why", ["Why me"])):
        assert [one.title for one in entries(path, Reader()) if one.current] == current


@pytest.mark.parametrize(
    ("scheme", "name", "secure"), [("http", "arbiter_session", False), ("https", "__Host-arbiter_session", True)]
)
def test_cookies(scheme: str, name: str, secure: bool) -> None:
    def scope(cookie: str) -> Json:
        return {"scheme": scheme, "headers": [(b"cookie", cookie.encode())]}

    assert cookie_of(scope(f"a=b; {name}=value")) == "value"
    assert cookie_of(scope(f"{name}={'x' * 4000}")) == "x" * 4000
    for none in (f"{name}={'x' * 4001}", f"{name}=", "other=1", "", "a[]=;;"):
        assert cookie_of(scope(none)) is None
    for set_name, same in (("arbiter_session", "strict"), ("other", "lax")):
        answer = Response()
        set_cookie(answer, scope(""), "v", 60, set_name)
        drop_cookie(answer, scope(""), set_name)
        kept, dropped = (value.lower() for key, value in answer.raw_headers if key == b"set-cookie")
        for said in (kept, dropped):
            parts = {part.strip() for part in said.decode().split(";")}
            assert {"httponly", "path=/", f"samesite={same}"} <= parts
            assert ("secure" in parts) is secure
        assert b"max-age=60" in kept
        assert b"max-age=0" in dropped


def test_what_a_queue_uses() -> None:
    kueue = {"fair_share": {"cpu": 4, "gpu": 0, "x": "unlimited"}, "usage": {"cpu": 6, "x": 1}, "borrowed": {"cpu": 2}}
    assert uses("kueue", kueue) == [Use("cpu", 6, 4, 2, 4, 0), Use("x", 1, None, 0, "unlimited")]
    yunikorn = {"guaranteed": {"vcore": 2}, "usage": {"vcore": 1, "gpu": 3}, "remaining": {"vcore": 1, "gpu": -3}}
    assert uses("yunikorn", yunikorn) == [Use("vcore", 1, 2, 0, None, 1), Use("gpu", 3, None, 3, None)]
    kai = {"deserved": {"gpu": 2}, "usage": {"gpu": 5, "cpu": 1}, "fair_share": {"gpu": 3}}
    assert uses("kai", kai) == [Use("gpu", 5, 2, 3, 3), Use("cpu", 1, None, 0, None)]
    many = {"strong_guarantee": {f"r{i}": 1 for i in range(20)}, "usage": {}}
    assert len(uses("ytsaurus", many)) == 20, "none is left out unsaid"


def test_the_quota_of_a_queue() -> None:
    flavors = [{"flavors": [{"name": "a"}, {"quota": {"gpu": {"guaranteed": 1}}}]},
               {"flavors": [{"quota": {"gpu": {"guaranteed": 2}}}]}]  # fmt: skip
    queue = {"quota": {"cpu": {"limit": 3}}, "resource_groups": flavors}
    assert [quota_of(queue, name) for name in ("cpu", "gpu", "x")] == [{"limit": 3}, {"guaranteed": 1}, None]


def test_which_decision_a_page_is_about() -> None:
    waits, stops = decided("wait") | {"ask": "a"}, decided("preempt", ("x", None)) | {"ask": "b"}

    def about(ask: str | None, *decisions: Json) -> Any:
        holder = SimpleNamespace(answer={"decisions": list(decisions)})
        return Recorded.decision_of(holder, ask)  # pyright: ignore[reportArgumentType]

    assert about(None, waits, stops) is stops
    assert about("a", waits, stops) is waits
    assert about("c", waits, stops) is None
    assert about(None, waits) is waits
    assert about(None) is None


def test_who_stops_for_an_ask_by_which_rule_and_who_besides() -> None:
    one = decided("preempt", ("x", None), ("y", "t"))
    explanation = {"candidates": [
        candidate("x", "protected", "no"), candidate("x", "victim", "r"), candidate("y", "moved", "s", task="t"),
    ]}  # fmt: skip
    stops, others = deciding._stops, deciding._others  # pyright: ignore[reportPrivateUsage]
    assert [(v["workload"], rule) for v, rule in stops(one, explanation)] == [("x", "r"), ("y", "s")]
    assert [rule for _, rule in stops(one, {})] == [None, None]
    assert stops(None, explanation) == []
    evictions = [{"workload": "x"}, {"workload": "y"}, {"workload": "y", "task": "t"}]
    answer = {"plan": {"evictions": evictions}}
    assert others(answer, one) == [{"workload": "y"}]
    assert others(answer, one | {"plan": {"evictions": [{"workload": "z"}]}}) == [{"workload": "z"}]
    assert others(answer, None) == evictions
