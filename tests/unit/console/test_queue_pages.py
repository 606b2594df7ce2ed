"""Pages of queues: which are shown, and what uses them."""

import pytest

from app.console import queues
from app.console.queues import Lent, Listed, Use, lent, uses
from app.console.situation import Cell, queues_of
from app.solver.engine import facts_of
from tests.unit.console.visiting import Json, Page, refused, run

WORDS = facts_of("kai").entitlement
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
    assert [line.cell for line in found["lines"]["root"]] == [Cell("cpu"), Cell("memory")]
    ((cell, use),) = found["lines"]["b"]
    assert (cell, use.used, use.promised, use.above) == (Cell("cpu"), 3, 1, 2)
    assert [one.use for one in found["lines"]["root"]] == [None, None]
    assert (found["lines"]["A"], found["words"], found["problem"], found["way"]) == ([], WORDS, None, [])
    assert (found["limits"], found["borrowing"], found["lending"]) == (True, False, False)
    assert found["lent"] == [Lent("root", Cell("cpu"), [("b", 2)], [])]
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
        ({"sort": "-share", "snapshot": "s"}, ["deep", "b", "root", "deeper", "A"]),
        ({"sort": "uses", "snapshot": "s"}, ["b", "root", "deep", "deeper", "A"]),
        ({"sort": "-below"}, ["root", "b", "deep", "deeper", "A"]),
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
    assert [str(line.cell) for line in shown(page)["lines"]["q"]] == list(many)


def test_without_the_scope_or_an_answer_it_says_why_nothing_is_used() -> None:
    found = shown(Page(ANSWERS, scopes=("read",)), snapshot="s")
    assert (found["problem"], found["shares"], found["lent"], found["words"]) == (
        "What a snapshot uses is a question: that needs scope decide.", {}, [], None,
    )  # fmt: skip
    found = shown(Page({**ANSWERS, "POST /v1/shares": refused(404)}), snapshot="s")
    assert (found["problem"], found["lent"]) == ("because", [])
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
    "GET /v1/clusters": {"items": [{"name": "here", "configuration": "c"}, {"name": "there", "configuration": "d"}]},
    "GET /v1/clusters/here/use": {
        "usage": [{"resource": "cpu"}], "waiting": [{"resource": "gpu"}, {"resource": "cpu"}],
    },
}  # fmt: skip


def test_one_queue_has_its_settings_and_what_runs_and_waits_below_it() -> None:
    page = Page(QUEUE)
    found = run(queues.queue(page.visit, "c", "b", "s/1")).values
    assert found["settings"] == [("weight", 2, "here"), ("limit", 3, "here"), ("order", "fifo", "default")]
    assert ([one["id"] for one in found["running"].rows], found["waiting"].rows) == (
        ["w"],
        [{"id": "a", "queue": "deeper"}],
    )
    assert found["requested"](found["running"].rows[0]) == {Cell("cpu"): 1.5}
    assert found["requested"]({}) == {}
    assert ([one.name for one in found["way"]], found["one"].name, found["document"]) == (["root", "b"], "b", {"x": 1})
    assert (found["words"], found["used"][0].above, found["untold"], found["problem"]) == (
        WORDS,
        2,
        None,
        None,
    )
    assert (found["lately"], found["snapshots"], found["snapshot"]) == (["d"], ["s"], "s/1")
    assert page.queries("/v1/decisions") == [{"queue": "b", "limit": 10}]
    assert page.queries("/v1/clusters/here/use") == [{"queue": "b", "points": 1}]
    charts = [(name, f"/clusters/here/use.json?queue=b&resource={name}") for name in ("cpu", "gpu")]
    assert found["clusters"] == [("here", charts)], "of the other the configuration is another"
    assert next(one.body for one in page.asked if one.path.endswith("settings")) == {"configuration": "c"}
    found = run(queues.queue(Page(QUEUE).visit, "c", "deeper")).values
    assert found["settings"] == [("weight", 2, "b")], "it is stated two queues up"
    assert (found["running"].rows, found["waiting"].rows, found["used"], found["words"]) == ([], [], [], None)


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


def test_what_runs_is_sorted_before_it_is_paged() -> None:
    many = [
        {
            "id": f"w{i:03}", "queue": "b", "priority": i % 7,
            "tasks": [{"name": "t", "requests": {"cpu": i, "gpu": 400 - i}}],
        }
        for i in range(250)
    ]  # fmt: skip
    page = Page({**QUEUE, "GET /v1/snapshots/s%2F1/state": {"workloads": many}})

    def first(sort: str, number: int = 1) -> str:
        found = run(queues.queue(page.visit, "c", "b", "s/1", Listed(sort, number, 1))).values["running"]
        assert found.total == 250
        return found.rows[0]["id"]

    assert (first(""), first("", 2), first("-name"), first("-priority")) == ("w000", "w200", "w249", "w006")
    assert first("-holds") == "w249", "by what the queue is promised, not by what else they hold"
    assert first("since") == "w000"


def test_siblings_lend_one_another_by_flavor() -> None:
    flavors = {
        "spot": {"cpu": {"fair_share": 4, "usage": 6, "borrowed": 2, "lendable": 0}},
        "own": {
            "cpu": {"fair_share": 4, "usage": 1, "borrowed": 0, "lendable": 3}, "gpu": {"fair_share": 0, "usage": 0},
        },
    }  # fmt: skip
    found = uses("kueue", {"flavors": flavors, "fair_share": {"cpu": 8}, "usage": {"cpu": 7}, "borrowed": {"cpu": 2}})
    assert [(one.flavor, one.used, one.above, one.unused) for one in found] == [("spot", 6, 2, 0), ("own", 1, 0, 3)]
    tree = queues_of({"queues": [{"name": "root"}, *({"name": n, "parent": "root"} for n in "abc")]})
    lender, larger = Use("cpu", 0, 4, 0, None, 1, "spot"), Use("cpu", 0, 4, 0, None, 4, "spot")
    assert lent(tree, {"a": found, "b": [lender], "c": [larger], "root": found}) == [
        Lent("root", Cell("cpu", "spot"), [("a", 2)], [("c", 4), ("b", 1)]),
    ]
    assert lent(tree, {"b": [lender]}) == [], "nobody borrows"
