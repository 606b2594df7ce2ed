"""What a follower keeps: why a snapshot is put whole is counted, however its loss is noticed."""

from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from app.following.grouped import Translated, translate
from app.following.keeping import ApiError, Arbiter, Keeper, Reply
from app.following.translator import Translator
from app.solver.model.configuration import Configuration, EngineName, Queue
from tests.support.changing import World

NAME = "kept"


class Near(Arbiter):
    """The service of a test."""

    def __init__(self, service: TestClient) -> None:
        self._service = service

    def ask(self, method: str, *path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        content = None if body is None else msgspec.json.encode(body)
        sent = {"Content-Type": "application/json"} | (headers or {})
        answer = self._service.request(method, "/".join(["/v1", *path]), content=content, headers=sent)
        if answer.status_code < 300:
            return Reply(answer.content, answer.headers.get("ETag"))
        raise ApiError(answer.status_code, answer.json().get("code") or "", answer.text)


def translated() -> Translated:
    configuration = Configuration(engine="kueue", queues=[Queue(name="q")])
    return Translated(configuration, nodes={}, workloads={}, asks={}, findings=[], local_queues={}, priority_classes={})


@pytest.mark.parametrize("engine", ["kueue", "kai", "yunikorn"])
def test_after_any_sequence_of_changes_the_snapshot_is_what_a_list_gives(
    engine: EngineName, service: TestClient
) -> None:
    world, following, keeper = World(engine, 4711), Translator(engine), Keeper(Near(service), NAME, NAME)
    for step in range(151):
        world.change()
        if step % 60 == 59:
            world.reconfigure()
        if step % 2 == 0:
            found = following.translate(view := world.seen())
            keeper.keep(found, view.versions, writer=True)
    wanted = translate(engine, world.seen(again=True))
    kept = service.get(f"/v1/snapshots/{NAME}/state").json()
    assert {one["name"]: one for one in kept.get("nodes", [])} == plain(wanted.nodes)
    assert {one["id"]: one for one in kept.get("workloads", [])} == plain(wanted.workloads)
    asks = service.get(f"/v1/snapshots/{NAME}/asks").json()["items"]
    assert {one["id"]: one for one in asks} == plain(wanted.asks)
    assert wanted.workloads
    assert wanted.asks
    assert keeper.puts.keys() == {"configuration"}


def plain(found: Any) -> Any:
    """As the service shows it."""
    return msgspec.json.decode(msgspec.json.encode(found))


def lose(service: TestClient) -> None:
    service.delete(f"/v1/snapshots/{NAME}").raise_for_status()


def change(service: TestClient) -> None:
    generation = service.get(f"/v1/snapshots/{NAME}").json()["generation"]
    service.post(f"/v1/snapshots/{NAME}/deltas", json={"generation": generation}).raise_for_status()


@pytest.mark.parametrize("looked", [False, True], ids=["by a change", "by a look"])
@pytest.mark.parametrize(("mishap", "why"), [(lose, "snapshot_lost"), (change, "stale_generation")])
def test_a_snapshot_that_is_not_as_it_was_left_is_put_again_and_counted(
    service: TestClient, mishap: Any, why: str, looked: bool
) -> None:
    keeper = Keeper(Near(service), NAME, NAME)
    keeper.keep(translated(), {}, writer=True)
    assert keeper.check()
    mishap(service)
    if looked:
        assert not keeper.check()
    keeper.keep(translated(), {}, writer=True)
    assert keeper.puts == {"configuration": 1, why: 1}
    keeper.keep(translated(), {}, writer=True)
    assert keeper.puts.total() == 2
    assert keeper.check()
