"""Which pods a change touches, and which of them are read again for it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.following import pods as specs
from app.following.grouped import spliced, untouched
from app.following.pods import Members, Pods, Specs, Touched
from app.formats.objects import Key
from app.formats.reader import Findings, Reader
from app.solver.model.state import Task, Workload
from tests.cluster import pods
from tests.support.bounds import Bounded
from tests.support.instead import Instead

SPACE = "default"


def key(name: str) -> Key:
    return SPACE, name


def dated(made: dict[str, Any], at: int | None) -> dict[str, Any]:
    if at is not None:
        made["metadata"]["creationTimestamp"] = f"2026-11-22T09:00:{at:02}Z"
    return made


def changed(known: Pods, *items: dict[str, Any]) -> Touched:
    touched = Touched()
    for item in items:
        known.change(key(item["metadata"]["name"]), item, touched)
    return touched


def kai(name: str, group: str | None = "g", on: str | None = None, **annotations: str) -> dict[str, Any]:
    named = {"pod-group-name": group} if group else {}
    return pods.pod(name, "kai-scheduler", 1, on, annotations=named | annotations)


def test_members_are_kept_by_name_and_by_age() -> None:
    known = Pods("yunikorn")
    for name, at in (("d", 3), ("b", None), ("c", 1), ("e", None), ("a", 2)):
        changed(known, dated(pods.yunikorn_pod(name, "app", "root.prod"), at))
    members = known.members("app")
    assert isinstance(members, Members)
    assert members.keys == [key(name) for name in "abcde"]
    assert [of for _, of in members.ages] == [key(name) for name in "becad"], "those of no age first, by name"
    assert members.leading() == {key("a"), key("b"), key("c")}
    assert members.loose == 0
    first = known.first("app")
    assert first is not None
    assert first.manifest.name == "a"
    for name in "bc":
        known.change(key(name), None, Touched())
    assert members.keys == [key(name) for name in "ade"]
    assert members.leading() == {key("a"), key("e")}
    changed(known, dated(pods.yunikorn_pod("a", "app", "root.prod"), 5), dated(pods.yunikorn_pod("e", "x", "q"), 4))
    assert members.leading() == {key("a"), key("d")}
    assert (known.members("none"), known.first("none"), sorted(known.groups())) == (None, None, ["app", "x"])


def test_pods_that_do_not_name_their_group_are_counted() -> None:
    known = Pods("kai")
    loose = kai("a", None)
    loose["metadata"]["ownerReferences"] = [{"kind": "RayJob", "name": "own", "uid": "u"}]
    changed(known, loose)
    (group,) = known.groups()
    members = known.members(group)
    assert members is not None
    assert members.loose == 1
    named = kai("b", group.partition("/")[2])
    changed(known, named)
    assert (members.loose, len(members.keys)) == (1, 2)
    known.change(key("a"), None, Touched())
    assert members.loose == 0


def test_a_change_touches_where_a_pod_was_and_where_it_is() -> None:
    known = Pods("kai")
    assert known.none()
    touched = changed(known, kai("a"), kai("b", "h", "n"), pods.pod("s", "other", 1, "n"), pods.pod("w", "other"))
    assert not known.none()
    assert touched == Touched(
        groups=set(), some={"default/g": {key("a")}, "default/h": {key("b")}}, nodes={"n"},
        pods={key(name) for name in "absw"},
    )  # fmt: skip
    touched = changed(known, kai("a", "h"), pods.pod("s", "other", 1, "m"))
    assert touched.some == {"default/g": {key("a")}, "default/h": {key("a")}}
    assert touched.nodes == {"n", "m"}
    assert known.members("default/g") is None, "nobody is left in it"
    on = Touched()
    known.on("n", on)
    known.on("nowhere", on)
    assert (on.some, on.nodes) == ({"default/h": {key("b")}}, set())
    gone = Touched()
    for name in "absw":
        known.change(key(name), None, gone)
    known.change(key("nobody"), None, gone)
    assert (gone.nodes, gone.some.keys(), known.none()) == ({"m"}, {"default/h"}, True)
    assert (known.groups(), known._on) == ([], {})  # pyright: ignore


def test_what_can_not_be_read_is_known_without_a_group() -> None:
    known, findings = Pods("kai"), Findings()
    made = kai("a", on="n")
    made["metadata"]["name"] = 5
    touched = Touched()
    known.change(key("a"), made, touched)
    assert (touched.some, touched.nodes, touched.pods) == ({}, set(), {key("a")})
    assert known.read([key("a")], findings) == []
    assert findings.all(), "it is told"
    known.change(key("a"), None, Touched())
    assert known.none()


def leaving(name: str, at: int) -> dict[str, Any]:
    made = kai(name, on="n")
    made["metadata"]["deletionTimestamp"] = f"2026-11-22T09:{at:02}:00Z"
    made["status"] = {"phase": "Running"}
    return made


def test_who_should_be_gone_counts_otherwise_after_a_while_and_is_told_once() -> None:
    known, start = Pods("kai"), datetime(2026, 11, 22, 9, tzinfo=UTC)
    changed(known, leaving("a", 1), leaving("b", 2), leaving("c", 1), kai("d", on="n"))
    known.change(key("c"), None, Touched())
    assert not known.is_due(start + timedelta(minutes=3))
    assert known.is_due(start + timedelta(minutes=3.5))
    assert known.due(start + timedelta(minutes=3.5)) == {key("a")}
    assert known.due(start + timedelta(minutes=3.5)) == set()
    assert known.due(start + timedelta(minutes=5)) == {key("b")}
    other = Pods("yunikorn")
    changed(other, leaving("a", 1))
    assert not other.is_due(start + timedelta(days=1))


def test_these_are_all_that_there_are_and_what_is_the_same_is_not_read_again() -> None:
    known = Pods("kai")
    a, b = kai("a"), kai("b")
    known.renew({key("a"): a, key("b"): b})
    before = known.first("default/g")
    known.renew({key("a"): a, key("c"): kai("c", "h")})
    assert known.first("default/g") is before
    assert sorted(known.groups()) == ["default/g", "default/h"]
    known.renew({key("a"): kai("a")})
    assert known.first("default/g") is not before
    assert known.groups() == ["default/g"]


def test_who_holds_what_it_has_starts_a_group() -> None:
    known = Pods("kai")
    ending, done = kai("c", "g", "n"), kai("d", "g", "n")
    ending["metadata"]["deletionTimestamp"] = "2026-11-22T09:00:00Z"
    done["status"]["phase"] = "Succeeded"
    changed(known, kai("a"), kai("b", "g", "n"), ending, done, kai("other", "h", "n"))
    started = {name: known.start([key("a"), key(name)], "default/g") for name in ("a", "b", "c", "d", "other", "gone")}
    assert started == {"a": False, "b": True, "c": True, "d": False, "other": False, "gone": False}


def test_together_are_whole_groups_parts_of_others_and_strangers_of_nodes() -> None:
    known = Pods("kai")
    changed(
        known, kai("a"), kai("b"), kai("c", "h", "n"), kai("d", "h"), kai("e", "i"), pods.pod("s", "other", 1, "n"),
        pods.pod("t", "other", 1, "m"),
    )  # fmt: skip
    touched = Touched(
        groups={"default/g", "gone"}, some={"default/h": {key("d"), key("gone")}}, nodes={"n"}, pods={key("x")}
    )
    assert known.together(touched, [{key("e"), key("gone")}]) == {key(name) for name in "abdes"}
    assert known.together(Touched(), []) == set()


def test_pods_are_read_by_name_with_what_was_found() -> None:
    known, findings = Pods("kai"), Findings()
    wrong = kai("b")
    wrong["spec"]["priority"] = "high"
    changed(known, wrong, kai("c"), kai("a"))
    found = known.read([key("b"), key("c"), key("a")], findings)
    assert [pod.manifest.name for pod in found] == ["a", "b", "c"]
    assert [one.pointer for one in findings.all()] == ["/Pod/default/b/spec/priority"]
    assert all(pod.manifest.root.findings is findings for pod in found)


def test_specs_are_kept_within_their_bytes(instead: Instead, bounded: Bounded) -> None:
    read: list[Any] = []
    real = specs.read_pod_spec
    instead(specs, read_pod_spec=lambda spec: read.append(spec) or real(spec))
    bounded(specs, MOST_BYTES=2 * 4 * len(b'{"priority":1}'))
    known = Specs()

    def spec(priority: int) -> None:
        assert known.read(Reader({"priority": priority, "nodeName": "n"}, (), Findings())).priority == priority

    for priority in (1, 2, 1, 2):
        spec(priority)
    assert len(read) == 2
    spec(3)
    spec(2)
    assert len(read) == 3
    spec(1)
    assert len(read) == 4, "it was pushed out"


def task(name: str, cpu: int = 1, **more: Any) -> Task:
    return Task(name=name, requests={"cpu": cpu}, **more)


def group(*tasks: Task) -> Workload:
    return Workload(id="s/g", queue="q", tasks=list(tasks))


@pytest.mark.parametrize(
    ("new", "read", "expected"),
    [
        ([task("b", 2)], "b", [task("a"), task("b", 2), task("d")]),
        ([task("c")], "c", [task("a"), task("b"), task("c"), task("d")]),
        ([task("e"), task("0")], "e0", [task("0"), task("a"), task("b"), task("d"), task("e")]),
        ([], "b", [task("a"), task("d")]),
        ([], "bc", [task("a"), task("d")]),
        ([], "e", [task("a"), task("b"), task("d")]),
        ([task("a", 3)], "ad", [task("a", 3), task("b")]),
    ],
)
def test_tasks_of_pods_that_were_read_take_their_places(new: list[Task], read: str, expected: list[Task]) -> None:
    keys = {("s", name) for name in read}
    assert spliced(group(task("a"), task("b"), task("d")), group(*new), "s", keys).tasks == expected
    assert spliced(None, group(*new), "s", keys).tasks == new


def test_yunikorns_tasks_have_their_namespace_with_them() -> None:
    old = group(task("a/z"), task("b/a"))
    assert [one.name for one in spliced(old, group(task("a/zz")), "", {("a", "zz")}).tasks] == ["a/z", "a/zz", "b/a"]
    assert untouched(old.tasks, "", {("a", "z")}) == ("b", "a")


def test_a_pod_that_did_not_change_is_the_first_that_is_not_done() -> None:
    tasks = [task("a", state="released"), task("b"), task("c", state="releasing")]
    assert untouched(tasks, "s", set()) == ("s", "b")
    assert untouched(tasks, "s", {("s", "b")}) == ("s", "c")
    assert untouched(tasks, "s", {("s", "b"), ("s", "c")}) is None
    assert untouched([], "s", set()) is None
