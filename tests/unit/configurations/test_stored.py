"""Configurations, their labels and their queues on a database, without HTTP: what each write leaves behind."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import pytest
from sqlalchemy.orm import Session

from app.auth import audit
from app.base.decoding import convert
from app.base.errors import ArbiterError, BadInput, Conflict, NotFound, PreconditionFailed, PreconditionRequired
from app.configurations import queues
from app.configurations import service as writing
from app.configurations.queues import Queues, read_queue
from app.configurations.repository import Writes, changed, horizon
from app.configurations.revisions import Labels
from app.configurations.router import Administration
from app.configurations.service import Configurations, Editor, Intent, Pin, drafted, etag
from app.db.database import Database
from app.http.openapi import Preconditions
from app.solver.delta import digest
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.problems import Finding, InvalidInput, Problem, listed
from tests.support.instead import Instead

Result = TypeVar("Result")
FREE = Preconditions(None, None)
ANY = Preconditions(("*",), None)
NEW = Preconditions(None, ("*",))


def document(*names: str, **more: Any) -> dict[str, Any]:
    return {"engine": "kai", "queues": [{"name": name, **more} for name in names]}


class Bench:
    """What is stored; ``told``: what the audit log was told."""

    def __init__(self, database: Database, patch: pytest.MonkeyPatch) -> None:
        self.database = database
        self.stored = Configurations(database, 1 << 20)
        self.stored.heads.expect()
        self.editor = Editor(self.stored)
        self.labels = Labels(database, self.stored)
        self.queues = Queues(self.stored, self.editor)
        self.told: list[tuple[str, str, dict[str, Any]]] = []
        Instead(patch)(audit, record=lambda _, action, subject, detail: self.told.append((action, subject, detail)))

    def within(self, act: Callable[[Session], Result]) -> Result:
        with self.database.session() as session:
            return act(session)

    def put(self, given: dict[str, Any], conditions: Preconditions = FREE, name: str = "prod", **more: Any) -> Any:
        draft = drafted(convert(given, Configuration), None)
        return self.within(lambda s: self.editor.put(s, name, draft, Intent(conditions, **more)))

    def delete(self, conditions: Preconditions = ANY, name: str = "prod") -> None:
        self.within(lambda s: self.editor.delete(s, name, conditions))

    def restore(self, revision: int, conditions: Preconditions = FREE, **more: Any) -> Any:
        return self.within(lambda s: self.editor.restore(s, "prod", revision, Intent(conditions, **more)))

    def move(self, label: str, revision: int, conditions: Preconditions = FREE, comment: str | None = None) -> Any:
        return self.within(lambda s: self.labels.move(s, "prod", label, revision, conditions, comment))

    def take_off(self, label: str, conditions: Preconditions = ANY) -> None:
        self.within(lambda s: self.labels.take_off(s, "prod", label, conditions))

    def queue(self, conditions: Preconditions = ANY, **fields: Any) -> Any:
        queue, intent = convert(fields, Queue), Intent(conditions)
        return self.within(lambda s: self.queues.put(s, "prod", queue, intent, None))

    def drop(self, queue: str, conditions: Preconditions = ANY) -> Any:
        return self.within(lambda s: self.queues.delete(s, "prod", queue, Intent(conditions), None))

    def names(self) -> list[str]:
        return [q["name"] for q in msgspec.json.decode(self.stored.get("prod").document)["queues"]]


@pytest.fixture
def bench(database: Database, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(database, monkeypatch)


def refused(error: type[ArbiterError], act: Callable[[], object]) -> str:
    with pytest.raises(error) as found:
        act()
    return found.value.detail


def test_each_write_that_changes_something_is_a_revision_and_is_known_here_at_once(bench: Bench) -> None:
    first = bench.put(document("a"), comment="begin")
    assert (first.revision, first.created, first.changed, first.dry_run) == (1, True, True, False)
    assert bench.stored.head("prod") == Pin("prod", bench.stored.heads.find("prod") or 0) == Pin("prod", 1)
    assert ("prod", 1) in bench.stored.documents
    assert "If-Match" in refused(PreconditionRequired, lambda: bench.put(document("b")))
    tag = etag(bench.stored.get("prod"))
    assert tag == f'"1-{first.digest[:12]}"'
    mine = Preconditions((tag,), None)
    second = bench.put(document("b"), mine)
    assert (second.revision, second.created, second.changed) == (2, False, True)
    refused(PreconditionFailed, lambda: bench.put(document("c"), mine))
    same = bench.put(document("b"), ANY, comment="nothing")
    assert (same.revision, same.created, same.changed, same.digest) == (2, False, False, second.digest)
    assert bench.stored.head("prod") == Pin("prod", 2)
    assert bench.stored.get("prod", 1).comment == "begin"
    assert bench.told == [
        ("configuration.put", "prod", {"revision": 1, "comment": "begin"}),
        ("configuration.put", "prod", {"revision": 2}),
    ]


def test_a_name_that_somebody_else_took_meanwhile_is_not_written_over(bench: Bench, instead: Instead) -> None:
    instead(writing.repository, claim=lambda session, name: False)  # pyright: ignore
    assert refused(PreconditionFailed, lambda: bench.put(document("a"))) == "somebody else has just created it"
    assert (bench.stored.page(None, 9), bench.told) == ([], [])


def test_a_dry_run_says_what_would_be_and_changes_nothing(bench: Bench) -> None:
    assert bench.put(document("a"), dry_run=True).created
    refused(NotFound, lambda: bench.stored.get("prod"))
    bench.put(document("a"))
    would = bench.put(document("b"), dry_run=True)
    assert (would.revision, would.created, would.changed, would.dry_run) == (2, False, True, True)
    refused(PreconditionFailed, lambda: bench.put(document("b"), NEW, dry_run=True))
    assert (bench.stored.get("prod").revision, len(bench.told), bench.names()) == (1, 1, ["a"])


def test_what_is_deleted_is_gone_with_its_labels_and_comes_back_under_a_later_number(bench: Bench) -> None:
    bench.put(document("a"))
    bench.move("stable", 1)
    refused(PreconditionRequired, lambda: bench.delete(FREE))
    refused(PreconditionFailed, lambda: bench.delete(Preconditions(('"9-x"',), None)))
    bench.delete()
    assert bench.told[-1] == ("configuration.delete", "prod", {"revision": 1, "labels": ["stable"]})
    for gone in (lambda: bench.stored.get("prod"), lambda: bench.stored.head("prod"), lambda: bench.delete(FREE),
                 lambda: bench.stored.head("prod@stable"), lambda: bench.labels.get("prod", "stable"),
                 lambda: bench.move("stable", 1), lambda: bench.take_off("stable"),
                 lambda: bench.stored.get("prod", 1), lambda: bench.stored.history("prod", None, 9)):  # fmt: skip
        refused(NotFound, gone)
    refused(PreconditionFailed, bench.delete)
    assert len(bench.stored.heads) == 0
    assert bench.stored.revision(Pin("prod", 1)).revision == 1, "decisions in the log refer to it"
    refused(PreconditionFailed, lambda: bench.restore(1, ANY))
    back = bench.restore(1, comment="again")
    assert (back.revision, back.created, back.changed) == (2, True, True)
    assert bench.told[-1] == (
        "configuration.restore", "prod", {"revision": 2, "comment": "again", "restored_from": 1}
    )  # fmt: skip
    assert bench.stored.get("prod").restored_from == 1
    assert bench.stored.head("prod").revision == 2
    assert bench.move("stable", 2)[1:] == ('"3-2"', True), "it counts on"
    refused(NotFound, lambda: bench.restore(7, ANY))


def test_pages_are_by_name_and_history_is_newest_first(bench: Bench) -> None:
    for name in ("c", "a", "b"):
        bench.put(document("x"), name=name)
    for names in (("y",), ("z",)):
        bench.put(document(*names), ANY, name="b")
    bench.put(document("x"), name="d")
    bench.delete(name="d")
    stored = bench.stored
    assert [(one.name, one.revision) for one in stored.page(None, 9)] == [("a", 1), ("b", 3), ("c", 1)]
    assert [one.name for one in stored.page("a", 1)] == ["b"]
    assert [one.revision for one in stored.history("b", None, 9)] == [3, 2, 1]
    assert [one.revision for one in stored.history("b", 3, 1)] == [2]
    refused(NotFound, lambda: stored.history("nobody", None, 9))
    refused(NotFound, lambda: stored.get("nobody", 1))
    assert "no revision 9 of configuration 'b'" in refused(NotFound, lambda: stored.get("b", 9))


def test_what_a_reference_means_is_known_or_looked_up(bench: Bench) -> None:
    bench.put(document("a"))
    bench.put(document("b"), ANY)
    bench.move("stable", 1)
    for stored in (bench.stored, Configurations(bench.database, 1 << 20)):
        assert [stored.head(one).revision for one in ("prod", "prod@stable", "prod@7")] == [2, 1, 7]
        assert "has no label 'other': it has 'stable'" in refused(NotFound, lambda: stored.head("prod@other"))  # noqa: B023
        assert "no configuration 'nobody'" in refused(NotFound, lambda: stored.head("nobody"))  # noqa: B023
        assert msgspec.json.decode(stored.document("prod", 1))["queues"][0]["name"] == "a"
        assert ("prod", 1) in stored.documents
    for wrong in ("", "@1", "prod@", "prod@0", "prod@01", "-x", "a b", "x" * 129, "prod@1@2", "prod@" + "x" * 65):
        refused(BadInput, lambda: bench.stored.head(wrong))  # noqa: B023


def test_a_label_is_moved_by_who_names_where_it_points(bench: Bench) -> None:
    refused(NotFound, lambda: bench.move("stable", 1))
    bench.put(document("a"))
    bench.put(document("b"), ANY)
    label, tag, created = bench.move("stable", 1, comment="first")
    assert (label.revision, label.label, label.comment, tag, created) == (1, "stable", "first", '"1-1"', True)
    assert bench.stored.head("prod@stable").revision == 1
    refused(PreconditionRequired, lambda: bench.move("stable", 2))
    refused(PreconditionFailed, lambda: bench.move("stable", 2, Preconditions(('"2-1"',), None)))
    assert bench.move("stable", 1, ANY)[1:] == ('"1-1"', False)
    moved = bench.move("stable", 2, Preconditions((tag,), None))
    assert (moved[0].revision, moved[1:]) == (2, ('"2-2"', False))
    assert bench.stored.head("prod@stable").revision == 2
    assert refused(BadInput, lambda: bench.move("stable", 9, ANY)) is not None
    bench.move("beta", 1)
    assert [(one.label, one.revision) for one in bench.labels.every("prod")] == [("beta", 1), ("stable", 2)]
    assert (bench.labels.get("prod", "stable")[1], bench.labels.get("prod", "beta")[0].revision) == ('"2-2"', 1)
    assert bench.told[2:] == [
        ("configuration.label.move", "prod", {"label": "stable", "revision": 1, "before": None, "comment": "first"}),
        ("configuration.label.move", "prod", {"label": "stable", "revision": 2, "before": 1, "comment": None}),
        ("configuration.label.move", "prod", {"label": "beta", "revision": 1, "before": None, "comment": None}),
    ]


def test_a_label_that_is_taken_off_means_nothing_and_counts_on(bench: Bench) -> None:
    bench.put(document("a"))
    bench.move("stable", 1)
    refused(PreconditionRequired, lambda: bench.take_off("stable", FREE))
    bench.take_off("stable")
    assert bench.told[-1] == ("configuration.label.delete", "prod", {"label": "stable", "before": 1})
    refused(NotFound, lambda: bench.stored.head("prod@stable"))
    refused(NotFound, lambda: bench.take_off("stable", FREE))
    refused(PreconditionFailed, lambda: bench.take_off("stable", ANY))
    assert bench.labels.every("prod") == []
    refused(PreconditionFailed, lambda: bench.move("stable", 1, ANY))
    assert bench.move("stable", 1)[1:] == ('"3-1"', True)
    for gone in (lambda: bench.labels.every("x"), lambda: bench.labels.get("x", "stable")):
        refused(NotFound, gone)


def test_what_has_changed_since_is_told_in_order_to_whoever_follows(bench: Bench) -> None:
    bench.put(document("a"))
    bench.put(document("a"), name="other")
    bench.move("stable", 1)
    bench.put(document("b"), ANY)
    rows = bench.within(lambda s: changed(s, -1))
    assert [(row.name, row.label, row.revision) for row in rows] == [
        ("other", None, 1), ("prod", "stable", 1), ("prod", None, 2)
    ]  # fmt: skip
    assert [row.change for row in rows] == sorted(row.change for row in rows)
    assert bench.within(horizon) == rows[-1].change
    for seen, row in enumerate(rows, 1):
        assert bench.within(lambda s, since=row.change: changed(s, since)) == rows[seen:]
    bench.delete()
    after = bench.within(lambda s: changed(s, rows[-1].change))
    assert {(row.label, row.revision) for row in after} == {("stable", None), (None, None)}
    assert bench.within(lambda s: changed(s, bench.within(horizon))) == []


def test_a_queue_is_put_in_its_place_or_behind_the_others(bench: Bench) -> None:
    refused(NotFound, lambda: bench.queue(FREE, name="a"))
    refused(PreconditionFailed, lambda: bench.queue(name="a"))
    bench.put(document("a", "b"))
    changed = bench.queue(name="a", weight=3)
    assert (changed.created, changed.changed, changed.revision, bench.names()) == (False, True, 2, ["a", "b"])
    assert bench.queue(name="c", parent="a").created
    assert bench.names() == ["a", "b", "c"]
    found, queue = bench.queues.get("prod", "a")
    assert (found.revision, queue.weight) == (3, 3)
    assert bench.told[-2:] == [
        ("configuration.queue.put", "prod", {"revision": 2, "queue": "a"}),
        ("configuration.queue.put", "prod", {"revision": 3, "queue": "c"}),
    ]
    refused(NotFound, lambda: bench.queues.get("prod", "x"))
    refused(PreconditionRequired, lambda: bench.queue(FREE, name="a", weight=4))


def test_conditions_are_of_the_configuration_and_a_star_adds_a_queue_but_never_replaces_one(bench: Bench) -> None:
    bench.put(document("a"))
    refused(PreconditionFailed, lambda: bench.queue(NEW, name="a", weight=3))
    assert bench.queue(NEW, name="b").created
    tag = etag(bench.stored.get("prod")) or ""
    old = Preconditions(('"1-x"',), ("*",))
    refused(PreconditionFailed, lambda: bench.queue(old, name="c"))
    assert bench.queue(Preconditions((tag,), ("*",)), name="c").revision == 3
    refused(PreconditionFailed, lambda: bench.queue(Preconditions((tag,), None), name="d"))
    refused(
        PreconditionFailed, lambda: bench.queue(Preconditions(None, (etag(bench.stored.get("prod")) or "",)), name="a")
    )


def test_who_writes_on_a_version_that_is_past_hears_of_that_before_what_is_wrong_with_the_queue(bench: Bench) -> None:
    bench.put(document("a"))
    bench.queue(name="b", parent="a")
    old = Preconditions(('"1-x"',), None)
    refused(PreconditionFailed, lambda: bench.queue(old, name="b", parent="nobody"))
    refused(PreconditionFailed, lambda: bench.drop("a", old))
    refused(Conflict, lambda: bench.drop("a", Preconditions((etag(bench.stored.get("prod")) or "",), None)))


def test_a_queue_with_children_stays(bench: Bench) -> None:
    bench.put(document("a", "b"))
    for i in range(12):
        bench.queue(name=f"c{i:02}", parent="a")
    told = ", ".join(f"'c{i:02}'" for i in range(10))
    assert refused(Conflict, lambda: bench.drop("a")) == (
        f"queue 'a' has children: {told} and 2 more; delete or move them first"
    )
    for i in (10, 11):
        bench.drop(f"c{i}")
    assert refused(Conflict, lambda: bench.drop("a")) == f"queue 'a' has children: {told}; delete or move them first"
    refused(PreconditionRequired, lambda: bench.drop("b", FREE))
    gone = bench.drop("b")
    assert (gone.changed, "b" in bench.names(), bench.told[-1][::2]) == (
        True, False, ("configuration.queue.delete", {"revision": gone.revision, "queue": "b"})
    )  # fmt: skip
    refused(NotFound, lambda: bench.drop("b"))


def test_what_is_wrong_with_a_queue_is_named_in_it_and_elsewhere_by_the_whole(bench: Bench) -> None:
    bench.put(document("a", "b"))
    with pytest.raises(BadInput) as found:
        bench.queue(name="b", parent="nobody")
    assert [problem.pointer for problem in found.value.problems] == ["/parent"]
    with pytest.raises(BadInput) as found:
        bench.queue(name="new", quota={"cpu": {"guaranteed": "much"}})
    assert [problem.pointer for problem in found.value.problems] == ["/quota/cpu/guaranteed"]
    assert bench.names() == ["a", "b"]


def test_the_name_of_a_queue_is_that_of_its_path() -> None:
    assert read_queue(b'{"weight":3}', "a") == Queue(name="a", weight=3)
    assert read_queue(b'{"name":"a"}', "a") == Queue(name="a")
    with pytest.raises(BadInput) as found:
        read_queue(b'{"name":"b"}', "a")
    (problem,) = found.value.problems
    assert (problem.pointer, problem.detail) == ("/name", "the body's name 'b' is not the path's 'a'")


def test_all_that_changes_configurations_is_put_together_on_one_database(bench: Bench) -> None:
    writes = Writes(bench.database, 60, 99, 1 << 20)
    whole = Administration(bench.database, bench.stored, writes)
    bench.put(document("a"))
    assert whole.stored is bench.stored
    assert bench.within(lambda s: whole.labels.move(s, "prod", "stable", 1, FREE, None))[2]
    assert whole.queues.get("prod", "a")[0].revision == 1
    bench.within(lambda s: whole.editor.delete(s, "prod", ANY))
    assert whole.writes is writes
    refused(NotFound, lambda: bench.stored.get("prod"))


def test_of_many_findings_the_worst_are_told() -> None:
    queues = [{"name": f"n{i}", "quota": {"cpu": {"guaranteed": 1}}} for i in range(1200)]
    few, many = (
        drafted(convert({"engine": "kube-scheduler", "queues": queues[:count]}, Configuration), None).findings
        for count in (1000, 1200)
    )
    assert many[:1000] == few
    assert [(finding.rule, finding.detail) for finding in many[1000:]] == [
        ("more-findings", "200 more findings are not listed")
    ]
    mild = Finding(severity="info", rule="i", pointer="", detail="mild")
    assert listed([mild, *few])[:1000] == few, "the worst first"


@pytest.mark.parametrize("unreadable", [False, True])
def test_every_finding_is_told_errors_refuse_and_warnings_stay_with_the_draft(
    instead: Instead, *, unreadable: bool
) -> None:
    warning = Finding(severity="warning", rule="w", pointer="/queues/0", detail="odd")
    error = Finding(severity="error", rule="e", pointer="/queues/1", detail="wrong")
    given, found = convert(document("a"), Configuration), [warning]
    instead(writing.solve, findings=lambda configuration, engine: list(found))  # pyright: ignore
    draft = drafted(given, None)
    assert (draft.findings, draft.digest) == ([warning], digest(given))
    if unreadable:

        def fails(_: Configuration) -> str:
            raise InvalidInput([Problem(pointer="/queues/1", detail="wrong")])

        instead(writing, digest_of=fails)
    else:
        found.append(error)
    with pytest.raises(BadInput) as refused:
        drafted(given, None, lambda one: Problem(pointer="/at" + one.pointer, detail=one.detail))
    assert [(one.pointer, one.detail) for one in refused.value.problems] == [("/at/queues/1", "wrong")]
    assert [(one.severity, one.detail) for one in refused.value.extra["findings"]] == [
        ("warning", "odd"), ("error", "wrong")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pointer", "at", "said"),
    [
        ("/queues/1", "", "d"), ("/queues/1/weight", "/weight", "d"),
        ("/queues/10/weight", "", "the configuration's /queues/10/weight: d"),
        ("", "", "the configuration's document: d"),
    ],
)  # fmt: skip
def test_a_finding_is_located_in_the_queue_or_in_the_whole(pointer: str, at: str, said: str) -> None:
    found = Finding(severity="error", rule="e", pointer=pointer, detail="d")
    assert vars(queues)["_located"](found, "/queues/1") == Problem(pointer=at, detail=said)
