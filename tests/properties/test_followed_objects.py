"""Whatever one object of a cluster is, all others are followed, and once it is mended all is as before."""

import copy
import json
from collections.abc import Iterator
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.following.grouped import Translated
from app.following.keeping import Keeper
from app.following.objects import FOLLOWED, Event, trimmed
from app.following.translator import Translator, use_of
from app.service.main import create_app
from app.solver.model.configuration import EngineName
from app.solver.model.problems import MOST_CARRIED
from tests.support.changing import World
from tests.support.near import Near
from tests.support.profiles import examples

Json = dict[str, Any]
NAME = "odd"


@pytest.fixture(scope="module")
def service(migrated_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = Settings(database_url=migrated_url, data_dir=tmp_path_factory.mktemp("data"), workers=0)
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        yield client


def nested(levels: int) -> Json:
    found: Json = {}
    for _ in range(levels):
        found = {"a": found}
    return found


NUMBERS: list[Any] = [2**53 + 1, -1, 2**31, -(2**63), 2**63 - 1, 1e308, 0.1, True, None]
TEXTS: list[Any] = [
    "9007199254740993",
    "18014398509481984",
    "-1",
    "NaN",
    "1e30",
    "1E",
    "1e400",
    "x" * 253,
    "x" * 600,
    "y" * 2**18,
]
WORDS: list[Any] = [
    "n\0ul",
    "c\r\nd",
    "\x1b",
    "\u2028",
    "é",
    "",
    "/",
    "root.x..y",
    "default",
    "9999-12-31T23:59:59-14:00",
    "1000000h",
]
PILES: list[Any] = [
    [],
    {},
    [[]],
    [{}],
    [None],
    {"": ""},
    {"x\0": "1"},
    {"x" * 600: "y"},
    {"cpu": "9007199254740993"},
    nested(300),
]
MANY: list[Any] = [{f"example.com/r{i}": "1" for i in range(300)}, [{"name": f"n{i}"} for i in range(300)], ["x"] * 300]
ODD: st.SearchStrategy[Any] = st.sampled_from([*NUMBERS, *TEXTS, *WORDS, *PILES, *MANY]) | st.text(max_size=5)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Of all fields but those by which an object is known."""
    below: Any = (
        cast(Json, value).items()
        if isinstance(value, dict)
        else enumerate(cast(list[Any], value))
        if isinstance(value, list)
        else ()
    )
    for key, inner in below:
        here: tuple[str | int, ...] = (*path, key)
        if here not in {("kind",), ("apiVersion",), ("metadata",), ("metadata", "name"), ("metadata", "namespace")}:
            yield here
        if here not in {("kind",), ("apiVersion",)}:
            yield from places(inner, here)


def changed(item: Json, path: tuple[str | int, ...], value: Any) -> Json:
    """As an API server tells it."""
    found: Any = copy.deepcopy(item)
    here = found
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    return json.loads(json.dumps(found))


def kept(service: TestClient) -> tuple[dict[str, Json], ...]:
    """Nodes, workloads and asks by name, and budgets."""
    state = service.get(f"/v1/snapshots/{NAME}/state").json()
    asks = service.get(f"/v1/snapshots/{NAME}/asks").json()["items"]
    named = {f"{one['queue']}/{one['name']}": one for one in state.get("disruption_budgets", [])}
    nodes, workloads = {one["name"]: one for one in state.get("nodes", [])}, state.get("workloads", [])
    return nodes, {one["id"]: one for one in workloads}, {one["id"]: one for one in asks}, named


def wanted(found: Translated) -> tuple[dict[str, Any], ...]:
    budgets = {f"{one.queue}/{one.name}": one for one in found.budgets}
    return tuple(msgspec.to_builtins((found.nodes, found.workloads, found.asks, budgets)))


@pytest.mark.parametrize("engine", ["kueue", "kai", "yunikorn", "kube-scheduler"])
@examples(15)
@given(st.data())
def test_whatever_one_object_is_all_others_are_followed(
    engine: EngineName, service: TestClient, data: st.DataObject
) -> None:
    world = World(engine, data.draw(st.integers(0, 20)))
    for _ in range(60):
        world.change()
    following, keeper = Translator(engine), Keeper(Near(service), NAME, NAME)

    def told() -> Translated:
        found = following.translate(view := world.seen())
        keeper.keep(found, view.versions, writer=True)
        content = keeper.content()
        assert content is not None
        use_of(content, view.now)
        return found

    before = wanted(told())
    assert kept(service) == before, "all of it can be said"
    there = world.seen(again=True).items
    fields = [kind for kind in FOLLOWED[engine] if any(list(places(item)) for item in there[kind.name].values())]
    kind = data.draw(st.sampled_from(fields))
    key = data.draw(st.sampled_from([key for key, item in sorted(there[kind.name].items()) if list(places(item))]))
    item = there[kind.name][key]
    odd = changed(item, data.draw(st.sampled_from(list(places(item)))), data.draw(ODD))
    world.mirror.apply(kind, Event(False, trimmed(kind.name, odd), "odd"))
    found = told()
    said = keeper.left_out() + keeper.refused
    whole, have = wanted(found), kept(service)
    for all_of, had in zip(whole, have, strict=True):
        assert had.items() <= all_of.items()
        for name in all_of.keys() - had.keys():
            work = all_of[name]
            on = {task.get("node") for task in work.get("tasks", ())} | {work.get("queue"), name}
            assert keeper.refused or any(about and about in one.detail for about in on for one in said), name
    assert len(said) < MOST_CARRIED
    world.mirror.apply(kind, Event(False, item, "mended"))
    told()
    assert (kept(service), keeper.left_out(), keeper.refused) == (before, [], [])
