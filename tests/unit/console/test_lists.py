"""Pages that list: decisions, histories, clusters, simulations, the overview."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from app.base.errors import NotInstalled
from app.console import clusters, decisions, exposures, overview, simulations
from app.console.api import ApiError
from app.console.pictures import levels_drawn, pictures_of, plot, queue_drawn, waits_drawn
from tests.support.instead import Instead
from tests.unit.console.visiting import Json, Page, refused, run

ID = UUID(int=7)
NONE = {
    "engine": "",
    "outcome": "",
    "configuration": "",
    "queue": "",
    "ask": "",
    "workload": "",
    "actor": "",
    "purpose": "",
}


def about(**filters: str) -> tuple[Any, Any]:
    names = ("engine", "outcome", "configuration", "queue", "ask", "workload", "actor")
    return decisions._filters(**{name: filters.get(name, "") for name in names}), decisions._span(  # pyright: ignore
        filters.get("since", ""), filters.get("until", "")
    )


def test_decisions_are_filtered_as_the_form_says() -> None:
    page = Page({"GET /v1/decisions": {"items": [1], "next_cursor": "n&x"}})
    shown = run(decisions.decisions(page.visit, *about(ask=" a ", queue="q", since="2026-03-02T09:30"), "c"))
    wanted = {"queue": "q", "ask": "a", "since": "2026-03-02T09:30:00Z"}
    assert page.asked[0].query == {**wanted, "cursor": "c", "limit": 50}
    assert (shown.template, shown.status, shown.values["found"]) == ("decisions.html", 200, [1])
    assert (shown.values["filtered"], shown.values["first"], shown.values["faults"]) == (True, False, {})
    assert shown.values["following"] == "/decisions?queue=q&ask=a&since=2026-03-02T09%3A30%3A00Z&cursor=n%26x"
    assert shown.values["filters"] == {**NONE, **wanted, "until": ""}
    page = Page({"GET /v1/decisions": {"items": []}})
    shown = run(decisions.decisions(page.visit, *about()))
    assert page.asked[0].query == {"cursor": None, "limit": 50}
    assert (shown.values["filtered"], shown.values["first"], shown.values["following"]) == (False, True, None)
    moments = [about(until=text)[1]["until"] for text in (" 2026-03-02T09:30:07 ", "2026-03-02T09:30:07Z", "soon")]
    assert moments == ["2026-03-02T09:30:07Z", "2026-03-02T09:30:07Z", "soon"]


@pytest.mark.parametrize("status", [400, 422])
def test_a_filter_that_is_refused_is_marked(status: int) -> None:
    why = refused(status, errors=[{"parameter": "since", "detail": "no moment"}, {"detail": "x"}])
    shown = run(decisions.decisions(Page({"GET /v1/decisions": why}).visit, *about(since="soon")))
    assert (shown.status, shown.values["found"], shown.values["faults"]) == (
        status, [], {"since": "no moment", None: "x"},
    )  # fmt: skip
    with pytest.raises(ApiError):
        run(decisions.decisions(Page({"GET /v1/decisions": refused(403)}).visit, *about()))


def test_why_is_asked_of_one_workload() -> None:
    nowhere: Json = {"GET /v1/shadow": {"items": []}, "GET /v1/clusters": {"items": []}, "GET /v1/find": {"items": []}}
    page = Page({"GET /v1/workloads/a%2Fb/history": {"items": [1], "next_cursor": "n"}})
    shown = run(exposures.why(page.visit, " a/b ", "c"))
    assert page.asked[0].query == {"limit": 50, "cursor": "c"}
    assert (shown.values["workload"], shown.values["found"]["items"]) == ("a/b", [1])
    assert shown.values["following"] == "/why?workload=a%2Fb&cursor=n"
    page = Page({"GET /v1/workloads/a/history": {"items": []}} | nowhere)
    shown = run(exposures.why(page.visit, "a"))
    assert (page.asked[0].query["cursor"], shown.values["following"], shown.values["happened"]) == (None, None, [])
    page = Page()
    shown = run(exposures.why(page.visit, "  "))
    assert (page.asked, shown.values["found"], shown.values["following"]) == ([], {"items": []}, None)


def test_why_tells_what_followers_saw_and_each_preemption_once() -> None:
    compared = [
        {"id": "s1", "cluster": "east", "seen_at": "2026-03-02T09:00:00Z", "ask": "x", "outcome": "agreed",
         "observed": []},
        {"id": "s2", "cluster": "gone", "seen_at": "2026-03-02T08:00:00Z", "ask": "y", "outcome": "differs",
         "observed": [{"workload": "a", "reason": "r"}]},
    ]  # fmt: skip
    seen = {"id": "e1", "at": "2026-03-02T09:00:01Z", "shadow": "s1"}
    page = Page({
        "GET /v1/workloads/a/history": {"items": []}, "GET /v1/shadow": {"items": compared},
        "GET /v1/clusters": {"items": [{"name": "east"}]}, "GET /v1/clusters/gone/evictions": {"items": []},
        "GET /v1/clusters/east/evictions": {"items": [seen]},
    })  # fmt: skip
    shown = run(exposures.why(page.visit, "a"))
    assert [one.get("shadow") for one in shown.values["happened"]] == ["s1", "s2"]
    assert (shown.values["happened"][1]["reason"], shown.values["nearest"]) == ("r", [])
    assert page.queries("/v1/clusters/east/evictions") == [
        {"workload": "a", "limit": 20}, {"job": "a", "limit": 20},
    ]  # fmt: skip


def test_clusters_and_what_was_really_stopped() -> None:
    answers = {"GET /v1/clusters": {"items": ["c"]}, "GET /v1/shadow": {"items": [1], "next_cursor": "n"}}
    page = Page(answers)
    shown = run(decisions.clusters(page.visit, "differs", "x"))
    assert page.queries("/v1/shadow") == [{"outcome": "differs", "cursor": "x", "limit": 50}]
    assert (shown.values["clusters"], shown.values["found"], shown.values["outcome"]) == (["c"], [1], "differs")
    assert shown.values["following"] == "/clusters?outcome=differs&cursor=n#real"
    page = Page(answers | {"GET /v1/shadow": {"items": []}})
    shown = run(decisions.clusters(page.visit))
    assert page.queries("/v1/shadow") == [{"outcome": None, "cursor": None, "limit": 50}]
    assert shown.values["following"] is None
    answer = run(decisions.preemption_request(Page({f"GET /v1/shadow/{ID}/request": b"{}"}).visit, ID))
    assert (answer.body, answer.media_type) == (b"{}", "application/json")
    assert answer.headers["content-disposition"] == 'attachment; filename="request.json"'


def test_what_a_cluster_used_is_drawn_by_flavor() -> None:
    used: Json = {
        "at": ["1970-01-01T00:05:00Z", "1970-01-01T00:10:00Z"],
        "usage": [{"resource": "cpu", "values": [1, 2]}, {"resource": "cpu", "flavor": "spot", "values": [3, 4]}],
        "waiting": [{"resource": "cpu", "values": [0, 5]}],
    }
    page = Page({"GET /v1/clusters/c/use": used})
    drawn = msgspec.json.decode(run(clusters.use(page.visit, "c", "cpu", "q")).body)
    assert page.queries("/v1/clusters/c/use") == [{"queue": "q", "resource": "cpu"}]
    assert (drawn["x"], drawn["unit"]) == ([300, 600], "cpu")
    assert [(one["label"], one["values"], one.get("dash", False)) for one in drawn["series"]] == [
        ("used", [1, 2], False), ("in spot", [3, 4], False), ("waits", [0, 5], True),
    ]  # fmt: skip
    assert clusters.uses_of("c", used, "a b") == [("cpu", "/clusters/c/use.json?queue=a+b&resource=cpu")]
    assert clusters.uses_of("c", {"usage": [], "waiting": []}) == []


def test_what_is_used_of_nodes() -> None:
    assigned = {
        "levels": ["kubernetes.io/hostname"],
        "domains": [{"values": ["h1"], "count": 2}, {"values": ["h2"], "count": 1}, {"values": ["gone"], "count": 1}],
    }
    racks = {"levels": ["rack"], "domains": [{"values": ["r1"], "count": 2}]}
    tasks: list[Json] = [
        {"name": "a", "requests": {"cpu": "1500m"}, "node": "n1", "count": 2},
        {"name": "b", "requests": {"cpu": 1}, "node": "n1", "state": "succeeded"},
        {"name": "c", "requests": {"cpu": 1}, "node": "n1", "state": "preempted"},
        {"name": "d", "requests": {"cpu": 1, "gpu": 1}, "count": 4, "topology_assignment": assigned},
        {"name": "e", "requests": {"cpu": 1}, "count": 2, "topology_assignment": racks},
        {"name": "f", "requests": {"cpu": 1}},
    ]
    nodes: list[Json] = [
        {"name": "n1", "capacity": {"cpu": 8}, "labels": {"kubernetes.io/hostname": "h1", "rack": "r1"}},
        {"name": "n2", "capacity": {"cpu": 8}, "labels": {"kubernetes.io/hostname": "h2"}, "occupied": {"cpu": 0.5}},
    ]
    state = {"nodes": nodes, "workloads": [{"id": "w", "queue": "q", "tasks": tasks}]}
    answers: Json = {
        "GET /v1/clusters": {"items": []}, "GET /v1/snapshots": {"items": []}, "GET /v1/snapshots/s/state": state,
    }  # fmt: skip

    def at(**wanted: str) -> dict[str, str]:
        every = ("snapshot", "find", "label", "value", "node", "sort")
        return {**dict.fromkeys(every, ""), "snapshot": "s", **wanted}

    shown = run(clusters.nodes(Page(answers).visit, at(node="n1"))).values
    assert [(one.name, uses) for one, uses in shown["nodes"].rows] == [
        ("n1", [{"resource": "cpu", "used": 6, "promised": 8}]),
        ("n2", [{"resource": "cpu", "used": 1.5, "promised": 8}]),
    ]
    assert [(one.id, held) for one, held in shown["here"].rows] == [("w", {"cpu": 6, "gpu": 2})]
    fullest = run(clusters.nodes(Page(answers).visit, at(sort="-use"))).values["nodes"].rows
    assert [one.name for one, _ in fullest] == ["n1", "n2"]
    least = run(clusters.nodes(Page(answers).visit, at(sort="use"))).values["nodes"].rows
    assert [one.name for one, _ in least] == ["n2", "n1"]
    groups = run(clusters.nodes(Page(answers).visit, at(label="rack"))).values["groups"].rows
    assert [(one["value"], one["nodes"], one["uses"][0]["used"]) for one in groups] == [("r1", 1, 6), ("", 1, 1.5)]


def test_simulations_say_which_are_active() -> None:
    page = Page({"GET /v1/simulations": {"items": [1], "next_cursor": "n"}})
    shown = run(simulations.simulations(page.visit))
    assert page.asked[0].query == {"cursor": None, "limit": 50}
    assert (shown.values["found"], shown.values["following"], shown.values["first"]) == ([1], "n", True)
    assert shown.values["active"] == ("queued", "running")
    assert run(simulations.simulations(page.visit, "c")).values["first"] is False
    assert page.asked[1].query["cursor"] == "c"


def loop(*pairs: tuple[str | None, str]) -> Json:
    return {"evictions": [{"by": by, "job": job} for by, job in pairs]}


def test_a_run_shows_its_queues_and_first_loops() -> None:
    variants: list[Json] = [
        {"name": "a", "summary": {"queues": {"q": 1, "r": 2}, "first_loops": [loop(("x", "y"), (None, "z"))] * 8}},
        {"summary": {"queues": {"r": 1, **{f"s{i}": 1 for i in range(120)}}, "first_loops": [{}]}},
    ]
    answers = {f"GET /v1/simulations/{ID}": {"id": str(ID), "status": "running", "variants": variants}}
    shown = run(simulations.simulation(Page(answers).visit, ID))
    queues = shown.values["queues"]
    assert (queues.rows[:3], len(queues.rows), queues.total, queues.last) == (["q", "r", "s0"], 100, 122, 2)
    assert (shown.values["active"], shown.values["pictures"], shown.values["id"]) == (True, [], str(ID))
    turns = shown.values["turns"]
    assert [one.variant for one in turns] == ["a"] * 6 + [""]
    assert [dot.name for dot in turns[0].dots] == ["x", "y"]
    assert [(edge.source, edge.to) for edge in turns[0].edges] == [("x", "y")]
    assert (turns[6].dots, turns[6].edges) == ([], [])
    shown = run(simulations.simulation(Page(answers).visit, ID, 2, "a"))
    assert (shown.values["queues"].number, shown.values["drawn"]) == (2, "a")
    shown = run(simulations.simulation(Page({f"GET /v1/simulations/{ID}": {"status": "failed"}}).visit, ID))
    assert (shown.values["active"], shown.values["variants"], shown.values["turns"]) == (False, [], [])


def test_one_that_is_stopped_is_shown_until_it_is_forgotten() -> None:
    at = f"/v1/simulations/{ID}"
    page = Page({f"DELETE {at}": {}, f"GET {at}": {"status": "cancelled"}})
    assert run(simulations.stop(page.visit, ID)).to == f"/simulations/{ID}"
    assert [one.method for one in page.asked] == ["DELETE", "GET"]
    assert run(simulations.stop(Page({f"DELETE {at}": {}}).visit, ID)).to == "/simulations"


@pytest.mark.parametrize("kind", ["events", "rounds", "jobs"])
def test_lines_come_two_hundred_at_a_time(kind: str) -> None:
    at = f"/v1/simulations/{ID}"
    for count, more in ((0, False), (200, False), (201, True)):
        page = Page({f"GET {at}": {"x": 1}, f"GET {at}/{kind}": b'{"n":1}\n' * count})
        shown = run(getattr(simulations, kind)(page.visit, ID, "", 5))
        assert page.queries(f"{at}/{kind}") == [{"variant": None, "from": 5, "limit": 201}]
        assert (len(shown.values["lines"]), shown.values["more"]) == (min(count, 200), more)
        assert (shown.values["kind"], shown.values["first"], shown.values["size"]) == (kind, 5, 200)
        assert (shown.values["variant"], shown.values["found"]) == ("", {"x": 1})
    shown = run(getattr(simulations, kind)(page.visit, ID, "v"))
    assert (page.asked[-1].query["variant"], page.asked[-1].query["from"]) == ("v", 0)
    assert (shown.values["variant"], shown.values["first"]) == ("v", 0)


def test_a_round_is_decided_with_its_reasons() -> None:
    at = f"/v1/simulations/{ID}/rounds/3/request"
    for fields, variant in (({"variant": "v"}, "v"), ({"variant": ""}, None), ({}, None)):
        page = Page({f"GET {at}": {"asks": []}, "POST /v1/decisions": {"id": "d"}}, fields=fields)
        assert run(simulations.decide_round(page.visit, ID, 3)).to == "/decisions/d"
        assert page.queries(at) == [{"variant": variant}]
        assert page.asked[1].body == {"asks": [], "explain": "full"}


def test_a_run_is_begun_with_what_the_form_says() -> None:
    answers: Json = {
        "GET /v1/configurations": {"items": [{"name": "c"}]}, "GET /v1/traces": {"items": [{"name": "t"}]},
        "POST /v1/simulations": {"id": "a/b"},
    }  # fmt: skip
    page = Page(answers)
    shown = run(simulations.simulate(page.visit))
    assert (shown.status, shown.values["names"], shown.values["traces"]) == (200, ["c"], ["t"])
    assert [one.query for one in page.asked] == [{"limit": 500}] * 2
    assert shown.values["problem"] is None
    fields = {"request": '{"x":1}', "configuration": "c", "trace": "", "engine-kai": "on", "engine-kueue": "on"}
    page = Page(answers, fields=fields)
    assert run(simulations.simulated(page.visit)).to == "/simulations/a%2Fb"
    variants = [{"name": name, "engine": name} for name in ("kueue", "kai")]
    assert page.asked[0].body == {"x": 1, "configuration": "c", "variants": variants}
    page = Page(answers, fields={"request": '{"variants":[]}', "trace": "t"})
    run(simulations.simulated(page.visit))
    assert page.asked[0].body == {"variants": [], "trace": "t"}
    for fields, why, status, detail in (
        ({"request": "["}, {"id": "x"}, 422, "This is not a JSON object"),
        ({}, {"id": "x"}, 422, "This is not a JSON object"),
        ({"request": "{}"}, refused(409), 409, "because"),
    ):
        page = Page(answers | {"POST /v1/simulations": why}, fields=fields, scopes=("decide",))
        shown = run(simulations.simulated(page.visit))
        assert (shown.template, shown.status, shown.values["fields"]) == ("simulate.html", status, fields)
        assert shown.values["problem"]["detail"].startswith(detail)
        assert (shown.values["names"], shown.values["traces"]) == ([], []), "who may not read is shown no names"


def test_pictures_lay_variants_over_each_other(instead: Instead) -> None:
    instead("app.console.pictures", require=lambda: None)
    level = {"flavor": "f", "level": "rack"}
    used = {"q": 3, "r s": 5, "idle": 0, "above": 8}
    total: Json = {"utilisation": {"gpu": 0.1, "cpu": 0.5}, "used": {"cpu": 8}}
    queues = {name: {"used": {"cpu": amount, "gpu": 0}} for name, amount in used.items()}
    summaries: list[Json] = [
        {"name": "a b", "summary": {"total": total, "queues": queues}},
        {"name": "c", "summary": {"total": {}, "queues": {"q": {"shortfall": {"gpu": 1}}}, "fragmentation": [level]}},
    ]
    done: Json = {"id": "i", "status": "done", "names": ["a b", "c"], "variants": summaries}
    found = pictures_of(done, None, None)
    assert [(one.title, one.address, one.part) for one in found] == [
        ("Usage over time, all queues together", "/simulations/i/plots/usage.json", False),
        ("Waits for the first start", "/simulations/i/plots/waits.json", False),
        ("Usage over time of q", "/simulations/i/plots/usage.json?name=q", False),
        ("Usage over time of r s", "/simulations/i/plots/usage.json?name=r+s", False),
        ("Free over time, f: rack", "/simulations/i/plots/fragmentation.json?name=f%3A+rack", False),
        ("Evictions by a b", "/simulations/i/plots/evictions?variant=a+b", True),
    ]
    assert [one.file for one in found[:2]] == [
        "/simulations/i/plots/usage.svg?variant=a+b",
        "/simulations/i/plots/waits.svg",
    ]
    assert pictures_of(done, "c", None)[-1].file == "/simulations/i/plots/evictions.svg?variant=c"
    assert [(one.title, one.address, one.file) for one in pictures_of(done, None, "q")] == [
        ("q: cpu over time", "/simulations/i/plots/queue.json?name=q&resource=cpu", ""),
        ("q: gpu over time", "/simulations/i/plots/queue.json?name=q&resource=gpu", ""),
    ]
    assert pictures_of({**done, "status": "running"}, None, None) == []
    alone = pictures_of({"id": "i", "status": "done", "variants": [{"summary": {"total": {}}}]}, None, None)
    assert [one.address for one in alone] == [
        "/simulations/i/plots/usage.json", "/simulations/i/plots/waits.json", "/simulations/i/plots/evictions",
    ]  # fmt: skip

    def missing() -> None:
        raise NotInstalled("no extra")

    instead("app.console.pictures", require=missing)
    assert [one.file for one in pictures_of(done, None, None)] == [""] * 6


def test_curves_of_variants_stand_on_one_clock() -> None:
    def told(at: list[float], usage: list[float], guarantee: list[float]) -> Json:
        return {"resource": "cpu", "at": at, "panels": [{"name": "q", "usage": usage, "guarantee": guarantee}]}

    found = {
        "a": told([0, 10, 20], [1, 2], [4, 4]),
        "b": told([0, 20, 40], [3, 5], [4, 4]),
        "c": told([0, 20, 40], [0, 0], [6, 6]),
    }
    drawn = levels_drawn(found, "q", "usage")
    assert (drawn["x"], drawn["unit"], drawn["of"]) == ([0, 20], "cpu", "time")
    assert [(one["label"], one["values"], one.get("dash", False)) for one in drawn["series"]] == [
        ("a: used", [1, None], False), ("a: guaranteed", [4, None], True), ("b: used", [3, 5], False),
        ("b: guaranteed", [4, 4], True), ("c: used", [0, 0], False), ("c: guaranteed", [6, 6], True),
    ]  # fmt: skip
    alone = levels_drawn({"the run": found["a"]}, "q", "usage")
    assert [one["label"] for one in alone["series"]] == ["used", "guaranteed"]
    assert levels_drawn(found, "nobody", "usage")["series"] == []


def test_what_a_queue_used_and_wanted_is_drawn_by_variant() -> None:
    def told(usage: list[float], demand: list[float]) -> Json:
        at = ["2026-03-01T00:00:00Z", "2026-03-01T00:00:10Z", "2026-03-01T00:00:30Z"]
        return {"at": at, "resources": {"cpu": {"usage": usage, "demand": demand, "guarantee": [20, 40]}}}

    drawn = queue_drawn({"a": told([10, 20], [10, 60]), "unused": told([0, 40], [10, 40])}, "cpu")
    assert [one - drawn["x"][0] for one in drawn["x"]] == [0, 10]
    assert [(one["label"], one["values"], one.get("dash", False)) for one in drawn["series"]] == [
        ("a: used", [1, 1], False), ("a: guaranteed", [2, 2], True), ("unused: used", [0, 2], False),
        ("a: wanted", [1, 3], False), ("unused: wanted", [1, 2], False),
    ]  # fmt: skip
    nothing = queue_drawn({"the run": told([1, 2], [1, 2])}, "gpu")["series"]
    assert [one["values"] for one in nothing] == [[0, 0]] * 3


def test_waits_are_drawn_by_the_share_of_jobs() -> None:
    one: Json = {"lines": {"all queues": [0.0, 5.0, 10.0], "q": [5.0]}}
    drawn = waits_drawn({"the run": one})
    assert (drawn["x"][0], drawn["x"][-1], drawn["unit"], drawn["of"]) == (0, 100, "seconds", "share")
    assert [(s["label"], s["values"][0], s["values"][50], s["values"][100]) for s in drawn["series"]] == [
        ("all queues", 0.0, 5.0, 10.0), ("q", 5.0, 5.0, 5.0),
    ]  # fmt: skip
    both = waits_drawn({"a": one, "b": {"lines": {"all queues": []}}})
    assert [(s["label"], s["values"][100]) for s in both["series"]] == [("a", 10.0), ("b", None)]


def test_a_picture_is_sent_once_to_each_browser() -> None:
    at = f"/v1/simulations/{ID}"
    page = Page({f"GET {at}": {}, f"GET {at}/plots/usage.svg": b"<svg/>"})
    answer = run(plot(page.visit, ID, "usage", "v"))
    assert (answer.body, answer.media_type, answer.status_code) == (b"<svg/>", "image/svg+xml", 200)
    assert answer.headers["cache-control"] == "private, no-cache"
    assert page.queries(f"{at}/plots/usage.svg") == [{"variant": "v"}]
    tag = answer.headers["etag"]
    again = Page({f"GET {at}": {}}, headers={"if-none-match": tag})
    answer = run(plot(again.visit, ID, "usage", "v"))
    assert (answer.status_code, answer.body, answer.headers["etag"]) == (304, b"", tag)
    other = Page({f"GET {at}": {}, f"GET {at}/plots/usage.svg": b"<svg/>"}, headers={"if-none-match": tag})
    assert run(plot(other.visit, ID, "usage", None)).status_code == 200
    assert len(tag) == 34
    with pytest.raises(ApiError):
        run(plot(Page(headers={"if-none-match": tag}).visit, ID, "usage", "v"))


def test_the_overview_counts_what_schedulers_asked() -> None:
    start = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
    intervals = [
        {"at": (start + timedelta(minutes=i)).isoformat(), "outcomes": outcomes}
        for i, outcomes in enumerate([{"admit": 700}, {"preempt": 2, "wait": 1}, {"admit": 1}])
    ]
    stops = [
        {"by": "high", "queue": "low", "reason": "r", "times": 2},
        {"by": "high", "queue": "low", "reason": "s", "times": 1},
        {"by": "", "queue": "low", "reason": "r", "times": 3},
    ]  # fmt: skip
    answers: Json = {
        "GET /v1/configurations": {"items": [{"name": f"c/{i}"} for i in range(31)]},
        **{f"GET /v1/configurations/c%2F{i}/labels": {"items": [i]} for i in range(31)},
        "GET /v1/snapshots": {"items": ["s"]},
        "GET /v1/decisions:counts": {"decisions": 703, "evictions": 6, "intervals": intervals, "stops": stops},
    }
    page = Page(answers)
    shown = run(overview.overview(page.visit)).values
    assert shown["labels"] == {f"c/{i}": [i] for i in range(30)}
    assert page.queries("/v1/decisions:counts") == [{"purpose": "decision"}]
    assert shown["outcomes"] == {"admit": 701, "preempt": 2, "wait": 1, "infeasible": 0}
    assert shown["reasons"] == {"r": 5, "s": 1}
    assert {(edge.source, edge.to): edge.times for edge in shown["edges"]} == {("high", "low"): 3, ("?", "low"): 3}
    assert [one["values"] for one in shown["series"]["series"]][:2] == [[700, 0, 1], [0, 2, 0]]
    assert not any(one.path.startswith("/v1/decisions/") for one in page.asked)


def test_lines_of_who_is_next_are_sorted_over_all_pages() -> None:
    lines = [{"workload": f"w{i:03}", "queue": "ba"[i % 2], "priority": i % 7, "standing": "safe"} for i in range(250)]
    found = {"status": "done", "outcome": {"exposures": lines}}
    page = Page({f"GET /v1/exposures/{ID}": found})

    def first(sort: str, number: int = 1) -> tuple[int, str]:
        values = run(exposures.exposures(page.visit, ID, page=number, sort=sort)).values
        rank, one = values["lines"].rows[0]
        assert values["lines"].total == 250
        return rank, one["workload"]

    assert (first(""), first("", 2), first("-name")) == ((1, "w000"), (101, "w100"), (250, "w249"))
    assert (first("queue"), first("-priority"), first("nothing")) == ((2, "w001"), (7, "w006"), (1, "w000"))
