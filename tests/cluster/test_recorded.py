"""Recorded decisions of KAI and YuniKorn, played into an API server as their schedulers would; Kueue's: test_shadow."""

import json
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.cli import run
from app.following.follower import Follower
from app.solver.model.configuration import EngineName
from tests.cluster.following import eventually, following
from tests.cluster.recorded import expressible
from tests.cluster.recorded.made import SPACE, Item, Recorded
from tests.cluster.server import Cluster
from tests.support.changes import account
from tests.support.shadow import records

MOST = 24
"""Decisions of an engine that are played; the unit tests have all of them."""


def chosen(engine: EngineName) -> list[list[Recorded]]:
    """Decisions that are played together: those of the same settings, the commonest first."""
    every = sorted(expressible(engine), key=_settings)
    alike = sorted((list(of) for _, of in groupby(every, _settings)), key=len, reverse=True)
    found: list[list[Recorded]] = []
    for of in alike:
        found.append(of[: MOST - sum(map(len, found))])
    return [of for of in found if of]


def _settings(one: Recorded) -> str:
    return json.dumps(one.settings, sort_keys=True)


class Stage:
    """One cluster after the other in the same API server, followed all the time."""

    def __init__(self, cluster: Cluster, arbiter: httpx2.Client, name: str) -> None:
        self._cluster, self._arbiter, self._name = cluster, arbiter, name
        self._there: list[Item] = []

    def configure(self, engine: EngineName, settings: Item) -> None:
        """Have these settings of the engine, as an administrator would."""

        def done() -> bool:
            path = f"/v1/configurations/{self._name}"
            now = self._arbiter.get(path)
            first = {"engine": engine, "queues": [{"name": "root"}]}
            document = now.json()["configuration"] if now.status_code == 200 else first
            tag = {"If-Match": now.headers["ETag"]} if now.status_code == 200 else {"If-None-Match": "*"}
            return self._arbiter.put(path, json=document | {"settings": settings}, headers=tag).status_code < 300

        eventually(done)

    def play(self, one: Recorded, told: dict[str, Item], follower: Follower) -> None:
        """Have the cluster of ``one``, and once the follower has it, evict those that ``told`` tells of, of which it
        knows before anything else comes: kinds are watched apart, so that it could hear of the next cluster first."""
        revision = self._cluster.restore(one.objects, self._there)
        touched = {item["kind"] for item in [*one.objects, *self._there]}
        self._there = one.objects
        eventually(lambda: heard(follower, touched, revision))
        for pod, event in told.items():
            gone = self._cluster.call("DELETE", f"/api/v1/namespaces/{SPACE}/pods/{pod}")
            said = self._cluster.call("POST", self._cluster.path(event), event)
            for item in (gone, said):
                eventually(lambda of=item: heard(follower, [of["kind"]], int(of["metadata"]["resourceVersion"])))

    def leave(self) -> None:
        """No object is left."""
        self._cluster.restore([], self._there)


def heard(follower: Follower, kinds: Iterable[str], revision: int) -> bool:
    """Whether the follower knows of all ``kinds`` what they were at ``revision``."""
    known = {of.kind.name: of.version for of in follower.pulse().kinds}
    return all(int(known[kind] or 0) >= revision for kind in kinds)


@pytest.mark.parametrize("engine", ["kai", "yunikorn"])
def test_what_was_recorded_agrees_and_what_was_not_differs(
    engine: EngineName, kubernetes: Cluster, arbiter: httpx2.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    groups, name = chosen(engine), f"played-{engine}"
    planted = next(one for one in groups[0] if one.others)
    missed, instead = next(iter(planted.victims)), next(iter(planted.others))
    stage = Stage(kubernetes, arbiter, name)
    played = 0
    token = account(kubernetes, engine, shadow=True)
    stage.configure(engine, groups[0][0].settings)
    with following(kubernetes, arbiter, engine, name, token, shadow=True) as follower:
        eventually(lambda: follower.pulse().age is not None)
        for group in groups:
            stage.configure(engine, group[0].settings)
            for one in group:
                others = {instead: one.others[instead]} if one is planted else {}
                told = {pod: event for pod, event in one.victims.items() if not others or pod != missed}
                stage.play(one, told | others, follower)
            played += len(group)
            eventually(lambda most=played: records(arbiter, name, most))
    stage.leave()
    found: dict[str, dict[str, Any]] = {one["ask"]: one for one in records(arbiter, name, played) or []}
    wanted = {one.ask: "agreed" for group in groups for one in group} | {planted.ask: "differs"}
    assert {ask: one["outcome"] for ask, one in found.items()} == wanted, [
        one for one in found.values() if one["outcome"] != wanted.get(one["ask"])
    ]
    differing = found[planted.ask]
    assert [one["task"].rpartition("/")[2] for one in differing["not_observed"]] == [missed]
    assert [one["task"].rpartition("/")[2] for one in differing["not_expected"]] == [instead]
    file = tmp_path / "request.json"
    file.write_bytes(arbiter.get(f"/v1/shadow/{differing['id']}/request").content)
    assert run(["explain", "-f", str(file)]) == 1
    assert differing["not_observed"][0]["task"] in capsys.readouterr().out
