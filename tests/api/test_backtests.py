"""Backtests over HTTP: the log decided again under other configurations."""

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.cli import run
from app.db.database import Database
from app.decisions import repository
from app.decisions.schemas import ASK, DECISION, SITUATION
from app.solver.model.configuration import EngineName
from tests.cluster import kueue
from tests.cluster.recorded import expressible
from tests.support.recordings import about, began, course, evicted
from tests.support.streams import crowded
from tests.support.working import working

NAMED = {"name": "named", "set": {"queues.serving.kueue.preemption.reclaim_within_cohort": "Never"}}
NOTHING: dict[str, Any] = {}
SAME = {"name": "same"}
BROKEN = {"name": "broken", "set": {"queues.serving.quota.cpu.guaranteed": "much"}}


def made(service: TestClient, settings: Settings, request: dict[str, Any] = NOTHING) -> tuple[str, dict[str, Any]]:
    accepted = service.post("/v1/backtests", json={"variants": [SAME, NAMED, BROKEN], **request})
    assert accepted.status_code == 202, accepted.text
    assert accepted.json()["status"] == "queued"
    where = accepted.headers["location"]
    with working(settings) as worker:
        assert worker.once()
    return where, service.get(where).json()


def differences(service: TestClient, where: str, variant: str) -> list[dict[str, Any]]:
    answer = service.get(f"{where}/differences", params={"variant": variant})
    return [json.loads(line) for line in answer.text.splitlines()]


def logged(service: TestClient) -> list[str]:
    """Ids of decisions on an inline state, on a stored configuration, and on a snapshot that has moved on."""
    first = {"If-None-Match": "*"}
    assert service.put("/v1/configurations/prod", json=SITUATION["configuration"], headers=first).is_success
    snapshot = {"configuration": "prod", "state": SITUATION["state"]}
    assert service.put("/v1/snapshots/live", json=snapshot).is_success
    asks = {"asks": [ASK], "now": SITUATION["now"]}
    small = {**ASK, "id": "small", "tasks": [{"name": "m", "requests": {"cpu": 1}}]}
    questions = [
        DECISION,
        {**asks, "configuration": "prod", "state": SITUATION["state"]},
        {**asks, "state": {"snapshot": "live"}},
        {**DECISION, "asks": [small], "mode": "cycle"},
    ]
    found = [service.post("/v1/decisions", json=one).raise_for_status().json()["id"] for one in questions]
    gone = {"generation": 1, "workloads": {"remove": ["sweep-17"]}}
    assert service.post("/v1/snapshots/live/deltas", json=gone).is_success
    return found


def test_every_logged_decision_is_made_again_and_what_differs_is_told(service: TestClient, settings: Settings) -> None:
    ids = logged(service)
    where, told = made(service, settings)
    assert (told["status"], told["decisions"], told.get("skipped")) == ("done", 4, None), told
    same, named, broken = told["variants"]
    assert (same["same"], same["logged"]) == (4, same["here"])
    assert same["logged"] == {"asks": {"admit": 1, "preempt": 3}, "evictions": 3}
    assert (named["same"], named["differ"]) == (1, 3)
    assert named["here"] == {"asks": {"admit": 1, "wait": 3}}
    assert broken["refused"] == 4
    assert differences(service, where, "same") == []
    lines = differences(service, where, "named")
    assert [line["decision"] for line in lines] == ids[:3]
    assert lines[0]["differences"] == [
        {"ask": "chat-api", "field": "outcome", "values": {"logged": "preempt", "variant": "wait"}},
        {"ask": "chat-api", "field": "victims", "values": {"logged": ["sweep-17"], "variant": []}},
    ]
    (first, *_) = differences(service, where, "broken")
    assert first["problems"][0]["pointer"].endswith("/quota/cpu/guaranteed")
    assert service.get(f"{where}/differences", params={"variant": "other"}).status_code == 404
    assert service.get("/v1/backtests").json()["items"][0]["id"] == told["id"]
    assert service.delete(where).status_code == 204
    assert service.get(where).status_code == 404


def test_a_range_and_what_the_log_has_not_kept(service: TestClient, settings: Settings) -> None:
    ids = logged(service)
    entries = {item["id"]: item for item in service.get("/v1/decisions").json()["items"]}
    _, told = made(service, settings, {"since": entries[ids[2]]["created_at"], "queue": "research"})
    assert told["decisions"] == 1
    database = Database(settings.database_url, settings)
    with database.session() as session:
        session.execute(repository.decisions.update().values(kept_state=None))
    database.close()
    _, told = made(service, settings)
    assert (told["decisions"], told["skipped"], told["variants"][0]["same"]) == (4, 1, 3)
    (skipped,) = told["first_skipped"]
    assert (skipped["decision"], "has not kept" in skipped["reason"]) == (ids[2], True)


def test_bad_input_is_named(service: TestClient) -> None:
    def pointers(**request: Any) -> list[str]:
        answer = service.post("/v1/backtests", json={"variants": [SAME], **request})
        assert answer.status_code in (404, 422)
        return [error["pointer"] for error in answer.json()["errors"]]

    assert pointers(variants=[SAME, SAME]) == ["/variants/1/name"]
    assert pointers(variants=[]) == ["/variants"]
    assert pointers(variants=[{"name": str(i)} for i in range(21)]) == ["/variants"]
    assert pointers(since="2026-03-01T00:00:00Z", until="2026-03-01T00:00:00Z") == ["/since"]
    assert (
        service.post("/v1/backtests", json={"variants": [{"name": "a", "configuration": "nobody"}]}).status_code == 404
    )


def of_kueue() -> list[Any]:
    """`a` is evicted for `p`; then `b` for `p2`, where `a` should have been: that differs."""
    made = crowded()
    made.evict("a", "p")
    made.release("a")
    made.admit_alone("p", "q", {"cpu": "2"})
    made.wait(30)
    made.put(kueue.workload("p2", "l", 2, 10))
    made.wait(1)
    made.evict("p", "p2")
    return made.lines


def of_yunikorn() -> list[Any]:
    one = next(iter(expressible("yunikorn")))
    said = [{"at": one.at, "kind": item["kind"], "type": "ITEM", "object": item} for item in one.objects]
    kinds = dict.fromkeys(item["kind"] for item in one.objects)
    said += [{"at": one.at, "kind": kind, "type": "LISTED", "api_version": "v1"} for kind in kinds]
    events = one.victims.values()
    return [*said, *({"at": one.at, "kind": "Event", "type": "ADDED", "object": event} for event in events)]


def of_kube_scheduler() -> list[Any]:
    cluster = began("kube-scheduler")
    cluster.pod("two-0", 6, "n1", **about("kube-scheduler", "b", "two"))
    cluster.at(10)
    cluster.pod("one-0", 6, priority=9, **about("kube-scheduler", "a", "one"))
    cluster.at(12)
    cluster.put(evicted("kube-scheduler", "two-0", "one", cluster.time()))
    cluster.gone("Pod", "two-0")
    return cluster.lines


RECORDED: dict[EngineName, tuple[Callable[[], list[Any]], dict[str, Any], dict[str, Any]]] = {
    "kueue": (of_kueue, {}, {"set": {"queues.q.kueue.preemption.within_cluster_queue": "Never"}}),
    "kai": (lambda: course("kai").lines, {}, {"set": {"queues.a.quota.cpu.guaranteed": 1}}),
    "yunikorn": (of_yunikorn, {"yunikorn": {"rules": "shipped"}}, {"settings": {"yunikorn": {"preemption": False}}}),
    "kube-scheduler": (of_kube_scheduler, {}, {"engine": "kueue"}),
}
"""What an API server said, the settings that no object tells, and a change under which it is decided otherwise."""


@pytest.mark.parametrize("engine", list(RECORDED))
def test_a_recording_is_decided_again(
    service: TestClient, settings: Settings, engine: EngineName, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, own, change = RECORDED[engine]
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines())
    body: dict[str, Any] = {"variants": [SAME, {"name": "other", **change}], "engine": engine}
    body |= {"settings": own} if own else {}
    given = b64encode(zstandard.ZstdCompressor().compress(text)).decode()
    where, told = made(service, settings, {**body, "recording": given})
    left_out = 1 if engine == "kueue" else 0
    assert (told["status"], told["recording"], told.get("skipped", 0)) == ("done", True, left_out), told
    assert "until" not in told
    same, other = told["variants"]
    assert (same["same"], same["logged"]) == (1, same["here"])
    assert (other["differ"], other["logged"], told["decisions"]) == (1, same["logged"], 1 + left_out)
    assert same["logged"] == {"asks": {"preempt": 1}, "evictions": 1}
    (line,) = differences(service, where, "other")
    assert line["ask"]
    assert line["now"] == line["created_at"]
    assert "decision" not in line
    assert {one["ask"] for one in line["differences"]} == {line["ask"]}
    if left_out:
        (skipped,) = told["first_skipped"]
        assert (skipped["ask"], "not evicted, though Arbiter would" in skipped["reason"]) == ("default/p2", True)

    file, asked = tmp_path / "recording", tmp_path / "backtest.json"
    file.write_bytes(text)
    asked.write_bytes(msgspec.json.encode(body))
    words = ["follow", engine, "--replay", str(file), "--backtest", str(asked)]
    assert run([*words, "--json"]) == 1
    first, outcome = map(json.loads, capsys.readouterr().out.splitlines())
    assert (outcome["variants"], first) == (told["variants"], {"variant": "other", **line})
    assert run(words) == 1
    assert "other: 0 as they were, 1 otherwise, 0 refused; 1 evictions were made" in capsys.readouterr().out
    asked.write_bytes(msgspec.json.encode({**body, "actor": "somebody"}))
    assert run(words) == 3
    assert "/actor: of the log: a recording has none" in capsys.readouterr().err


def test_of_a_recording_what_is_wanted(service: TestClient, settings: Settings) -> None:
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in of_kueue())
    given = {"variants": [SAME], "recording": b64encode(text).decode(), "engine": "kueue"}
    wanted = {"queue": "q", "until": "2026-11-22T09:00:10Z"}
    assert made(service, settings, {**given, **wanted})[1]["variants"][0]["same"] == 1
    for unwanted in ({"queue": "other"}, {"since": "2026-11-22T09:00:10Z", "queue": "q2"}):
        assert made(service, settings, {**given, **unwanted})[1]["decisions"] == 0
    assert made(service, settings, {**given, "engine": "kai"})[1]["decisions"] == 0
    wrong = {"": "does not say whose cluster", "no recording": "line 1 is no JSON object"}
    for content, why in wrong.items():
        body = {"variants": [SAME], "recording": b64encode(content.encode()).decode()}
        _, told = made(service, settings, body | ({"engine": "kueue"} if content else {}))
        assert (told["status"], why in told["error"]) == ("failed", True), told
    refused = service.post("/v1/backtests", json={**given, "actor": "somebody", "configuration": "prod"})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/configuration", "/actor"]
    refused = service.post("/v1/backtests", json={"variants": [SAME], "settings": {"kueue": {"fair_sharing": True}}})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/settings"]
    refused = service.post("/v1/backtests", json={**given, "recording": "no base64!"})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/recording"]
