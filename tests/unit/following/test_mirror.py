"""What a mirror knows of a cluster, from lists, watches and what goes wrong with them."""

import threading
from typing import Any

import pytest

from app.following import mirror as module
from app.following.history import History
from app.following.mirror import Followed, Mirror, View
from app.following.objects import Event, Listed
from app.formats.objects import Kind
from tests.support.instead import Clock

NODE, POD = Kind("Node", "", "nodes", ("v1",)), Kind("Pod", "", "pods", ("v1",))
EVENT = Kind("Event", "", "events", ("v1",), state=False)


def item(name: str, space: str = "", value: int = 0) -> dict[str, Any]:
    return {"metadata": {"name": name, **({"namespace": space} if space else {})}, "value": value}


def listed(mirror: Mirror, kind: Kind, *items: dict[str, Any], version: str = "5", reason: str = "start") -> None:
    mirror.listed(kind, "v1", Listed(list(items), version), reason)


def of(mirror: Mirror, kind: Kind) -> Followed:
    return next(one for one in mirror.kinds() if one.kind == kind)


def seen(mirror: Mirror) -> View:
    view = mirror.view()
    assert view is not None
    return view


@pytest.fixture
def clock(clock: Clock) -> Clock:
    clock.drives(module)
    clock.now = 100.0
    return clock


@pytest.fixture
def mirror(clock: Clock) -> Mirror:
    """Of two kinds, both listed and looked at."""
    made = Mirror((NODE, POD, EVENT))
    listed(made, NODE, item("n"))
    listed(made, POD, item("b", "s"), item("a", "s"))
    made.view()
    clock.now = 110.0
    return made


def test_there_is_no_view_before_every_kind_that_tells_of_the_state_was_listed(clock: Clock) -> None:
    mirror = Mirror((NODE, POD, EVENT))
    assert mirror.view() is None
    listed(mirror, NODE, item("n"), version="3")
    assert mirror.view() is None
    clock.now = 102.0
    listed(mirror, POD, item("a", "s"), reason="gone")
    assert seen(mirror) == View(
        {"Node": {("", "n"): item("n")}, "Pod": {("s", "a"): item("a", "s")}}, {"Node": "3", "Pod": "5"}, None, 100.0
    )
    assert mirror.lists == {"start": 1, "gone": 1}
    assert seen(mirror).changed == set(), "what changed is told once"
    assert seen(mirror).since is None
    one = of(mirror, POD)
    assert (one.whole, one.absent, one.error, one.version, one.api_version) == (True, False, None, "5", "v1")
    assert one.heard_at is not None


def test_changes_are_told_by_name_and_those_that_change_nothing_are_not(mirror: Mirror, clock: Clock) -> None:
    mirror.apply(POD, Event(False, item("a", "s"), "6"))
    assert (of(mirror, POD).version, of(mirror, POD).changes) == ("6", 1)
    assert seen(mirror).since is None, "it is what it was"
    mirror.apply(POD, Event(False, item("a", "s", 2), "7"))
    clock.now = 111.0
    mirror.apply(POD, Event(True, item("b", "s"), "8"))
    mirror.apply(POD, Event(False, None, "9"))
    mirror.apply(POD, Event(False, None, ""))
    view = seen(mirror)
    assert view.items["Pod"] == {("s", "a"): item("a", "s", 2)}
    assert (view.changed, view.since) == ({("Pod", ("s", "a")), ("Pod", ("s", "b"))}, 110.0)
    assert (view.versions["Pod"], of(mirror, POD).changes) == ("9", 3)
    mirror.apply(POD, Event(True, item("nobody", "s"), "10"))
    assert seen(mirror).items == view.items


def test_a_list_or_what_did_not_arrive_makes_everything_new(mirror: Mirror, clock: Clock) -> None:
    mirror.apply(NODE, Event(False, item("n", value=1), "6"))
    clock.now = 120.0
    listed(mirror, POD, item("c", "s"), reason="gone")
    view = seen(mirror)
    assert (view.changed, view.since, list(view.items["Pod"])) == (None, 110.0, [("s", "c")])
    mirror.forget()
    mirror.apply(NODE, Event(False, item("n"), "7"))
    view = seen(mirror)
    assert (view.changed, view.since) == (None, 120.0)


def test_what_only_happened_is_no_part_of_the_state(mirror: Mirror) -> None:
    listed(mirror, EVENT, item("e"))
    mirror.apply(EVENT, Event(False, item("f"), "9"))
    view = seen(mirror)
    assert (view.changed, view.since) == (set(), None)
    assert (view.items.keys(), view.versions.keys()) == ({"Node", "Pod"}, {"Node", "Pod"})
    assert of(mirror, EVENT).changes == 1


def test_what_breaks_says_so_until_it_is_heard_again(mirror: Mirror) -> None:
    mirror.broken(POD, "no route", whole=True)
    assert (of(mirror, POD).error, of(mirror, POD).whole, of(mirror, POD).breaks) == ("no route", True, 1)
    assert seen(mirror).changed == set(), "its watch may go on"
    mirror.apply(POD, Event(False, None, "9"))
    assert of(mirror, POD).error is None
    mirror.broken(POD, "gone", whole=False)
    assert mirror.view() is None
    mirror.broken(POD, "no route", whole=True)
    assert (mirror.view(), of(mirror, POD).breaks) == (None, 3)
    listed(mirror, POD)
    assert of(mirror, POD).error is None
    assert seen(mirror).items["Pod"] == {}


def test_a_kind_that_is_absent_has_no_objects_and_is_whole(mirror: Mirror) -> None:
    mirror.broken(POD, "no route", whole=False)
    mirror.absent(POD)
    view = seen(mirror)
    assert (view.items["Pod"], view.changed, view.since) == ({}, None, 110.0)
    assert view.versions.keys() == {"Node"}
    one = of(mirror, POD)
    assert (one.absent, one.whole, one.error, one.version) == (True, True, None, "")
    mirror.absent(POD)
    assert seen(mirror).since is None, "that is no news"
    listed(mirror, POD, item("a", "s"))
    assert not of(mirror, POD).absent


def test_who_waits_is_woken_by_news_and_does_not_wait_where_there_are_some(mirror: Mirror) -> None:
    def woken(by: Any) -> None:
        waiting = threading.Thread(target=mirror.wait, args=(600.0,), daemon=True)
        waiting.start()
        while by is not None and not mirror._news._waiters:  # pyright: ignore
            assert waiting.is_alive()
        if by is not None:
            by()
        waiting.join(20)
        assert not waiting.is_alive()

    woken(mirror.wake)
    woken(lambda: mirror.broken(POD, "no route", whole=True))
    woken(mirror.forget)
    woken(None)  # nobody has looked at what was forgotten


def test_the_past_is_of_the_state_and_goes_on_over_a_list(clock: Clock) -> None:
    mirror = Mirror((POD, EVENT), History("kai"))
    listed(mirror, POD, item("a", "s"), item("c", "s"))
    listed(mirror, EVENT)
    mirror.apply(POD, Event(False, item("a", "s", 1), "6"))
    mirror.apply(EVENT, Event(False, item("e", "s"), "7"))
    mirror.apply(POD, Event(True, item("a", "s", 1), "8"))
    listed(mirror, POD, item("b", "s"), version="9", reason="gone")
    rewind = mirror.rewind()
    assert rewind.items == {"Pod": {("s", "b"): item("b", "s")}}
    assert rewind.to((8, 0))
    assert rewind.items == {"Pod": {("s", "a"): item("a", "s", 1), ("s", "c"): item("c", "s")}}
    assert rewind.to((6, 0))
    assert rewind.items["Pod"]["s", "a"] == item("a", "s")
    assert mirror.preemptions() == []
    listed(mirror, POD, item("b", "s"), version="4", reason="gone")
    assert not mirror.rewind().to((8, 0)), "the server was restored"


def test_a_list_that_was_long_on_its_way_takes_no_past(clock: Clock) -> None:
    """Kinds are listed one by one: a list may be older than what was heard of others meanwhile, and of itself not."""
    mirror = Mirror((POD, NODE, EVENT), History("yunikorn"))
    assert not mirror.complete()
    listed(mirror, POD, item("a", "s"), version="5")
    listed(mirror, NODE, item("n"), version="5")
    assert mirror.complete(), "an event says nothing of how the cluster is"
    mirror.apply(POD, Event(False, item("a", "s", 1), "9"))
    listed(mirror, EVENT, version="3")
    listed(mirror, NODE, item("n"), item("m"), version="7", reason="gone")
    assert mirror.complete()
    rewind = mirror.rewind()
    assert rewind.to((6, 0))
    assert (rewind.items["Pod"], rewind.items["Node"]) == ({("s", "a"): item("a", "s")}, {("", "n"): item("n")})


def test_without_a_history_there_is_nothing_to_go_back_to(clock: Clock) -> None:
    without = Mirror((POD,))
    assert (without.preemptions(), without.evictions()) == ([], [])
    with pytest.raises(LookupError):
        without.rewind()


def test_what_may_be_missing_does_not_hold_up_the_others(mirror: Mirror) -> None:
    mirror.broken(POD, "forbidden", whole=False, missing=True)
    assert (of(mirror, POD).error, of(mirror, POD).whole) == ("forbidden", True)
    assert seen(mirror).items["Node"]
