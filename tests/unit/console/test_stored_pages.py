"""Pages of configurations: what is shown, edited, imported, labelled and brought back."""

from typing import Any

import msgspec
import pytest

from app.base.errors import BadRequest
from app.console import configurations
from app.console import configurations as editing
from app.console import configurations as importing
from app.console.api import ApiError, Reply
from app.formats.ytsaurus.documents import MEDIA_TYPE as YSON
from app.solver.engine import all_facts
from tests.unit.console.visiting import Json, Page, Shown, refused, run

AT = "/v1/configurations/c"
STORED: Json = {"name": "c", "revision": 3, "configuration": {"engine": "kueue", "queues": [{"name": "q"}]}}
ANSWERS: Json = {
    f"GET {AT}": STORED,
    f"GET {AT}/revisions/2": {"revision": 2},
    f"GET {AT}/revisions/3/diff": {"diff": 3},
    f"GET {AT}/revisions/2/diff": {"diff": 2},
    f"GET {AT}/revisions": {"items": [1, 2], "next_cursor": "more"},
    f"GET {AT}/labels": {"items": ["live"]},
    "GET /v1/clusters": {"items": []},
}  # fmt: skip


def test_the_list_is_paged() -> None:
    page = Page({"GET /v1/configurations": {"items": [1], "next_cursor": "x"}})
    shown = run(configurations.configurations(page.visit))
    titles = [facts.title for facts in all_facts()]
    assert shown.values == {"found": [1], "following": "x", "first": True, "titles": titles}
    assert page.queries("/v1/configurations") == [{"cursor": None, "limit": 50}]
    assert run(configurations.configurations(page.visit, "y")).values["first"] is False
    assert page.asked[1].query == {"cursor": "y", "limit": 50}


def test_one_revision_stands_with_its_history() -> None:
    page = Page(ANSWERS)
    shown = run(configurations.configuration(page.visit, "c"))
    assert (shown.template, shown.status, shown.values["stored"], shown.values["diff"]) == (
        "configuration.html", 200, STORED, {"diff": 3},
    )  # fmt: skip
    assert (shown.values["history"], shown.values["following"], shown.values["labels"]) == ([1, 2], "more", ["live"])
    assert (shown.values["current"], shown.values["problem"]) == (3, None)
    assert page.queries(f"{AT}/revisions/3/diff") == [{"against": None}]
    assert page.queries(f"{AT}/revisions") == [{"cursor": None, "limit": 50}]
    assert f"{AT}/revisions/3" not in [one.path for one in page.asked]
    page = Page(ANSWERS)
    shown = run(configurations.configuration(page.visit, "c", 2, 0, "x"))
    assert (shown.values["stored"], shown.values["diff"], shown.values["current"]) == ({"revision": 2}, {"diff": 2}, 3)
    assert page.queries(f"{AT}/revisions/2/diff") == [{"against": 0}]
    assert page.queries(f"{AT}/revisions") == [{"cursor": "x", "limit": 50}]
    assert run(configurations.configuration(Page(ANSWERS).visit, "c", 3)).values["stored"] == STORED


def test_an_export_is_a_file() -> None:
    page = Page({"GET /v1/configurations/a%20b:export": b"kind: x"})
    answer = run(configurations.export(page.visit, "a b"))
    assert (answer.body, answer.media_type) == (b"kind: x", "application/yaml")
    assert answer.headers["content-disposition"] == 'attachment; filename="a%20b.yaml"'
    page = Page({"GET /v1/configurations/t:export": Reply(200, b"{}", {"content-type": YSON})})
    answer = run(configurations.export(page.visit, "t"))
    assert (answer.media_type, answer.headers["content-disposition"]) == (YSON, 'attachment; filename="t.yson"')


@pytest.mark.parametrize(
    ("given", "sent"),
    [("2", "2"), ("999999999", "999999999"), ("1234567890", "0"), ("x", "0"), ("", "0"), ("٣", "0"), ("-1", "0")],
)
def test_a_revision_is_brought_back_as_its_form_says(given: str, sent: str) -> None:
    path = f"{AT}/revisions/{sent}:restore"
    page = Page({f"POST {path}": {}}, fields={"revision": given, "comment": "", "etag": '"e"'})
    assert run(configurations.restore(page.visit, "c")).to == "/configurations/c"
    assert page.asked[0][1:] == (path, {"comment": None}, None, {"If-Match": '"e"'})
    page = Page({f"POST {path}": {}}, fields={"revision": given, "comment": "why"})
    run(configurations.restore(page.visit, "c"))
    assert page.asked[0].query == {"comment": "why"}


def test_what_is_not_brought_back_says_why_on_its_page() -> None:
    page = Page(ANSWERS | {f"POST {AT}/revisions/2:restore": refused(412)}, fields={"revision": "2"})
    shown = run(configurations.restore(page.visit, "c"))
    assert (shown.template, shown.status, shown.values["problem"]["detail"]) == ("confirm.html", 412, "because")
    assert shown.values["fields"] == {"revision": 2, "etag": '"e1"'}, "asked again, about what is in force by now"


def test_a_label_moves_over_what_it_was() -> None:
    path = f"{AT}/labels/live%2Fa"
    for answers, tag in (({f"GET {path}": {}}, '"e1"'), ({}, None)):
        page = Page({**answers, f"PUT {path}": {}}, fields={"label": "live/a", "revision": "2"})
        assert run(configurations.label(page.visit, "c")).to == "/configurations/c"
        assert page.asked[1][2:] == (None, {"revision": 2}, {"If-Match": tag})
    for answers in ({f"GET {path}": refused(403)}, {f"PUT {path}": refused(403)}):
        page = Page({**ANSWERS, **answers}, fields={"label": "live/a", "revision": "2"})
        shown = run(configurations.label(page.visit, "c"))
        assert (shown.status, shown.values["problem"]["status"]) == (403, 403)


def test_editing_begins_with_what_is_stored_or_an_empty_document() -> None:
    page = Page(ANSWERS)
    shown = run(editing.edit(page.visit, "c"))
    edited = shown.values["edited"]
    assert (shown.template, shown.status, shown.values["step"]) == ("edit.html", 200, "edit")
    assert (shown.values["checked"], shown.values["diff"]) == (None, None)
    assert msgspec.json.decode(edited.text) == STORED["configuration"]
    assert (edited.name, edited.queue, edited.etag, edited.comment) == ("c", "", '"e1"', "")
    edited = run(editing.edit(Page().visit, "new")).values["edited"]
    assert (msgspec.json.decode(edited.text), edited.etag) == ({"engine": "kueue", "queues": []}, "")
    assert run(editing.new(Page().visit, "a-b")).to == "/configurations/a-b/edit"
    assert run(editing.new(Page().visit)).to == "/configurations#new", "opened directly"
    with pytest.raises(BadRequest, match="A name has letters"):
        run(editing.new(Page().visit, "a b"))


def test_a_queue_is_edited_by_itself() -> None:
    at = f"{AT}/queues/root%2Fa"
    edited = run(editing.edit_queue(Page({f"GET {at}": {"queue": {"parent": "root"}}}).visit, "c", "root/a")).values
    assert msgspec.json.decode(edited["edited"].text) == {"parent": "root"}
    page = Page(ANSWERS)
    edited = run(editing.edit_queue(page.visit, "c", "root/a")).values["edited"]
    assert msgspec.json.decode(edited.text) == {"quota": {"cpu": {"guaranteed": 0}}}
    assert (edited.etag, edited.place) == ('"e1"', at)
    for answers in ({f"GET {at}": refused(403)}, {f"GET {AT}": refused(404)}):
        with pytest.raises(ApiError):
            run(editing.edit_queue(Page(answers).visit, "c", "root/a"))


NEW: Json = {"engine": "kueue", "queues": [{"name": "q"}, {"name": "r"}]}


def edited(answers: Json, text: Any = NEW, *, htmx: bool = False, **fields: str) -> tuple[Shown, Page]:
    document = text if isinstance(text, str) else msgspec.json.encode(text).decode()
    page = Page(
        ANSWERS | answers, fields={"document": document, **fields}, headers={"hx-request": "true"} if htmx else {}
    )
    return run(editing.edited(page.visit, "c")), page


def test_a_document_is_checked_as_one_types_and_compared_before_it_is_saved() -> None:
    done = {f"PUT {AT}": {"findings": [{"rule": "r"}]}}
    for fields, step in (({}, "edit"), ({"step": "check"}, "edit"), ({"step": "compare"}, "compare")):
        shown, page = edited(done, **fields)
        checked = shown.values["checked"]
        assert (shown.status, shown.values["step"], checked.findings) == (200, step, [{"rule": "r"}])
        assert (checked.problem, checked.current, checked.etag, checked.lost) == (
            None, STORED["configuration"], '"e1"', False,
        )  # fmt: skip
        put = page.asked[0]
        assert (put.query, put.body, put.headers) == ({"dry_run": True}, NEW, {"If-None-Match": "*"})
        assert shown.values["diff"]["queues"].keys() == {"added"}
        assert shown.values["imported"] is None


def test_a_saved_document_leads_back_to_it() -> None:
    shown, page = edited({f"PUT {AT}": {"findings": []}}, step="save", etag='"e"', comment="why")
    assert shown.to == "/configurations/c"
    ((_, _, query, body, headers),) = page.asked
    assert (query, body, headers) == ({"comment": "why"}, NEW, {"If-Match": '"e"'})
    _, page = edited({f"PUT {AT}": {"findings": []}}, step="save")
    assert page.asked[0].query == {"comment": None}


@pytest.mark.parametrize(("status", "lost"), [(412, True), (422, False), (409, False)])
def test_what_is_refused_stays_in_the_form(status: int, lost: bool) -> None:
    why = {f"PUT {AT}": refused(status, findings=[{"rule": "r"}])}
    for step in ("save", "compare", "check"):
        shown, _ = edited(why, step=step)
        checked = shown.values["checked"]
        assert (shown.status, shown.values["step"], checked.lost, checked.findings) == (
            status, "edit", lost, [{"rule": "r"}],
        )  # fmt: skip
        assert (checked.current, checked.etag) == (STORED["configuration"], '"e1"'), "what is there now"
        assert shown.values["diff"] is not None
    shown, _ = edited(why, htmx=True)
    assert shown.status == 200
    shown, _ = edited({f"PUT {AT}": refused(422)})
    assert shown.values["checked"].findings == []


def test_what_is_no_document_is_not_sent() -> None:
    shown, page = edited({}, "{", etag='"e"')
    checked = shown.values["checked"]
    assert (shown.status, shown.values["step"], shown.values["diff"], page.asked) == (422, "edit", None, [])
    assert (checked.problem["title"], checked.problem["errors"]) == ("This is not JSON", [])
    assert (checked.current, checked.etag, checked.lost, checked.findings) == (None, '"e"', False, [])
    for strange in ([1], {"queues": 5}, {"queues": [5]}):
        shown, _ = edited({f"PUT {AT}": refused(422)}, strange)
        assert (shown.status, shown.values["diff"]) == (422, None)


def test_a_queue_is_compared_with_what_it_was() -> None:
    at = f"{AT}/queues/q"
    stored = {f"GET {at}": {"queue": {"parent": "a"}}, f"PUT {at}": {"findings": []}}
    shown, page = edited(stored, {"parent": "b"}, queue="q")
    assert (page.asked[0].path, shown.values["checked"].current) == (at, {"parent": "a"})
    change = {"pointer": "/queues/0/parent", "old": "a", "new": "b"}
    assert shown.values["diff"]["queues"] == {"changed": [{"name": "q", "changes": [change]}]}
    shown, _ = edited({f"PUT {at}": {"findings": []}}, {"parent": "b"}, queue="q")
    assert shown.values["diff"]["queues"].keys() == {"added"}


def test_manifests_become_a_document_to_compare() -> None:
    shown = run(importing.begin(Page().visit, "c"))
    assert (shown.status, shown.values["fields"]) == (200, {"name": "c", "format": "kubernetes"})
    assert "kubernetes" in shown.values["formats"]
    fields = {"name": "c", "format": "kueue", "manifest": "kind: ä"}
    made = {"configuration": NEW, "findings": [{"rule": "import"}]}
    answers = ANSWERS | {"POST /v1/configurations:import": made, f"PUT {AT}": {"findings": []}}
    page = Page(answers, fields=fields)
    shown = run(importing.read(page.visit))
    sent = page.asked[0]
    assert (sent.query, sent.body) == ({"format": "kueue", "lenient": "true"}, "kind: ä".encode())
    assert sent.headers == {"Content-Type": "application/yaml"}
    assert (shown.template, shown.values["step"], shown.values["imported"]) == (
        "edit.html",
        "compare",
        [{"rule": "import"}],
    )
    assert (shown.values["edited"].etag, msgspec.json.decode(shown.values["edited"].text)) == ('"e1"', NEW)
    put = next(one for one in page.asked if one.method == "PUT")
    assert (put.query, put.headers, put.body) == ({"dry_run": True}, {"If-Match": '"e1"'}, NEW)


def test_what_is_no_name_or_no_manifest_says_so() -> None:
    for name in ("", "a/b", "-a"):
        page = Page(fields={"name": name, "manifest": "x"})
        shown = run(importing.read(page.visit))
        assert (shown.template, shown.status, page.asked) == ("import.html", 422, [])
        assert shown.values["problem"]["detail"].startswith("A name has letters")
        assert shown.values["fields"]["manifest"] == "x"
    page = Page({"POST /v1/configurations:import": refused(413)}, fields={"name": "c"})
    shown = run(importing.read(page.visit))
    assert (shown.status, shown.values["problem"]["detail"]) == (413, "because")
    assert (page.asked[0].query, page.asked[0].body) == ({"format": "", "lenient": "true"}, b"")
