"""Recorded decisions as a cluster's objects: seen as a follower sees them, they are decided as they were."""

import json
import random
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import Any, cast

import msgspec
import pytest

from app.clusters.schemas import ShadowReport, compare
from app.following.history import History, Preemption
from app.following.keeping import Arbiter, Reply
from app.following.mirror import Mirror
from app.following.objects import Event, Listed, followed, trimmed
from app.following.shadowing import Shadowing
from app.solver.model.configuration import EngineName
from tests.cluster.recorded import expressible
from tests.cluster.recorded.made import Item, Recorded
from tests.support.replay import answer

LEAST: dict[EngineName, int] = {"kai": 100, "yunikorn": 19}


class Stored:
    """The service, as far as a stored configuration goes: its settings are an administrator's."""

    def __init__(self, settings: Item) -> None:
        self._settings = settings

    def ask(self, *_: str) -> Reply:
        """The configuration."""
        return Reply(msgspec.json.encode({"configuration": {"settings": self._settings}}), None)


def heard(one: Recorded, told: list[Item], order: Callable[[str], int]) -> ShadowReport:
    """What a follower reports where all that was written, one after the other, is heard a kind after the other."""
    kinds = {kind.name: kind for kind in followed(one.engine, shadow=True)}
    mirror = Mirror(tuple(kinds.values()), History(one.engine, quiet=0))
    for kind in kinds.values():
        mirror.listed(kind, kind.api_version(kind.versions[0]), Listed([], "1"), "test")
    written = list(enumerate(copied([*one.objects, *told]), start=2))
    for version, item in sorted(written, key=lambda of: (order(of[1]["kind"]), of[0])):
        kind = kinds[item["kind"]]
        mirror.apply(kind, Event(False, trimmed(kind.name, item), str(version)))
    return reported(one, mirror)


def interleaved(one: Recorded, draw: random.Random, *, ends: bool) -> ShadowReport:
    """The same where kinds are heard in any order among them, each in its own, and what is quiet is looked for again
    and again meanwhile. ``ends``: victims are gone in the end, some of them before an Event says why."""
    kinds = {kind.name: kind for kind in followed(one.engine, shadow=True)}
    mirror = Mirror(tuple(kinds.values()), History(one.engine, quiet=0))
    for kind in kinds.values():
        mirror.listed(kind, kind.api_version(kind.versions[0]), Listed([], "1"), "test")
    pods = {item["metadata"]["name"]: item for item in one.objects if item["kind"] == "Pod"}
    happens = [(item, False) for item in one.objects]
    for name, event in one.victims.items():
        steps = [(event, False), *([(pods[name], True)] if ends else [])]
        happens += draw.sample(steps, len(steps))
    written = [(str(at), copied([item])[0], gone) for at, (item, gone) in enumerate(happens, start=2)]
    lines = {name: [of for of in written if of[1]["kind"] == name] for name in kinds}
    turns = [name for name, of in lines.items() for _ in of]
    draw.shuffle(turns)
    early: list[Preemption] = []
    for name in turns:
        version, item, gone = lines[name].pop(0)
        mirror.apply(kinds[name], Event(gone, trimmed(name, item), version))
        if all(of[1]["kind"] != "Event" for rest in lines.values() for of in rest):
            early += mirror.preemptions()
    (preemption,) = [*early, *mirror.preemptions()]
    return judged(one, mirror, preemption)


def seen(one: Recorded, told: list[Item]) -> ShadowReport:
    """What a follower reports of a cluster in which ``told`` happens."""
    kinds = followed(one.engine, shadow=True)
    mirror = Mirror(kinds, History(one.engine, quiet=0))
    for kind in kinds:
        items = [trimmed(kind.name, item) for item in copied(one.objects) if item["kind"] == kind.name]
        mirror.listed(kind, kind.api_version(kind.versions[0]), Listed(items, "1"), "test")
    for event in copied(told):
        mirror.apply(kinds[-1], Event(False, event, "2"))
    return reported(one, mirror)


def reported(one: Recorded, mirror: Mirror) -> ShadowReport:
    (preemption,) = mirror.preemptions()
    return judged(one, mirror, preemption)


def judged(one: Recorded, mirror: Mirror, preemption: Preemption) -> ShadowReport:
    arbiter = cast(Arbiter, Stored(one.settings))
    (found,) = Shadowing(one.engine, "c", "c", mirror, arbiter, lambda: True).judge(preemption, mirror.rewind())
    return found.report


def copied(items: list[Item]) -> list[Item]:
    return msgspec.json.decode(msgspec.json.encode(items))


def detail(report: ShadowReport) -> str:
    """How the evictions differ from what is decided; empty where they don't."""
    assert report.unjudged is None, report.unjudged
    (request,) = report.requests
    decided: Any = answer("/v1/decisions", msgspec.json.encode(request))
    return compare(report.ask, report.victims, json.dumps(decided).encode()).detail


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["kai", "yunikorn"])
def test_recorded_preemptions_agree_and_others_differ(engine: EngineName) -> None:
    left_out: Counter[str] = Counter()
    planted = 0
    recorded = list(expressible(engine, left_out))
    assert len(recorded) >= LEAST[engine], left_out
    for i, one in enumerate(recorded):
        assert detail(seen(one, list(one.victims.values()))) == "", one.name
        if one.others and i % 4 == 0:
            planted += 1
            others = [*list(one.victims.values())[1:], next(iter(one.others.values()))]
            assert detail(seen(one, others)), one.name
    assert planted > LEAST[engine] / 5


@pytest.mark.slow
@pytest.mark.parametrize("first", ["Event", "Pod", "Node"])
@pytest.mark.parametrize("engine", ["kai", "yunikorn"])
def test_what_is_heard_first_changes_nothing(engine: EngineName, first: str) -> None:
    for one in islice(expressible(engine), 12):
        told = list(one.victims.values())
        for late in ("", "Pod"):
            report = heard(one, told, lambda kind, late=late: (kind == late) - (kind == first))
            assert (detail(report), report.changes) == ("", 0), (one.name, late)


@pytest.mark.slow
@pytest.mark.parametrize("ends", [False, True], ids=["told", "gone"])
@pytest.mark.parametrize("engine", ["kai", "yunikorn"])
def test_whatever_order_kinds_are_heard_in_the_same_is_said_in_the_end(engine: EngineName, ends: bool) -> None:
    """An event may come long before the pod that it is about, and that which it names."""
    draw = random.Random(9)
    for one in islice(expressible(engine), 8):
        for _ in range(6):
            report = interleaved(one, draw, ends=ends)
            assert detail(report) == "", one.name
            assert ends or report.changes == 0, one.name
