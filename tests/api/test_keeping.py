"""What a follower keeps: why a snapshot is put whole is counted, however its loss is noticed."""

from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from app.following.arbiter import Arbiter, Refused, Reply
from app.following.keeping import Keeper
from app.following.translating import Translated
from app.solver.model.configuration import Configuration, Queue

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
        raise Refused(answer.status_code, answer.json().get("code") or "", answer.text)


def translated() -> Translated:
    configuration = Configuration(engine="kueue", queues=[Queue(name="q")])
    return Translated(configuration, nodes={}, workloads={}, asks={}, findings=[], local_queues={}, classes={})


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
