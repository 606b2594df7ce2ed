"""Other quotas: where sliders stand, what moving them asks, and what the answer says."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from app.console import quotas
from app.console.situation import Cell
from tests.unit.console.visiting import Json, Page, Shown, refused, run

AT = "/v1/configurations/c"
NOTHING = ("", "", "")
QUOTAS: Json = {"name": "c", "revision": 2, "configuration": {"queues": [
    {"name": "top"}, {"name": "a", "parent": "top", "quota": {"cpu": {"guaranteed": 4}, "gpu": {"guaranteed": 1}}},
    {"name": "b", "parent": "top", "resource_groups": [{"flavors": [{"quota": {"cpu": {"guaranteed": "6"}}}]}]},
    {"name": "none", "quota": {"cpu": {"limit": 3}}},
]}}  # fmt: skip
ASK = {"id": "x", "queue": "a", "tasks": [{"count": 3}, {}]}


def decided(*victims: str) -> Json:
    return {
        "answer": {
            "decisions": [{"ask": "x", "outcome": "preempt", "victims": [{"workload": name} for name in victims]}]
        }
    }


TRY: Json = {
    f"GET {AT}": QUOTAS, "GET /v1/snapshots": {"items": [{"name": "s"}]},
    "GET /v1/snapshots/s/asks": {"items": [ASK]}, "GET /v1/snapshots/s/state": {"nodes": []},
    "POST /v1/comparisons": {"variants": [decided("u", "v"), decided("v", "w")]},
}  # fmt: skip


def shown(answers: Json, snapshot: str = "s", moved: list[str] | None = None, **more: Any) -> tuple[Shown, Page]:
    """The page of quotas; ``like``: the ask that the form describes."""
    page = Page(answers, headers=more.get("headers"))
    place = ("c", snapshot, more.get("resource", ""))
    return run(quotas.quotas(page.visit, place, more.get("like", NOTHING), moved)), page


def sent(fields: Json) -> list[str]:
    """What stands in the address that the form leads to as moved."""
    page = Page(TRY, fields={"configuration": "c", "snapshot": "s", "resource": "cpu", **fields})
    return parse_qs(urlsplit(run(quotas.move(page.visit)).to or "").query).get("moved", [])


def test_sliders_begin_at_what_is_stated() -> None:
    answer, _ = shown(TRY, snapshot="")
    found = answer.values
    assert (answer.template, answer.status) == ("quotas.html", 200)
    assert [(one.queue, one.depth, one.stated, one.value, one.most, one.step) for one in found["sliders"]] == [
        ("a", 1, 4, 4, 12, 1), ("b", 1, 6, 6, 12, 1),
    ]  # fmt: skip
    assert (found["cells"], found["asked"].cell) == ([Cell("cpu"), Cell("gpu")], Cell("cpu"))
    assert found["snapshots"] == ["s"]
    assert (found["found"], found["problem"], found["waiting"]) == (None, None, 0)
    assert found["queues"] == ["top", "a", "b", "none"]
    found = shown(TRY, resource="gpu")[0].values
    assert [(one.queue, one.value) for one in found["sliders"]] == [("a", 1)]
    assert (found["found"], found["waiting"]) == (None, 1)


def test_what_the_moved_quotas_would_stop_stands_beside_now() -> None:
    answer, page = shown(TRY, moved=["a=2.5", "b=9", "none=7"])
    found = answer.values
    assert [(one.queue, one.stated, one.value) for one in found["sliders"]] == [("a", 4, 2.5), ("b", 6, 9)]
    body = page.asked[-1].body
    changed = {queue["name"]: queue for queue in body["variants"][1].pop("configuration")["queues"]}
    assert (changed["a"]["quota"]["cpu"], changed["a"]["quota"]["gpu"]) == ({"guaranteed": 2.5}, {"guaranteed": 1})
    assert changed["b"]["resource_groups"][0]["flavors"][0]["quota"]["cpu"] == {"guaranteed": 9}
    assert body == {
        "configuration": "c@2", "state": {"snapshot": "s"}, "asks": "pending",
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
    answer, _ = shown({**TRY, "POST /v1/comparisons": {"variants": [decisions, against]}}, moved=["a=1"])
    found = answer.values["found"]
    assert (len(found.pairs), len(found.more), len(found.fewer)) == (50, 200, 200)


@pytest.mark.parametrize(
    ("typed", "moved"),
    [
        ("7", ["a=7"]), ("0", ["a=0"]), ("0.5", ["a=0.5"]), ("3.33333", ["a=3.333"]), ("4", []), ("4.0000001", []),
        ("-1", []), ("x", []), ("", []), ("nan", []), ("1e30", []), (str(2**62), []),
    ],
)  # fmt: skip
def test_only_what_was_moved_stands_in_the_address_in_steps_that_engines_tell_apart(
    typed: str, moved: list[str]
) -> None:
    assert sent({"quota.a": typed, "quota.b": "6"}) == moved


def test_steps_are_whole_units_where_everything_is() -> None:
    def slider(*guaranteed: Any) -> tuple[float, int | str]:
        queues = [{"name": str(i), "quota": {"cpu": {"guaranteed": value}}} for i, value in enumerate(guaranteed)]
        document = {"configuration": {"queues": queues}}
        found = shown({**TRY, f"GET {AT}": document}, snapshot="", resource="cpu")[0].values["sliders"]
        return found[0].most, found[0].step

    assert slider(100) == (200, 1)
    assert slider(101) == (202, "any")
    assert slider(100, "500m") == (200, "any")
    assert slider(0) == (2, 1)
    many = [{"name": str(i), "quota": {"cpu": {"guaranteed": 1}}} for i in range(250)]
    answer, _ = shown({**TRY, f"GET {AT}": {"configuration": {"queues": many}}}, snapshot="")
    assert len(answer.values["sliders"]) == 200
    answer, _ = shown({**TRY, f"GET {AT}": {"configuration": {}}}, snapshot="")
    assert (answer.values["asked"].cell, answer.values["sliders"]) == (Cell(""), [])


def test_a_flavor_is_moved_alone() -> None:
    flavors = [{"name": name, "quota": {"cpu": {"guaranteed": n}}} for name, n in (("spot", 4), ("own", 2))]
    document = {"engine": "kueue", "queues": [{"name": "a", "resource_groups": [{"flavors": flavors}]}]}
    answers = {**TRY, f"GET {AT}": {**QUOTAS, "configuration": document}}
    found, page = shown(answers, resource="cpu in own", moved=["a=7"])
    assert [str(cell) for cell in found.values["cells"]] == ["cpu in spot", "cpu in own"]
    assert [(one.stated, one.value) for one in found.values["sliders"]] == [(2, 7)]
    (changed,) = page.asked[-1].body["variants"][1]["configuration"]["queues"]
    assert [of["quota"]["cpu"]["guaranteed"] for of in changed["resource_groups"][0]["flavors"]] == [4, 7]
    assert found.values["asked"].address().endswith("&resource=cpu+in+own&moved=a%3D7")
    assert shown(answers, resource="cpu")[0].values["asked"].cell == Cell("cpu", "spot"), "the first of a resource"


def test_where_nothing_waits_the_form_says_what_is_asked() -> None:
    empty = {**TRY, "GET /v1/snapshots/s/asks": {"items": []}}
    task = {"name": "main", "requests": {"cpu": "4"}}
    asked = {"id": "an ask like this", "queue": "b", "tasks": [task]}
    _, page = shown(empty, moved=["a=1"], like=("b", "4", "-3"))
    assert page.asked[-1].body["asks"] == [{**asked, "priority": -3}]
    _, page = shown(empty, moved=["a=1"], like=("b", "", "high"))
    assert page.asked[-1].body["asks"] == [{**asked, "tasks": [{**task, "requests": {"cpu": "1"}}]}]
    assert shown(empty, moved=["a=1"])[0].values["found"] is None
    _, page = shown(TRY, moved=["a=1"], like=("b", "4", "-3"))
    assert page.asked[-1].body["asks"] == "pending", "what really waits counts"


def test_what_is_refused_stands_on_the_page_of_quotas() -> None:
    for path, headers, status in (
        ("POST /v1/comparisons", {}, 422), ("GET /v1/snapshots/s/asks", {}, 422),
        ("POST /v1/comparisons", {"hx-request": "true"}, 200),
    ):  # fmt: skip
        answer, _ = shown({**TRY, path: refused(422)}, moved=["a=1"], headers=headers)
        assert (answer.status, answer.values["problem"]["detail"], answer.values["found"]) == (status, "because", None)
    variants = [decided("u"), {"name": "with these", "problems": [{"pointer": "/x", "detail": "above the limit"}]}]
    answer, _ = shown({**TRY, "POST /v1/comparisons": {"variants": variants}}, moved=["a=1"])
    assert (answer.status, answer.values["problem"]["errors"]) == (422, variants[1]["problems"])
