"""Translating what changed gives what translating everything does."""

import dataclasses
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from app.following import grouped, translator
from app.following.grouped import LISTED, Translated, translate
from app.following.mirror import Mirror, View
from app.following.objects import FOLLOWED, Event, Listed, trimmed
from app.following.translator import Translator
from app.formats.manifests import Within
from app.solver.model.configuration import Configuration, EngineName
from app.solver.model.problems import Finding
from tests.cluster import pods
from tests.support.bounds import Bounded
from tests.support.changing import World
from tests.support.instead import Clock, Instead

ENGINES: tuple[EngineName, ...] = ("kueue", "kai", "yunikorn", "kube-scheduler")
PARTS = ("nodes", "workloads", "asks", "local_queues", "priority_classes",
         "workload_priority_classes", "reservations", "budgets")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", [20261122, 0])
@pytest.mark.parametrize("engine", ENGINES)
def test_any_sequence_of_changes_is_translated_as_if_all_were_read(
    engine: EngineName, seed: int, instead: Instead, bounded: Bounded
) -> None:
    world, following = World(engine, seed), Translator(engine)
    read: Counter[bool] = Counter()
    compared = 0

    def counted(engine: EngineName, view: Any, *more: Any) -> Any:
        some = len(view.items["Workload"]) < 20 if engine == "kueue" else len(more) == 3
        read[some] += 1
        return translate(engine, view, *more)

    bounded(translator, OLD_SECONDS=-1.0)  # cut findings are whole again with the next translation
    for module in (translator, grouped):
        instead(module, translate=counted)
    for step in range(240):
        world.change()
        if step % 50 == 49:
            world.reconfigure()
        if step % 3:
            continue
        view = world.seen()
        found, wanted = following.translate(view), translate(engine, view)
        for part in PARTS:
            assert getattr(found, part) == getattr(wanted, part), (step, part)
        assert replace(found.configuration, findings=[]) == wanted.configuration, step
        if max(len(wanted.findings), len(found.findings)) < LISTED:
            compared += 1
            assert told(found) == told(wanted), step
            carrying = wanted.carrying()
            assert found.configuration == carrying.configuration, step
            assert found.of_state == carrying.of_state, step
    assert compared > 20
    assert read[True] > 50, "what did not change was read again"


@pytest.mark.parametrize("engine", ["kai", "yunikorn"])
def test_of_a_large_group_only_what_changed_is_translated_again(engine: EngineName, instead: Instead) -> None:
    mirror, kinds = Mirror(FOLLOWED[engine]), {kind.name: kind for kind in FOLLOWED[engine]}
    items = {
        "Node": [pods.node("node-0")], "Queue": [pods.kai_queue("leaf", 4)], "PodGroup": [pods.pod_group("g", "leaf")],
        "ConfigMap": [pods.yunikorn_queues(8)], "Pod": [_pod(engine, number) for number in range(60)],
    }  # fmt: skip
    for name, kind in kinds.items():
        mirror.listed(kind, "v1", Listed(items.get(name, []), "1"), "test")
    following, read = Translator(engine), list[int]()
    following.translate(_view(mirror))

    def counted(engine: EngineName, view: Any, findings: Any, within: Within, *more: Any) -> Any:
        read.append(len(within.pods))
        return translate(engine, view, findings, within, *more)

    instead(grouped, translate=counted)
    changes = [_pod(engine, 30, done=True), _pod(engine, 32, "node-0"), _pod(engine, 12)]
    for gone, item in [(False, changes[0]), (False, changes[1]), (True, changes[2]), (False, _pod(engine, 60))]:
        mirror.apply(kinds["Pod"], Event(gone, item, "2"))
        view = _view(mirror)
        found, wanted = following.translate(view), translate(engine, view)
        assert (found.workloads, found.asks) == (wanted.workloads, wanted.asks)
    assert len(read) == 4
    assert max(read) < 8, read


def test_an_upgrade_of_the_scheduler_is_followed() -> None:
    mirror, kinds = Mirror(FOLLOWED["kai"]), {kind.name: kind for kind in FOLLOWED["kai"]}
    items = {"Node": [pods.node("node-0")], "Queue": [pods.kai_queue("leaf", 4)],
             "PodGroup": [pods.pod_group("g", "leaf")]}  # fmt: skip
    for name, kind in kinds.items():
        mirror.listed(kind, "v1", Listed(items.get(name, []), "1"), "test")
    following = Translator("kai")

    def release() -> tuple[str | None, list[str]]:
        view = _view(mirror)
        translated = following.translate(view)
        assert translated.configuration == translate("kai", view).carrying().configuration
        return translated.release, [finding.rule for finding in translated.of_state]

    def install(tag: str) -> None:
        containers = [{"name": "c", "image": f"r/kai/scheduler:{tag}"}]
        item = {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "s", "namespace": "kai-scheduler"},
            "spec": {"replicas": 1, "template": {"spec": {"containers": containers}}}, "status": {"replicas": 1},
        }  # fmt: skip
        mirror.apply(kinds["Deployment"], Event(False, trimmed("Deployment", item), "2"))

    assert release() == (None, ["release"]), "with a warning, as answers would be those of another"
    install("v0.13.2")
    assert release() == ("0.13", [])
    mirror.apply(kinds["Pod"], Event(False, _pod("kai", 1), "3"))
    assert release() == ("0.13", []), "a pod is translated alone"
    install("v0.17.0")
    assert release() == ("0.17", [])


def test_a_pod_that_should_be_gone_is_stuck_some_minutes_later_though_nothing_changed() -> None:
    mirror, pod = Mirror(FOLLOWED["kai"]), _pod("kai", 1)
    pod["metadata"]["deletionTimestamp"] = "2026-11-22T09:00:00Z"
    items = {"Node": [pods.node("node-0")], "Queue": [pods.kai_queue("leaf", 4)], "Pod": [pod],
             "PodGroup": [pods.pod_group("g", "leaf")]}  # fmt: skip
    for kind in FOLLOWED["kai"]:
        mirror.listed(kind, "v1", Listed(items.get(kind.name, []), "1"), "test")
    following, view = Translator("kai"), _view(mirror)
    for minute, due, state in ((1, False, "releasing"), (3, True, "stuck_in_releasing"), (4, False, None)):
        now = datetime(2026, 11, 22, 9, minute, tzinfo=UTC)
        assert following.due(now) == due
        if state is not None:
            (workload,) = following.translate(dataclasses.replace(view, changed=set(), now=now)).workloads.values()
            assert [task.state for task in workload.tasks] == [state]
    assert not Translator("kueue").due(datetime.now(UTC))


def test_a_limit_range_that_comes_keeps_what_waits_past_it_from_being_tried() -> None:
    mirror, kinds = Mirror(FOLLOWED["kueue"]), {kind.name: kind for kind in FOLLOWED["kueue"]}

    def made(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "" if kind == "ClusterQueue" else "ns"}
        version = kinds[kind].api_version(kinds[kind].versions[0])
        return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}

    pod = {"containers": [{"name": "c", "resources": {"requests": {"cpu": 2}}}]}
    pod_set = {"name": "main", "template": {"spec": pod}}
    listed = [
        made("ClusterQueue", "q", {"namespaceSelector": {}}), made("LocalQueue", "lq", {"clusterQueue": "q"}),
        made("Workload", "w", {"queueName": "lq", "podSets": [pod_set]}),
    ]  # fmt: skip
    for name, kind in kinds.items():
        of_kind = [one for one in listed if one["kind"] == name]
        mirror.listed(kind, kind.versions[0], Listed(of_kind, "1"), "test")
    following = Translator("kueue")
    assert following.translate(_view(mirror)).asks["ns/w"].kueue is None
    limits = made("LimitRange", "l", {"limits": [{"type": "Container", "max": {"cpu": 1}}]})
    for gone in (False, True):
        mirror.apply(kinds["LimitRange"], Event(gone, trimmed("LimitRange", limits), "2"))
        own = following.translate(_view(mirror)).asks["ns/w"].kueue
        assert own is None if gone else own is not None and "exceed its limits" in (own.inadmissible or "")


def _pod(engine: EngineName, number: int, on: str | None = None, *, done: bool = False) -> dict[str, Any]:
    """Of the one group, in a namespace and by a name before or after that of others as text."""
    place = on or ("node-0" if number % 2 else None)
    name = f"p-{number:02}"
    made = pods.kai_pod(name, "g", 1, place) if engine == "kai" else pods.yunikorn_pod(name, "g", "root.prod", 1, place)
    if engine == "yunikorn" and number % 3:
        made["metadata"]["namespace"] += "-more"
    made["metadata"]["creationTimestamp"] = f"2026-11-22T09:00:{(number * 7) % 60:02}Z"
    made["status"]["phase"] = "Succeeded" if done else made["status"]["phase"]
    return trimmed("Pod", made)


def _view(mirror: Mirror) -> Any:
    view = mirror.view()
    assert view is not None
    return view


def told(found: Any) -> list[str]:
    """What was found; whichever pod a dynamic queue is told of for."""
    shown = [(one.rule, one.detail, "" if one.rule == "dynamic-queue" else one.pointer) for one in found.findings]
    return sorted(map(str, shown))


class Way:
    """Reads all or some; ``findings``: how many there are, of what is read next."""

    def __init__(self) -> None:
        self.findings = 0
        self.read: list[str] = []

    def _found(self, how: str) -> Translated:
        self.read.append(how)
        findings = [Finding(rule=how, severity="info", pointer=f"/Pod/ns/{i}", detail="") for i in range(self.findings)]
        return Translated(Configuration(), {}, {}, {}, findings, {}, {})

    def whole(self, view: View) -> Translated:
        return self._found("whole")

    def some(self, last: Translated, view: View, changed: Any) -> Translated | None:
        return None if changed == {("Queue", ("", "q"))} else self._found("some")


def test_findings_that_were_cut_are_read_whole_within_a_minute(clock: Clock) -> None:
    clock.drives(translator)
    clock.now = 1000.0
    following, way = Translator("kai"), Way()
    following._way = way  # pyright: ignore
    some, other = {("Pod", ("", "p"))}, {("Queue", ("", "q"))}

    def rules(findings: int, changed: set[Any] | None = some) -> set[str]:
        way.findings = findings
        return {one.rule for one in following.translate(View({}, {}, changed, None)).findings}

    assert rules(LISTED) == {"whole"}
    assert rules(1) == {"whole"}, "before there may have been more than were listed"
    clock.now += 60.0
    assert rules(5) == {"whole"}, "those of the last time that all was read"
    clock.now += 0.0625
    assert rules(5) == {"whole"}
    assert way.read == ["whole", "some", "some", "whole"]
    assert rules(LISTED - 1) == {"some"}, "none was cut"
    clock.now += 100.0
    assert rules(LISTED) == {"some"}, "those of the time before, which were all"
    assert rules(LISTED) == {"whole"}, "the last time that all was read is too long ago"
    assert rules(3, other) == {"whole"}
    assert rules(3, None) == {"whole"}
    assert rules(3) == {"some"}
    assert rules(0) == set()
