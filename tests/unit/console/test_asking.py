"""Asking: what the form changes of a request, and what comes of it."""

from typing import Any
from uuid import UUID

import msgspec
import pytest

from app.console import ask, planning
from app.console.api import Refused
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
        (REQUEST, {"queue": "q", "field": "name"}, "field", "There is no such field of a quota."),
        (REQUEST, {"queue": "q", "resource": "gpu"}, "resource", "Queue 'q' states no quota of 'gpu'."),
    ],
)
def test_what_can_not_be_read_names_its_field(request_: Any, fields: dict[str, str], field: str, detail: str) -> None:
    shown, decided = asked(request_, **fields)
    problem = shown.values["problem"]
    assert (shown.status, problem["field"], problem["title"]) == (422, field, "Invalid input")
    assert problem["detail"].startswith(detail)
    assert decided == []


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
    shown = run(planning.plan(Page(NOTHING).visit, EMPTY))
    assert (shown.template, shown.values["found"], shown.values["problem"]) == ("plan.html", None, None)
    assert "kind: " in shown.values["fields"]["manifest"]
    fields = {"manifest": "m", "cluster": " ", "configuration": "c", "queue": "", "snapshot": " s "}
    page = Page({"POST /v1/plans": {"x": 1}} | NOTHING, fields=fields)
    shown = run(planning.planned(page.visit))
    assert (shown.status, shown.values["found"]) == (200, {"x": 1})
    asked = {"manifest": "m", "configuration": "c", "state": {"snapshot": "s"}, "asks": "pending"}
    assert page.asked[0].body == asked
    page = Page({"POST /v1/plans": refused(413)} | NOTHING, fields={"cluster": "c", "queue": "q"})
    shown = run(planning.planned(page.visit))
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
    shown = run(planning.plan(page.visit, fields, ["cpu", "gpu"], ["", " 2 "], ["", "h100"]))
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
    with pytest.raises(Refused):
        run(ask.ask(Page().visit, ID))
