"""Real preemptions beside Arbiter's: recorded decisions are played into an API server, as their schedulers would."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.cli import run
from tests.cluster import kueue, playing, pods
from tests.cluster.following import eventually, following, kept, nodes
from tests.cluster.server import Cluster
from tests.cluster.test_changes import account

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


def records(arbiter: httpx2.Client, cluster: str, number: int) -> list[dict[str, Any]] | None:
    """What was compared, once it is so much."""
    found = arbiter.get("/v1/shadow", params={"cluster": cluster, "limit": 500}).json()["items"]
    return found if len(found) >= number else None


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
    agreed, differs = (
        f'arbiter_shadow_total{{engine="kueue",outcome="{outcome}"}}' for outcome in ("agreed", "differs")
    )
    metrics = arbiter.get("/metrics").text
    assert agreed in metrics
    assert differs in metrics


LATER = "2026-12-24T09:00:00Z"
"""No pod has run too short a time, or waited too short a time, by then."""


def test_what_kai_and_yunikorn_say_in_events_is_compared(kubernetes: Cluster, arbiter: httpx2.Client) -> None:
    nodes(kubernetes, "node-kai", "node-own", "node-other")
    kubernetes.apply(
        pods.yunikorn_queues(8),
        pods.kai_queue("parent", 4), pods.kai_queue("leaf", 4, "parent"),
        pods.pod_group("low", "leaf"), pods.pod_group("high", "leaf", "build-preemptible"),
        pods.kai_pod("low-0", "low", 4, "node-kai"), pods.kai_pod("high-0", "high", 4),
        pods.yunikorn_pod("spared", "own", "root.prod", 4, "node-own"),
        pods.yunikorn_pod("victim", "cheap", "root.dev", 4, "node-other"),
    )  # fmt: skip
    names = ("kai", "yunikorn")
    waits = {"kai": "default/high", "yunikorn": "default/asks"}
    with ExitStack() as running:
        for engine in names:
            token = account(kubernetes, engine, shadow=True)
            running.enter_context(following(kubernetes, arbiter, engine, f"shadow-{engine}", token, shadow=True))
        kubernetes.apply(pods.yunikorn_pod("asks", "fast", "root.prod", 4))
        for engine in names:
            eventually(lambda engine=engine: waits[engine] in kept(arbiter, f"shadow-{engine}").get("asks", {}))
        uid = kubernetes.call("GET", "/api/v1/namespaces/default/pods/asks")["metadata"]["uid"]
        why = f"Preempted by {uid} from application fast in root.prod"
        kubernetes.apply(pods.event("Pod", "victim", "Informational", why, LATER))
        (yunikorn,) = eventually(lambda: records(arbiter, "shadow-yunikorn", 1))
        # Nobody would take this one: its queue has no more than it is guaranteed.
        kubernetes.apply(pods.event("Pod", "spared", "Informational", why, LATER))
        found = eventually(lambda: records(arbiter, "shadow-yunikorn", 2))
        (planted,) = (one for one in found if one["id"] != yunikorn["id"])
        kubernetes.call("DELETE", "/api/v1/namespaces/default/pods/low-0")  # before it is told why
        why = "Pod default/low-0 was preempted by higher priority workload default/high"
        kubernetes.apply(pods.event("PodGroup", "low", "Evict", why, LATER))
        (kai,) = eventually(lambda: records(arbiter, "shadow-kai", 1))
    assert planted["outcome"] == "differs"
    assert [one["task"] for one in planted["not_expected"]] == ["default/spared"]
    assert [one["task"] for one in planted["not_observed"]] == ["default/victim"]
    assert kai["observed"] == [{"workload": "default/low", "task": "low-0", "reason": "preempt"}]
    assert (kai["ask"], kai["outcome"], kai["detail"]) == ("default/high", "agreed", "")
    assert yunikorn["observed"] == [{"workload": "cheap", "task": "default/victim"}]
    assert (yunikorn["ask"], yunikorn["outcome"], yunikorn["detail"]) == ("default/asks", "agreed", "")
