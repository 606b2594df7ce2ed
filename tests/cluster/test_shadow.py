"""Real preemptions beside Arbiter's: recorded decisions of Kueue are played into an API server, as it would."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.cli import run
from tests.cluster import kueue, playing
from tests.cluster.following import eventually, following, kept
from tests.cluster.server import Cluster
from tests.support.shadow import records

AT = "2026-11-22T09:00:00Z"
SETTINGS: dict[bool, dict[str, Any]] = {
    False: {},
    True: {"fair_sharing": True, "preemption_strategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
}
PLAYED = 8


def preempt(cluster: Cluster, ask: str, victims: list[dict[str, Any]]) -> None:
    """What Kueue does to ``victims``."""
    space, name = ask.split("/")
    path = f"/apis/kueue.x-k8s.io/v1beta1/namespaces/{space}/workloads/{name}"
    uid = cluster.call("GET", path)["metadata"]["uid"]
    for victim in victims:
        cluster.call("PATCH", cluster.path(victim, named=True), playing.evicted(victim, uid, AT))


@pytest.mark.parametrize("fair", [False, True], ids=["classic", "fair"])
def test_what_kueue_did_agrees_and_what_it_would_not_have_done_differs(
    fair: bool, kubernetes: Cluster, arbiter: httpx2.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"shadow-{fair}".lower()
    configuration = {"engine": "kueue", "settings": {"kueue": SETTINGS[fair]}}
    arbiter.put(f"/v1/configurations/{name}", json=configuration, headers={"If-None-Match": "*"}).raise_for_status()
    chosen = playing.chosen(PLAYED, fair=fair)
    assert len(chosen) == PLAYED
    all_played = [playing.played(vector, f"p{i}-") for i, vector in enumerate(chosen)]
    for one in all_played:
        kubernetes.apply(*one.objects)
    waiting = {one.ask for one in all_played}
    planted = next(one for one in all_played if one.others)
    true = [one for one in all_played if one is not planted]
    with following(kubernetes, arbiter, "kueue", name, shadow=True):
        eventually(lambda: kept(arbiter, name).get("asks", {}).keys() == waiting)
        for one in true:
            preempt(kubernetes, one.ask, one.victims)
        preempt(kubernetes, planted.ask, [*planted.victims[1:], planted.others[0]])
        found = {one["ask"]: one for one in eventually(lambda: records(arbiter, name, PLAYED))}
    assert found.keys() == waiting
    differing = found.pop(planted.ask)
    assert {ask: one["outcome"] for ask, one in found.items()} == dict.fromkeys(found, "agreed"), found
    for one in true:
        wanted = {(f"{kueue.SPACE}/{victim['metadata']['name']}", victim["reason"]) for victim in one.victims}
        assert {(victim["workload"], victim["reason"]) for victim in found[one.ask]["observed"]} == wanted
    assert differing["outcome"] == "differs"
    assert [victim["workload"] for victim in differing["not_observed"]] == [
        f"{kueue.SPACE}/{planted.victims[0]['metadata']['name']}"
    ]
    assert [victim["workload"] for victim in differing["not_expected"]] == [
        f"{kueue.SPACE}/{planted.others[0]['metadata']['name']}"
    ]
    file = tmp_path / "request.json"
    file.write_bytes(arbiter.get(f"/v1/shadow/{differing['id']}/request").content)
    assert run(["explain", "-f", str(file)]) == 1
    assert differing["not_observed"][0]["workload"] in capsys.readouterr().out
    agreed, differs = (f'engine="kueue",outcome="{outcome}"}}' for outcome in ("agreed", "differs"))
    metrics = arbiter.get("/metrics").text
    assert agreed in metrics
    assert differs in metrics
