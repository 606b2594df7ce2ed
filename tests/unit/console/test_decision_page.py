"""The page of a decision: which of its parts, with what before and after, and what is kept of it."""

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest

from app.console import decisions
from app.console.decisions import Looked, Recorded, Recordings, recorded
from app.console.situation import Cell
from app.http.body import Budget
from tests.support.instead import Instead
from tests.unit.console.visiting import Json, Page, refused, run

ID = UUID(int=7)
CPU, GPU = Cell("cpu"), Cell("gpu")
AT = f"/v1/decisions/{ID}"


def victim(name: str, **more: Any) -> Json:
    return {"workload": name, "queue": "low", "freed": {"cpu": 1}, "node": "n0", **more}


ONE: Json = {
    "ask": "a", "outcome": "preempt", "node": "n0", "conditions": [], "victims": [victim("w")],
    "explanation": {"candidates": [
        {"workload": "w", "verdict": "victim", "rule": "r", "queue": "low"},
        {"workload": "x", "verdict": "protected", "rule": "s", "queue": "low"},
    ]},
}  # fmt: skip
OTHER: Json = {"ask": "b", "outcome": "wait", "conditions": [], "victims": []}
PLAN: Json = {
    "evictions": [{"workload": "w"}, {"workload": "z"}], "placements": [{"node": "n1", "ask": "a", "task": "m"}],
}  # fmt: skip
ASKS = [
    {"id": "a", "queue": "high", "tasks": [{"name": "m", "requests": {"cpu": 2, "gpu": 1}}]},
    {"id": "b", "queue": "low", "tasks": []},
]
STATE: Json = {
    "nodes": [{"name": f"n{i}", "capacity": {"cpu": 4}} for i in range(50)],
    "workloads": [{"id": "w", "queue": "low", "tasks": [{"name": "t", "requests": {"cpu": 1}, "node": "n0"}]}],
}  # fmt: skip
QUEUES = [{"name": "root"}, *({"name": name, "parent": "root"} for name in ("high", "low", *map(str, range(50))))]


def kept(*, queues: list[Any] = QUEUES, state: Json = STATE, **more: Any) -> Recorded:
    request = {"state": {"snapshot": "s"}, "asks": ASKS}
    answer = {"decisions": [OTHER, ONE], "plan": PLAN}
    fields: Json = {
        "record": {"engine": "kai"}, "request": request, "resolved": {**request, "state": state}, "unknown": None,
        "answer": answer, "rules": None, "configuration": {"queues": queues}, "identical": True, "unexplained": None,
        "raw_request": b"q", "raw_answer": b"a", "calls": (), **more,
    }  # fmt: skip
    return Recorded(**fields)


def looked(**more: Any) -> Looked:
    kind = {name: more.pop(name) for name in ("ask", "verdict", "rule", "find") if name in more}
    return decisions._looked(decisions._kind(**kind), **more)  # pyright: ignore


def shown(monkeypatch: pytest.MonkeyPatch, found: Recorded, **look: Any) -> Json:
    async def read(visit: Any, identity: UUID) -> Recorded:
        assert identity == ID
        return found

    Instead(monkeypatch)(decisions, recorded=read)
    answer = run(decisions.decision(Page().visit, ID, looked(**look)))
    assert (answer.template, answer.status) == ("decision.html", 200)
    return answer.values


def test_the_page_is_about_the_ask_for_which_something_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    found = shown(monkeypatch, kept())
    assert (found["one"], found["ask"], found["sentence"]) == (ONE, ASKS[0], "a can start on n0 once w has stopped.")
    assert (found["stops"], found["others"]) == ([(ONE["victims"][0], "r")], [{"workload": "z"}])
    assert [one["workload"] for _, one in found["candidates"].rows] == ["w", "x"]
    assert [(group.verdict, group.count) for group in found["groups"]] == [("victim", 1), ("protected", 1)]
    assert (found["known"], found["every"], found["snapshot"], found["unknown"]) == (True, False, "s", None)
    assert ([one.name for one in found["way"]], found["cells"]) == (["high", "root"], [CPU, GPU])
    assert (found["raw_request"], found["raw_answer"], found["id"], found["record"]) == (
        b"q",
        b"a",
        str(ID),
        {"engine": "kai"},
    )
    assert (found["asks"].rows, found["asks"].last) == ([OTHER, ONE], 1)


def test_of_many_queues_and_nodes_those_that_change_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = shown(monkeypatch, kept())
    assert [one.name for one in found["queues"]] == ["root", "high", "low"]
    assert (found["all_queues"], found["all_nodes"]) == (53, 50)
    assert [one.name for one in found["nodes"]] == ["n0", "n1"]
    after = {one.name: dict(one.after) for one in found["queues"]}
    assert after["high"] == {CPU: 2000, GPU: after["high"][GPU]}
    assert after["low"] == {CPU: 0}
    assert {one.name: (one.before["cpu"], one.after["cpu"]) for one in found["nodes"]} == {
        "n0": (1000, 0),
        "n1": (0, 2000),
    }
    found = shown(monkeypatch, kept(), every=True)
    assert (len(found["queues"]), len(found["nodes"]), found["every"]) == (53, 50, True)
    for count, shown_queues, shown_nodes in ((40, 40, 40), (41, 3, 2)):
        few = kept(queues=QUEUES[:count], state={**STATE, "nodes": STATE["nodes"][:count]})
        found = shown(monkeypatch, few)
        assert (len(found["queues"]), len(found["nodes"])) == (shown_queues, shown_nodes)
    many = kept(
        queues=[{"name": str(i)} for i in range(1100)],
        state={"nodes": [{"name": str(i)} for i in range(1100)]},
    )
    found = shown(monkeypatch, many, every=True)
    assert (len(found["queues"]), len(found["nodes"]), found["all_queues"], found["all_nodes"]) == (
        1000,
        1000,
        1100,
        1100,
    )


def test_another_ask_or_none_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    found = shown(monkeypatch, kept(), ask="b", page=3, asks=9, verdict="victim", rule="r", find="x")
    assert (found["one"], found["ask"], found["stops"]) == (OTHER, ASKS[1], [])
    assert (found["known"], found["explanation"], found["others"]) == (False, {}, PLAN["evictions"])
    assert found["chosen"] == Looked("b", "victim", "r", "x", 3, 9, False, "")
    assert found["cells"] == []
    found = shown(monkeypatch, kept(), ask="nobody")
    assert (found["one"], found["ask"], found["sentence"], found["way"]) == (None, None, "Nothing was asked.", [])
    assert found["others"] == PLAN["evictions"]
    found = shown(monkeypatch, kept(), verdict="protected")
    assert [one["workload"] for _, one in found["candidates"].rows] == ["x"]
    found = shown(monkeypatch, kept(), rule="r")
    assert [one["workload"] for _, one in found["candidates"].rows] == ["w"]
    found = shown(monkeypatch, kept(), find="X")
    assert [one["workload"] for _, one in found["candidates"].rows] == ["x"]
    found = shown(monkeypatch, kept(), sort="-name")
    assert [place for place, _ in found["candidates"].rows] == [2, 1]
    found = shown(monkeypatch, kept(configuration=None))
    assert (found["queues"], found["all_queues"]) == ([], 0)
    assert looked() == Looked(None, "", "", "", 1, 1, False, "")


def test_long_lists_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    freed = {f"r{i}": 1 for i in range(9)}
    one = {**ONE, "victims": [victim(f"v{i}", freed=freed) for i in range(250)]}
    plan = {**PLAN, "evictions": [{"workload": f"e{i}"} for i in range(250)]}
    found = shown(monkeypatch, kept(answer={"decisions": [one, *[OTHER] * 60], "plan": plan}), asks=2)
    assert (len(found["stops"]), len(found["others"])) == (200, 200)
    assert found["cells"] == [CPU, GPU, *(Cell(f"r{i}") for i in range(9))], "none is left out unsaid"
    assert (len(found["asks"].rows), found["asks"].first, found["asks"].last) == (11, 51, 2)


def test_files_and_replays() -> None:
    page = Page({f"GET {AT}/request": b"{}", f"GET {AT}": b"[]", f"POST {AT}/replay": {"identical": True}})
    answer = run(decisions.decision_request(page.visit, ID))
    assert (answer.body, answer.media_type) == (b"{}", "application/json")
    assert answer.headers["content-disposition"] == 'attachment; filename="request.json"'
    answer = run(decisions.decision_answer(page.visit, ID))
    assert (answer.body, answer.headers["content-disposition"]) == (b"[]", 'attachment; filename="answer.json"')
    answer = run(decisions.replay(page.visit, ID))
    assert (answer.template, answer.values) == ("replay.html", {"id": str(ID), "replay": {"identical": True}})
    assert page.asked[-1].body is None


RECORD: Json = {
    "engine": "kai",
    "answer": {"decisions": [], "plan": 1},
    "configuration": {"name": "c/1", "revision": 4},
}
EXPLAINED: Json = {"identical": True, "answer": {"decisions": [], "explained": 1}}
LOGGED: Json = {
    f"GET {AT}": RECORD, f"GET {AT}/request": {"state": {}}, f"GET {AT}/explanation": EXPLAINED,
    "GET /v1/rules": {"rules": [{"rule": "r", "sentence": "s"}]},
    "GET /v1/configurations/c%2F1/revisions/4": {"configuration": {"queues": []}},
}  # fmt: skip


def reading(monkeypatch: pytest.MonkeyPatch, answers: Json, store: Recordings | None = None) -> tuple[Recorded, Page]:
    services = {Recordings: Recordings() if store is None else store, Budget: Budget(1)}
    Instead(monkeypatch)("app.console.decisions", service=lambda request, kind: services[kind])
    page = Page(answers)
    return run(recorded(page.visit, ID)), page


def test_a_decision_is_read_with_its_explanation_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Recordings()
    found, page = reading(monkeypatch, LOGGED, store)
    about = {name: value for name, value in RECORD.items() if name != "answer"}
    assert (found.record, found.answer, found.configuration) == (about, EXPLAINED["answer"], {"queues": []})
    assert (found.identical, found.unexplained, found.unknown, found.request) == (True, None, None, {"state": {}})
    assert found.resolved is found.request
    assert found.rules.sentence("r") == "s"
    assert (page.queries(f"{AT}/explanation"), page.queries("/v1/rules")) == ([{"level": "full"}], [{"engine": "kai"}])
    assert (found.raw_request, found.raw_answer) == (b'{"state":{}}', msgspec.json.encode(RECORD["answer"]))
    again, page = reading(monkeypatch, {f"GET {AT}": RECORD}, store)
    assert again is found
    assert [call.target for call in page.api.calls] == [AT, f"{AT}/request", f"{AT}/explanation", "/v1/rules",
                                                       "/v1/configurations/c%2F1/revisions/4"]  # fmt: skip
    size = len(msgspec.json.encode(RECORD)) + len(b'{"state":{}}') + len(msgspec.json.encode(EXPLAINED))
    assert store._size == 10 * size  # pyright: ignore
    with pytest.raises(Exception, match="404"):
        reading(monkeypatch, {}, store)


def test_what_can_not_be_explained_or_differs_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Recordings()
    found, _ = reading(monkeypatch, {**LOGGED, f"GET {AT}/explanation": refused(409)}, store)
    assert (found.unexplained, found.answer, found.identical, len(store)) == ("because", RECORD["answer"], True, 0)
    other = {**EXPLAINED, "identical": False}
    found, _ = reading(monkeypatch, {**LOGGED, f"GET {AT}/explanation": other})
    assert (found.identical, found.answer, found.unexplained) == (False, RECORD["answer"], None)


def test_the_state_and_the_configuration_are_those_that_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    named: Json = {"state": {"snapshot": "s"}, "configuration": "c"}
    page = {**LOGGED, f"GET {AT}/request": [named, {"state": {"nodes": []}}]}
    found, asked = reading(monkeypatch, page)
    assert (found.request, found.resolved, found.unknown) == (named, {"state": {"nodes": []}}, None)
    assert asked.queries(f"{AT}/request") == [None, {"resolved": True}]
    found, _ = reading(monkeypatch, {**LOGGED, f"GET {AT}/request": [named, refused(404)]})
    assert (found.resolved, found.unknown) == (named, "because")
    own = {"state": {}, "configuration": {"queues": [1]}}
    assert reading(monkeypatch, {**LOGGED, f"GET {AT}/request": own})[0].configuration == {"queues": [1]}
    unnamed = {**RECORD, "configuration": {"digest": "d"}}
    assert reading(monkeypatch, {**LOGGED, f"GET {AT}": unnamed})[0].configuration is None
    gone = {name: of for name, of in LOGGED.items() if "revisions" not in name}
    assert reading(monkeypatch, gone)[0].configuration is None


def test_documents_that_are_too_long_are_not_shown_raw(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(size: int) -> tuple[Recorded, Page]:
        answer = {"decisions": [], "x": "y" * (size - len('{"decisions":[],"x":""}'))}
        request = {"state": {}, "x": "y" * (size - len('{"state":{},"x":""}'))}
        return reading(monkeypatch, {**LOGGED, f"GET {AT}": {**RECORD, "answer": answer}, f"GET {AT}/request": request})

    found, _ = of(64 << 10)
    assert (len(found.raw_request or b""), len(found.raw_answer or b"")) == (64 << 10, 64 << 10)
    found, _ = of((64 << 10) + 1)
    assert (found.raw_request, found.raw_answer) == (None, None)


def test_a_decision_of_no_asks_has_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = kept(answer={"decisions": [], "plan": {"evictions": [], "placements": []}})
    found = shown(monkeypatch, cast(Recorded, empty))
    assert (found["one"], found["asks"].rows, found["nodes"]) == (None, [], [])
    assert SimpleNamespace(**found["chosen"]._asdict()).number == 1
