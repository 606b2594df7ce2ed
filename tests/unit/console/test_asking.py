"""Asking: what the form changes of a request, and what comes of it."""

from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import msgspec
import pytest

from app.base.errors import BadRequest
from app.console import ask
from app.console.api import ApiError
from app.console.visit import packed, unpacked
from app.console.words import pretty
from tests.unit.console.visiting import Json, Page, Shown, refused, run

ID = UUID(int=7)
QUEUES: list[Json] = [{"name": "q", "quota": {"cpu": {"guaranteed": 1, "limit": 5}}}, {"name": "other"}]
REQUEST: Json = {
    "configuration": {"engine": "kueue", "queues": QUEUES}, "state": {}, "asks": [{"id": "a", "priority": 1}],
}  # fmt: skip
ANSWER: Json = {"decisions": [{"ask": "a", "outcome": "preempt", "victims": [{"workload": "w"}]}]}


def asked(request: Any = REQUEST, answers: Json | None = None, **fields: str) -> tuple[Shown, list[Any]]:
    """The page, and the requests that were decided."""
    text = request if isinstance(request, str) else msgspec.json.encode(request).decode()
    page = Page({"POST /v1/decisions": ANSWER, **(answers or {})}, fields={"request": text, **fields})
    shown = run(ask.asked(page.visit))
    return shown, [one.body for one in page.asked if one.path == "/v1/decisions"]


def test_a_form_to_begin_with_is_the_example_or_a_decisions_request() -> None:
    shown = run(ask.ask(Page().visit))
    assert (shown.template, shown.status, shown.values["answers"], shown.values["problem"]) == (
        "ask.html",
        200,
        [],
        None,
    )
    assert '"queues"' in shown.values["fields"]["request"]
    page = Page({f"GET /v1/decisions/{ID}/request": {"asks": []}})
    assert run(ask.ask(page.visit, ID)).values["fields"] == {"request": '{\n  "asks": []\n}'}
    assert shown.values["engines"] == ["kueue", "yunikorn", "kai", "ytsaurus", "kube-scheduler"]
    assert shown.values["quotas"][0] == "guaranteed"


def test_without_a_change_it_is_decided_once_and_says_why() -> None:
    shown, decided = asked()
    assert decided == [{**REQUEST, "explain": "summary"}]
    assert shown.values["answers"] == [("As it is", ANSWER)]
    assert (shown.status, shown.values["stopping"], shown.values["problem"]) == (200, [{"w"}], None)


@pytest.mark.parametrize(
    ("fields", "changes", "said"),
    [
        ({"engine": "kai"}, {"engine": "kai"}, "rules of kai"),
        ({"priority": " -7 "}, {"asks": [{"id": "a", "priority": -7}]}, "priority -7"),
        (
            {"queue": "q", "resource": "cpu", "field": "limit", "value": "9"},
            {
                "engine": "kueue",
                "configuration": {
                    "engine": "kueue",
                    "queues": [{"name": "q", "quota": {"cpu": {"guaranteed": 1, "limit": "9"}}}, {"name": "other"}],
                },
            },
            "q: limit 9 cpu",
        ),
        (
            {"engine": "kai", "priority": "0", "queue": " q ", "resource": " cpu ", "value": " 2 "},
            {
                "engine": "kai", "asks": [{"id": "a", "priority": 0}],
                "configuration": {
                    "engine": "kueue",
                    "queues": [{"name": "q", "quota": {"cpu": {"guaranteed": "2", "limit": 5}}}, {"name": "other"}],
                },
            },
            "rules of kai, priority 0, q: guaranteed 2 cpu",
        ),
    ],
)  # fmt: skip
def test_one_thing_is_changed_beside_what_is(fields: dict[str, str], changes: Json, said: str) -> None:
    shown, decided = asked(**fields)
    assert decided == [{**REQUEST, "explain": "summary"}, {**REQUEST, **changes, "explain": "summary"}]
    assert [title for title, _ in shown.values["answers"]] == ["As it is", said]


def test_a_stored_configuration_is_read_as_the_request_names_it() -> None:
    stored: Json = {"configuration": {"queues": QUEUES}}
    change = {"queue": "q", "resource": "cpu", "value": "3"}
    for named, path in (
        ("prod", "/v1/configurations/prod"), ("prod@4", "/v1/configurations/prod/revisions/4"),
        ("a b@live", "/v1/configurations/a%20b/revisions/6"),
    ):  # fmt: skip
        answers = {f"GET {path}": stored, "GET /v1/configurations/a%20b/labels/live": {"revision": 6}}
        shown, decided = asked({"configuration": named, "asks": []}, answers, **change)
        assert shown.status == 200, shown
        assert decided[1]["configuration"]["queues"][0]["quota"]["cpu"] == {"guaranteed": "3", "limit": 5}
        assert "engine" not in decided[1], "what is not known is left out"
        assert decided[0]["configuration"] == named


@pytest.mark.parametrize(
    ("request_", "fields", "field", "detail"),
    [
        ("{", {}, "request", "This is not a JSON object: "),
        ("[]", {}, "request", "This is not a JSON object: "),
        (REQUEST, {"priority": "high"}, "priority", "A priority is a whole number."),
        ({**REQUEST, "asks": "pending"}, {"priority": "1"}, "priority", "What is asked for waits beside"),
        ({"asks": []}, {"queue": "q"}, "queue", "The request names no configuration"),
        (REQUEST, {"value": "3"}, "queue", "There is no queue '' in the configuration."),
        (REQUEST, {"queue": "none", "value": "3"}, "queue", "There is no queue 'none'"),
        (REQUEST, {"queue": "q", "resource": "cpu", "field": "name"}, "field", "There is no such field of a quota."),
        (REQUEST, {"queue": "q", "resource": "gpu"}, "resource", "Queue 'q' states no quota of 'gpu'."),
    ],
)
def test_what_can_not_be_read_names_its_field(request_: Any, fields: dict[str, str], field: str, detail: str) -> None:
    shown, decided = asked(request_, **fields)
    problem = shown.values["problem"]
    assert (shown.status, problem["fields"], problem["title"]) == (422, [field], "Invalid input")
    assert problem["detail"].startswith(detail)
    assert decided == []


def test_all_that_is_wrong_is_told_at_once() -> None:
    shown, decided = asked("{", priority="high", queue="q")
    assert shown.values["problem"]["fields"] == ["request", "priority"], (
        "of a quota nothing is known without the request"
    )
    shown, decided = asked(priority="high", queue="q", resource="gpu", field="name")
    assert (shown.values["problem"]["fields"], decided) == (["priority", "field", "resource"], [])
    assert shown.values["problem"]["detail"] == "3 fields are wrong"
    assert [one["parameter"] for one in shown.values["problem"]["errors"]] == ["priority", "field", "resource"]


def test_what_the_service_refuses_stands_on_the_page() -> None:
    shown, _ = asked(answers={"POST /v1/decisions": refused(409)})
    assert (shown.status, shown.values["problem"]["detail"], shown.values["answers"]) == (409, "because", [])
    shown, _ = asked(answers={"POST /v1/decisions": [ANSWER, refused(422)]}, engine="kai")
    assert (shown.status, shown.values["answers"]) == (422, [("As it is", ANSWER)])
    assert shown.values["fields"]["engine"] == "kai"


def test_variants_are_tried_or_say_what_is_wrong() -> None:
    shown = run(ask.compare(Page().visit))
    assert (shown.template, shown.values["found"], shown.values["problem"]) == ("compare.html", None, None)
    assert "variants" in shown.values["text"]
    for answer, text, status, found, detail in (
        ({"x": 1}, "{}", 200, {"x": 1}, None), (refused(409), "{}", 409, None, "because"),
        ({"x": 1}, "", 422, None, "This is not a JSON object: Input data was truncated"),
    ):  # fmt: skip
        page = Page({"POST /v1/comparisons": answer}, fields={"request": text})
        shown = run(ask.compared(page.visit))
        problem = shown.values["problem"]
        assert (shown.status, shown.values["found"], shown.values["text"]) == (status, found, text)
        assert (problem and problem["detail"]) == detail


NOTHING: Json = {"GET /v1/clusters": {"items": []}, "GET /v1/snapshots": {"items": []}}
EMPTY = {"snapshot": "", "configuration": "", "queue": "", "priority": "", "count": "", "waited": ""}


def test_a_plan_asks_with_what_the_form_holds() -> None:
    shown = run(ask.plan(Page(NOTHING).visit, EMPTY))
    assert (shown.template, shown.values["found"], shown.values["problem"]) == ("plan.html", None, None)
    assert "kind: " in shown.values["fields"]["manifest"]
    fields = {"manifest": "m", "cluster": " ", "configuration": "c", "queue": "", "snapshot": " s "}
    page = Page({"POST /v1/plans": {"x": 1}} | NOTHING, fields=fields)
    shown = run(ask.planned(page.visit))
    assert (shown.status, shown.values["found"]) == (200, {"x": 1})
    asked = {"manifest": "m", "configuration": "c", "state": {"snapshot": "s"}, "asks": "pending"}
    assert page.asked[0].body == asked
    page = Page({"POST /v1/plans": refused(413)} | NOTHING, fields={"cluster": "c", "queue": "q"})
    shown = run(ask.planned(page.visit))
    assert page.asked[0].body == {"manifest": "", "cluster": "c", "queue": "q"}
    assert (shown.status, shown.values["found"], shown.values["problem"]["detail"]) == (413, None, "because")


def test_a_few_words_are_an_ask_of_the_flavors_that_exist() -> None:
    group = {"resources": ["gpu"], "flavors": [{"name": "a100"}, {"name": "h100"}]}
    queues = [{"name": "all"}, {"name": "q", "parent": "all", "resource_groups": [group], "quota": {"cpu": {}}}]
    place = {"name": "now", "configuration": {"name": "c", "revision": 2}, "counts": {}}
    answers: Json = {
        "POST /v1/plans": {"x": 1}, "GET /v1/clusters": {"items": [{"name": "east", "snapshot": "now"}]},
        "GET /v1/snapshots": {"items": [place]},
        "GET /v1/configurations/c/revisions/2": {"configuration": {"queues": queues}},
    }  # fmt: skip
    page = Page(answers)
    fields = EMPTY | {"snapshot": "now", "queue": "q", "priority": "-5", "count": "many"}
    shown = run(ask.plan(page.visit, fields, ["cpu", "gpu"], ["", " 2 "], ["", "h100"]))
    task = {"name": "main", "count": "many", "requests": {"gpu": "2"}, "flavors": {"gpu": "h100"}}
    assert page.asked[0].body == {
        "work": [{"id": "my-job", "queue": "q", "priority": -5, "tasks": [task]}],
        "state": {"snapshot": "now"}, "asks": "pending",
    }  # fmt: skip
    assert shown.values["room"] == {"queues": ["q"], "resources": {"cpu": [], "gpu": ["a100", "h100"]}}
    assert shown.values["places"] == [("now", "east")]


def test_a_label_that_is_not_there_is_said() -> None:
    shown, _ = asked({"configuration": "prod@live", "asks": []}, queue="q")
    assert (shown.status, shown.values["problem"]["detail"]) == (404, "because")
    with pytest.raises(ApiError):
        run(ask.ask(Page().visit, ID))


def test_of_a_large_request_only_what_is_asked_for_stands_in_a_box() -> None:
    large = {**REQUEST, "state": {"workloads": [{"id": "w" * 70_000}]}}
    at = f"GET /v1/decisions/{ID}/request"
    shown = run(ask.ask(Page({at: large}).visit, ID)).values
    assert shown["fields"] == {"from": str(ID), "asks": pretty(large["asks"])}
    assert shown["size"] > 70_000
    whole = run(ask.ask(Page({at: {**large, "asks": [{"id": "a" * 70_000}]}}).visit, ID)).values
    assert whole["fields"] == {"from": str(ID)}, "what is as large itself is referred to as well"
    page = Page(
        {at: large, "POST /v1/decisions": ANSWER}, fields={"from": str(ID), "asks": '[{"id": "b"}]', "priority": "3"}
    )
    run(ask.asked(page.visit))
    decided = [one.body for one in page.asked if one.path == "/v1/decisions"]
    assert decided[0] == {**large, "asks": [{"id": "b"}], "explain": "summary"}
    assert decided[1]["asks"] == [{"id": "b", "priority": 3}]
    assert page.queries("/v1/decisions") == [{"purpose": "what-if"}] * 2
    page = Page({at: large}, fields={"from": str(ID), "asks": '[\n{"id": }]'})
    problem = run(ask.asked(page.visit)).values["problem"]
    assert (problem["fields"], problem["detail"]) == (
        ["asks"], "This is not a list of asks: JSON is malformed: invalid character (line 2, column 8)",
    )  # fmt: skip


def test_answers_stand_at_an_address() -> None:
    answers = [{**ANSWER, "id": str(ID)}, {**ANSWER, "id": "x"}]
    shown, _ = asked(answers={"POST /v1/decisions": [*answers]}, engine="kai")
    assert shown.values["address"] == f"/ask?answer={ID}&changed=x&engine=kai"
    shown, _ = asked(answers={"POST /v1/decisions": answers[0]})
    assert shown.values["address"] == f"/ask?answer={ID}"
    record = {"id": str(ID), "answer": ANSWER}
    page = Page({f"GET /v1/decisions/{ID}": record, f"GET /v1/decisions/{ID}/request": REQUEST})
    shown = run(ask.ask(page.visit, None, ID, ID, {"engine": "kai"}))
    assert shown.values["answers"] == [("As it is", answers[0]), ("rules of kai", answers[0])]
    assert shown.values["fields"]["engine"] == "kai"
    for post, get, name in ((ask.compared, ask.compare, "request"), (ask.planned, ask.plan, "manifest")):
        given: Json = {"POST /v1/comparisons": {"x": 1}, "POST /v1/plans": {"x": 1}} | NOTHING
        page = Page(given, fields={name: '{"a": "\u00e9"}'})
        sent = run(post(page.visit)).values["address"]
        (packed,) = parse_qs(urlsplit(sent).query)["asked"]
        again = Page(given)
        shown = run(get(again.visit, asked=packed) if name == "request" else get(again.visit, EMPTY, asked=packed))
        assert again.asked[0].body == page.asked[0].body
        assert shown.values["address"] == sent
        noise = "".join(chr(0x4E00 + (i * i) % 20_000) for i in range(9000))
        long = run(post(Page(given, fields={name: f'{{"a": "{noise}"}}'}).visit))
        assert (long.status, long.values["address"]) == (200, None)


@pytest.mark.parametrize("text", ["x", "====", str(packed("whole"))[:-3]])
def test_an_address_that_was_cut_says_so(text: str) -> None:
    with pytest.raises(BadRequest):
        unpacked(text)


def test_an_address_holds_no_more_than_a_megabyte() -> None:
    bomb = packed("0" * (2 << 20))
    assert bomb is not None
    with pytest.raises(BadRequest):
        unpacked(bomb)


@pytest.mark.parametrize(
    ("text", "place"), [('{\n "a": x}', "line 2, column 7"), ('{"\u00e9": \n 1 2}', "line 2, column 4")]
)
def test_what_is_wrong_with_json_has_a_line_and_a_column(text: str, place: str) -> None:
    with pytest.raises(ask.Malformed) as found:
        ask.document(text, "request")
    assert found.value.document()["detail"].endswith(f"({place})")
