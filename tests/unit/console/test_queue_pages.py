"""Pages of queues and of quotas that are tried: which queues are shown, what uses them, what other quotas stop."""

from typing import Any

import pytest

from app.console import queues
from app.console import queues as quotas
from app.console.queues import WORDS
from tests.unit.console.visiting import Json, Page, refused, run

AT = "/v1/configurations/c"
TREE: list[Json] = [
    {"name": "root", "quota": {"cpu": {"guaranteed": 4, "limit": 8}, "memory": {"limit": "1Gi"}}},
    {"name": "b", "parent": "root", "quota": {"cpu": {"guaranteed": 1}}, "kai": {"x": {"weight": 2}}, "limit": 3},
    {"name": "A", "parent": "root"}, {"name": "deep", "parent": "b"}, {"name": "deeper", "parent": "deep"},
]  # fmt: skip
STORED: Json = {"name": "c", "revision": 2, "configuration": {"engine": "kai", "queues": TREE}}
SHARES: Json = {"engine": "kai", "queues": {
    "b": {"share": 0.5, "deserved": {"cpu": 1}, "usage": {"cpu": 3}}, "deep": {"share": 2}, "A": {"share": None},
}}  # fmt: skip
ANSWERS: Json = {
    "GET /v1/configurations": {"items": [{"name": "c"}, {"name": "d"}]}, "GET /v1/snapshots": {"items": ["s"]},
    f"GET {AT}": STORED, "POST /v1/shares": SHARES,
}  # fmt: skip


def wanted(**fields: str) -> Json:
    return queues._wanted(**fields)  # pyright: ignore


def shown(page: Page, number: int = 1, **fields: str) -> Json:
    return run(queues.queues(page.visit, wanted(**fields), number)).values


def test_a_tree_is_shown_whole_with_what_a_snapshot_uses() -> None:
    page = Page(ANSWERS)
    found = shown(page, configuration="c", snapshot="s", find=" ")
    assert [one.name for one in found["rows"].rows] == ["root", "b", "deep", "deeper", "A"]
    assert page.asked[0].query == {"limit": 500}
    asked = next(one for one in page.asked if one.method == "POST")
    assert asked.body == {"configuration": "c", "state": {"snapshot": "s"}}
    assert found["wanted"] == {"configuration": "c", "snapshot": "s", "find": "", "under": "", "sort": ""}
    assert (found["names"], found["snapshots"], found["stored"]) == (["c", "d"], ["s"], STORED)
    assert (found["resources"], found["sizes"]) == (
        ["cpu", "memory"],
        {"root": 2, "b": 1, "deep": 1, "deeper": 0, "A": 0},
    )
    (use,) = found["uses"]["b"]
    assert (use.resource, use.used, use.promised, use.above) == ("cpu", 3, 1, 2)
    assert (found["uses"]["root"], found["words"], found["problem"], found["way"]) == ([], WORDS["kai"], None, [])
    assert found["shares"] == SHARES["queues"]


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"find": "DEEP"}, ["deep", "deeper"]),
        ({"find": "a"}, ["A"]),
        ({"under": "b"}, ["b", "deep", "deeper"]),
        ({"under": "root"}, ["root", "b", "deep", "deeper", "A"]),
        ({"under": "none"}, ["root", "b", "deep", "deeper", "A"]),
        ({"sort": "name"}, ["A", "b", "deep", "deeper", "root"]),
        ({"sort": "share", "snapshot": "s"}, ["deep", "b", "root", "deeper", "A"]),
        ({"sort": "share"}, ["root", "b", "deep", "deeper", "A"]),
    ],
)
def test_queues_are_found_folded_and_sorted(fields: Json, names: list[str]) -> None:
    assert [one.name for one in shown(Page(ANSWERS), **fields)["rows"].rows] == names


def test_of_a_large_tree_the_upper_levels_are_shown() -> None:
    def tree(count: int) -> Json:
        many = [{"name": f"q{i}", "parent": "root"} for i in range(count - 2)]
        return {"configuration": {"queues": [{"name": "root"}, *many, {"name": "low", "parent": "q0"}]}}

    found = shown(Page({**ANSWERS, f"GET {AT}": tree(200)}))
    assert (found["rows"].total, found["rows"].last) == (200, 1)
    found = shown(Page({**ANSWERS, f"GET {AT}": tree(202)}))
    assert (found["rows"].total, found["rows"].last) == (201, 2)
    assert "low" not in [one.name for one in found["rows"].rows]
    assert shown(Page({**ANSWERS, f"GET {AT}": tree(202)}), 2)["rows"].first == 201
    under = shown(Page({**ANSWERS, f"GET {AT}": tree(202)}), under="q0")
    assert [one.name for one in under["rows"].rows] == ["q0", "low"]
    assert [one.name for one in under["way"]] == ["root", "q0"]


def test_the_example_comes_first_and_nothing_is_shown_of_nothing() -> None:
    names = {"items": [{"name": "c"}, {"name": "example"}]}
    page = Page({**ANSWERS, "GET /v1/configurations": names, "GET /v1/configurations/example": STORED})
    assert shown(page)["wanted"]["configuration"] == "example"
    assert shown(Page(ANSWERS))["wanted"]["configuration"] == "c"
    page = Page({**ANSWERS, "GET /v1/configurations": {"items": []}})
    found = shown(page, snapshot="s")
    assert (found["stored"], found["tree"], found["problem"], found["shares"]) == (None, {}, None, {})
    assert [one.method for one in page.asked] == ["GET", "GET"]
    many = {f"r{i}": {"guaranteed": 1} for i in range(6)}
    page = Page({**ANSWERS, f"GET {AT}": {"configuration": {"queues": [{"name": "q", "quota": many}]}}})
    assert shown(page)["resources"] == ["r0", "r1", "r2", "r3"]


def test_without_the_scope_or_an_answer_it_says_why_nothing_is_used() -> None:
    found = shown(Page(ANSWERS, scopes=("read",)), snapshot="s")
    assert (found["problem"], found["shares"], found["uses"], found["words"]) == (
        "What a snapshot uses is a question: that needs scope decide.", {}, {}, None,
    )  # fmt: skip
    found = shown(Page({**ANSWERS, "POST /v1/shares": refused(404)}), snapshot="s")
    assert (found["problem"], found["uses"]) == ("because", {})
    page = Page(ANSWERS)
    assert shown(page)["problem"] is None
    assert all(one.method == "GET" for one in page.asked)


QUEUE: Json = {
    **ANSWERS, f"GET {AT}/queues/b": {"queue": {"x": 1}}, f"GET {AT}/queues/deeper": {"queue": {}},
    "POST /v1/effective-settings": {
        "queues": {"b": {"weight": 2, "limit": 3, "order": "fifo"}, "deeper": {"weight": 2}},
    },
    "GET /v1/snapshots/s%2F1/state": {"workloads": [
        {"id": "w", "queue": "deep", "tasks": [{"name": "t", "requests": {"cpu": "500m"}, "count": 3}]},
        {"id": "x", "queue": "A"}, {"id": "y", "queue": "b", "evicted": {"at": 1}}, {"id": "z"},
    ]},
    "GET /v1/snapshots/s%2F1/asks": {"items": [{"id": "a", "queue": "deeper"}, {"id": "b", "queue": "root"}]},
    "GET /v1/decisions": {"items": ["d"]},
}  # fmt: skip


def test_one_queue_has_its_settings_and_what_runs_and_waits_below_it() -> None:
    page = Page(QUEUE)
    found = run(queues.queue(page.visit, "c", "b", "s/1")).values
    assert found["settings"] == [("weight", 2, "here"), ("limit", 3, "here"), ("order", "fifo", "default")]
    assert ([one["id"] for one in found["running"].rows], found["waiting"]) == (["w"], [{"id": "a", "queue": "deeper"}])
    assert found["requested"](found["running"].rows[0]) == {"cpu": 1.5}
    assert found["requested"]({}) == {}
    assert ([one.name for one in found["way"]], found["one"].name, found["document"]) == (["root", "b"], "b", {"x": 1})
    assert (found["words"], found["uses"][0].above, found["untold"], found["problem"]) == (WORDS["kai"], 2, None, None)
    assert (found["lately"], found["snapshots"], found["snapshot"]) == (["d"], ["s"], "s/1")
    assert page.queries("/v1/decisions") == [{"queue": "b", "limit": 10}]
    assert next(one.body for one in page.asked if one.path.endswith("settings")) == {"configuration": "c"}
    found = run(queues.queue(Page(QUEUE).visit, "c", "deeper")).values
    assert found["settings"] == [("weight", 2, "b")], "it is stated two queues up"
    assert (found["running"].rows, found["waiting"], found["uses"], found["words"]) == ([], [], [], None)


def test_who_may_not_ask_sees_the_queue_without_its_settings() -> None:
    found = run(queues.queue(Page(QUEUE, scopes=("read",)).visit, "c", "b")).values
    assert (found["settings"], found["problem"]) == ([], None)
    page = Page({**QUEUE, "POST /v1/effective-settings": refused(422)})
    found = run(queues.queue(page.visit, "c", "b")).values
    assert (found["settings"], found["problem"]) == ([], "because")
    page = Page({**QUEUE, "POST /v1/effective-settings": {"queues": {}}})
    assert run(queues.queue(page.visit, "c", "b")).values["settings"] == []


def test_a_queue_of_no_engine_is_read_as_kueues() -> None:
    document = {"queues": [{"name": "b", "kueue": {"weight": 1}, "kai": {"limit": 1}}]}
    page = Page({**QUEUE, f"GET {AT}": {"configuration": document}})
    settings = run(queues.queue(page.visit, "c", "b")).values["settings"]
    assert [origin for *_, origin in settings] == ["here", "default", "default"]


QUOTAS: Json = {"name": "c", "revision": 2, "configuration": {"queues": [
    {"name": "top"}, {"name": "a", "parent": "top", "quota": {"cpu": {"guaranteed": 4}, "gpu": {"guaranteed": 1}}},
    {"name": "b", "parent": "top", "resource_groups": [{"flavors": [{"quota": {"cpu": {"guaranteed": "6"}}}]}]},
    {"name": "none", "quota": {"cpu": {"limit": 3}}},
]}}  # fmt: skip
ASK = {"id": "x", "queue": "a", "tasks": [{"count": 3}, {}]}


def decided(*victims: str) -> Json:
    return {"answer": {"decisions": [{"ask": "x", "victims": [{"workload": name} for name in victims]}]}}


TRY: Json = {
    f"GET {AT}": QUOTAS, "GET /v1/snapshots": {"items": [{"name": "s"}]},
    "GET /v1/snapshots/s/asks": {"items": [ASK]}, "GET /v1/snapshots/s/state": {"nodes": []},
    "POST /v1/comparisons": {"variants": [decided("u", "v"), decided("v", "w")]},
}  # fmt: skip


def test_sliders_begin_at_what_is_stated() -> None:
    page = Page(TRY)
    answer = run(quotas.quotas(page.visit, "c"))
    found = answer.values
    assert (answer.template, answer.status) == ("quotas.html", 200)
    assert [(one.queue, one.depth, one.stated, one.value, one.most, one.step) for one in found["sliders"]] == [
        ("a", 1, 4, 4, 12, 1), ("b", 1, 6, 6, 12, 1),
    ]  # fmt: skip
    assert (found["resources"], found["resource"], found["snapshots"]) == (["cpu", "gpu"], "cpu", ["s"])
    assert (found["found"], found["problem"], found["asks"], found["total"]) == (None, None, [], 0)
    assert found["queues"] == ["top", "a", "b", "none"]
    found = run(quotas.quotas(Page(TRY).visit, "c", "s", "gpu")).values
    assert [(one.queue, one.value) for one in found["sliders"]] == [("a", 1)]
    assert (found["found"], found["asks"], found["total"]) == (None, [ASK], 4)
    assert found["sliders"][0][4:] == (2, 1)


def test_what_the_quotas_of_the_form_would_stop_stands_beside_now() -> None:
    fields = {"configuration": "c", "snapshot": "s", "quota.a": "2.5", "quota.b": "9", "quota.none": "7"}
    page = Page(TRY, fields=fields)
    found = run(quotas.tried(page.visit)).values
    assert [(one.queue, one.stated, one.value) for one in found["sliders"]] == [("a", 4, 2.5), ("b", 6, 9)]
    body = page.asked[-1].body
    changed = {queue["name"]: queue for queue in body["variants"][1].pop("configuration")["queues"]}
    assert (changed["a"]["quota"]["cpu"], changed["a"]["quota"]["gpu"]) == ({"guaranteed": 2.5}, {"guaranteed": 1})
    assert changed["b"]["resource_groups"][0]["flavors"][0]["quota"]["cpu"] == {"guaranteed": 9}
    assert changed["none"]["quota"]["cpu"] == {"limit": 3}
    assert body == {
        "configuration": "c@2", "state": {"nodes": []}, "asks": [ASK],
        "variants": [{"name": "with the quotas in force"}, {"name": "with these"}],
    }  # fmt: skip
    assert found["found"].more == [{"workload": "w"}]
    assert found["found"].fewer == [{"workload": "u"}]
    assert [len(pair) for pair in found["found"].pairs] == [2]


def test_long_lists_of_what_differs_are_cut() -> None:
    many = [f"m{i}" for i in range(250)]
    other = [f"n{i}" for i in range(250)]
    decisions = {"answer": {"decisions": decided(*many)["answer"]["decisions"] * 60}}
    against = {"answer": {"decisions": decided(*other)["answer"]["decisions"] * 60}}
    fields = {"configuration": "c", "snapshot": "s", "quota.a": "1"}
    page = Page({**TRY, "POST /v1/comparisons": {"variants": [decisions, against]}}, fields=fields)
    found = run(quotas.tried(page.visit)).values["found"]
    assert (len(found.pairs), len(found.more), len(found.fewer)) == (50, 200, 200)


@pytest.mark.parametrize(
    ("typed", "value"),
    [("7", 7), ("0", 0), ("-1", 4), ("x", 4), ("", 4), ("nan", 4), ("1e30", 4), (str(2**62), 4), ("0.5", 0.5)],
)
def test_what_is_no_amount_leaves_a_slider_where_it_was(typed: str, value: float) -> None:
    page = Page(TRY, fields={"configuration": "c", "quota.a": typed})
    slider = run(quotas.tried(page.visit)).values["sliders"][0]
    assert (slider.value, type(slider.value)) == (value, type(value))


def test_steps_are_of_a_unit_or_a_two_hundredth() -> None:
    def slider(*guaranteed: Any) -> tuple[float, float]:
        queues = [{"name": str(i), "quota": {"cpu": {"guaranteed": value}}} for i, value in enumerate(guaranteed)]
        page = Page({**TRY, f"GET {AT}": {"configuration": {"queues": queues}}})
        found = run(quotas.quotas(page.visit, "c", resource="cpu")).values["sliders"]
        return found[0].most, found[0].step

    assert slider(100) == (200, 1)
    assert slider(101) == (202, 202 / 200)
    assert slider(100, "500m") == (200, 1.0)
    assert slider(10, "1500m") == (20, 0.1)
    assert slider(0) == (2, 1)
    many = [{"name": str(i), "quota": {"cpu": {"guaranteed": 1}}} for i in range(250)]
    page = Page({**TRY, f"GET {AT}": {"configuration": {"queues": many}}})
    assert len(run(quotas.quotas(page.visit, "c")).values["sliders"]) == 200
    page = Page({**TRY, f"GET {AT}": {"configuration": {}}})
    found = run(quotas.quotas(page.visit, "c")).values
    assert (found["resource"], found["sliders"]) == ("", [])


def test_where_nothing_waits_the_form_says_what_is_asked() -> None:
    empty = {**TRY, "GET /v1/snapshots/s/asks": {}}
    fields = {"configuration": "c", "snapshot": "s", "quota.a": "1", "queue": "b", "amount": "4", "priority": " -3 "}
    page = Page(empty, fields=fields)
    found = run(quotas.tried(page.visit)).values
    task = {"name": "main", "requests": {"cpu": "4"}}
    asked = {"id": "an ask like this", "queue": "b", "tasks": [task]}
    assert found["asks"] == [{**asked, "priority": -3}]
    assert page.asked[-1].body["asks"] == found["asks"]
    page = Page(empty, fields={**fields, "amount": "", "priority": "high"})
    assert run(quotas.tried(page.visit)).values["asks"] == [{**asked, "tasks": [{**task, "requests": {"cpu": "1"}}]}]
    page = Page(empty, fields={**fields, "queue": ""})
    found = run(quotas.tried(page.visit)).values
    assert (found["asks"], found["found"]) == ([], None)
    page = Page(TRY, fields=fields)
    assert run(quotas.tried(page.visit)).values["asks"] == [ASK], "what really waits counts"


def test_what_is_refused_stands_on_the_page_of_quotas() -> None:
    fields = {"configuration": "c", "snapshot": "s", "quota.a": "1"}
    for path, headers, status in (
        ("POST /v1/comparisons", {}, 422), ("GET /v1/snapshots/s/asks", {}, 422),
        ("POST /v1/comparisons", {"hx-request": "true"}, 200),
    ):  # fmt: skip
        answer = run(quotas.tried(Page({**TRY, path: refused(422)}, fields=fields, headers=headers).visit))
        assert (answer.status, answer.values["problem"]["detail"], answer.values["found"]) == (status, "because", None)
