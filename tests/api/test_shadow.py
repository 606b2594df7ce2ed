"""``/v1/shadow``: real preemptions, compared, listed, counted and forgotten in time."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.cli import run
from app.clusters.router import EVICTION
from app.clusters.shadow import EXAMPLE
from app.service.main import create_app
from tests.unit.solver.engines.kueue.cluster import asks, configuration, queue, runs

TRUE = [{"workload": "sweep-17", "reason": "InCohortReclamation"}]


def report(service: TestClient, **fields: Any) -> dict[str, Any]:
    answer = service.post("/v1/shadow", json={**EXAMPLE, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_what_agrees_and_what_differs_and_how(service: TestClient) -> None:
    assert report(service, victims=TRUE)["outcome"] == "agreed"
    silent = report(service, victims=[{"workload": "sweep-17"}])
    assert (silent["outcome"], silent["has_request"]) == ("agreed", False)
    other = report(service, victims=[{"workload": "sweep-17", "reason": "InClusterQueue"}])
    assert other["outcome"] == "differs"
    assert other["detail"] == (
        "Arbiter says preempt; evicted, though Arbiter would not: sweep-17 (InClusterQueue); "
        "not evicted, though Arbiter would: sweep-17 (InCohortReclamation)"
    )
    more = report(service, victims=[*TRUE, {"workload": "gone"}])
    assert (more["not_expected"], more.get("not_observed")) == ([{"workload": "gone"}], [])
    why = "the cluster was listed anew meanwhile"
    unjudged = report(service, requests=[], unjudged=why)
    assert (unjudged["outcome"], unjudged["detail"]) == ("unjudged", why)
    counted = service.get("/metrics").text
    causes = (("agreed", "same", 2), ("differs", "victims", 1), ("differs", "reasons", 1), ("unjudged", "unknown", 1))
    for outcome, cause, count in causes:
        assert f'arbiter_shadow_total{{cause="{cause}",engine="kueue",outcome="{outcome}"}} {count}.0' in counted
    for outcome, count in (("agreed", 2), ("differs", 2), ("unjudged", 1)):
        assert len(service.get("/v1/shadow", params={"outcome": outcome}).json()["items"]) == count
    for _, cause, count in causes:
        assert len(service.get("/v1/shadow", params={"cause": cause}).json()["items"]) == count
    assert service.get("/v1/shadow", params={"cause": "luck"}).status_code == 422


@pytest.mark.parametrize(("weight", "cause"), [(1, "tie"), (2, "victims")])
def test_what_the_scheduler_chooses_by_chance_is_a_tie(
    service: TestClient, tmp_path: Path, capsys: pytest.CaptureFixture[str], weight: int, cause: str
) -> None:
    """Cohorts of equal share: Kueue goes into either, Arbiter into the first by name."""
    of = configuration(
        queue("root", role="cohort"), queue("left", parent="root"),
        queue("right", parent="root", weight=weight), queue("l", 0, "left"), queue("r", 0, "right"),
        queue("own", 4, "root", preemption={"reclaim_within_cohort": "Any"}), fair=True,
    )  # fmt: skip
    workloads = [runs("in-l", "l", 2), runs("in-r", "r", 2)]
    request = {
        "configuration": of,
        "state": {"workloads": workloads},
        "asks": [asks("a", "own", 2)],
        "now": "2026-11-22T12:00:00Z",
    }
    found = report(service, ask="a", requests=[request], victims=[{"workload": "in-r"}])
    assert (found["outcome"], found["cause"]) == ("differs", cause), found
    gone = report(service, ask="a", requests=[request], victims=[{"workload": "in-l"}, {"workload": "in-r"}])
    assert gone["cause"] == "victims", "who is evicted beside the one is no matter of chance"


def test_it_agrees_if_one_of_the_moments_does(service: TestClient) -> None:
    (before,) = EXAMPLE["requests"]
    empty = {**before, "state": {}}
    assert report(service, victims=TRUE, requests=[empty, before])["outcome"] == "agreed"
    neither = report(service, victims=TRUE, requests=[empty, empty])
    assert neither["detail"].startswith("Arbiter says admit")


def test_pages_filters_and_the_request_of_a_difference(
    service: TestClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [report(service, cluster=name, seen_at=f"2026-11-22T12:00:0{i}Z")["id"] for i, name in enumerate("abab")]
    first = service.get("/v1/shadow", params={"limit": 3}).json()
    rest = service.get("/v1/shadow", params={"limit": 3, "cursor": first["next_cursor"]}).json()
    assert [one["id"] for one in first["items"] + rest["items"]] == made[::-1]
    assert "next_cursor" not in rest
    asked = {"cluster": "a", "engine": "kueue", "ask": EXAMPLE["ask"], "since": "2026-11-22T12:00:01Z"}
    assert [one["id"] for one in service.get("/v1/shadow", params=asked).json()["items"]] == [made[2]]
    assert service.get("/v1/shadow", params={"until": "2026-11-22T12:00:00Z"}).json()["items"] == []
    assert service.get("/v1/shadow", params={"cursor": "x"}).status_code == 400
    file = tmp_path / "request.json"
    file.write_bytes(service.get(f"/v1/shadow/{made[0]}/request").content)
    assert json.loads(file.read_bytes())["asks"] == EXAMPLE["requests"][0]["asks"]
    assert run(["explain", "-f", str(file)]) == 1
    assert "sweep-17" in capsys.readouterr().out
    agreed = report(service, victims=TRUE)["id"]
    assert service.get(f"/v1/shadow/{agreed}").json()["outcome"] == "agreed"
    assert service.get(f"/v1/shadow/{agreed}/request").status_code == 404


def test_what_is_not_whole_by_itself_is_refused_and_not_kept(service: TestClient) -> None:
    both = copy.deepcopy(EXAMPLE["requests"][0])
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("/requests", {"requests": []}),
        ("/requests", {"unjudged": "why"}),
        ("/requests/0/state/snapshot", {"requests": [{**both, "state": {"snapshot": "production"}}]}),
        ("/requests/0/configuration", {"requests": [{**both, "configuration": "production"}]}),
        ("/requests/0/asks", {"requests": [{**both, "asks": "pending"}]}),
        ("/requests/0/asks", {"ask": "nobody"}),
        ("/requests/0/asks/0/queue", {"requests": [{**both, "asks": [{**both["asks"][0], "queue": "nowhere"}]}]}),
        ("/victims", {"victims": []}),
    ]
    for pointer, fields in wrong:
        answer = service.post("/v1/shadow", json={**EXAMPLE, **fields})
        assert answer.status_code == 422, answer.text
        assert pointer in {error["pointer"] for error in answer.json()["errors"]}, (pointer, answer.text)
    assert service.get("/v1/shadow").json()["items"] == []


def test_only_the_newest_are_kept(settings: Settings) -> None:
    with TestClient(create_app(settings.model_copy(update={"shadow_retention_entries": 2}))) as service:
        made = [report(service)["id"] for _ in range(3)]
        assert [one["id"] for one in service.get("/v1/shadow").json()["items"]] == [made[2], made[1]]
    for bound in ({"shadow_retention_bytes": 1}, {"shadow_retention_days": 1e-9}):
        with TestClient(create_app(settings.model_copy(update=bound))) as service:
            last = report(service)["id"]
            assert [one["id"] for one in service.get("/v1/shadow").json()["items"]] in ([], [last])


def test_comparisons_are_found_by_who_was_evicted(service: TestClient) -> None:
    kept = report(service, victims=TRUE)
    report(service, victims=TRUE)
    seen = {"at": "2026-11-22T12:00:00Z", "workload": "sweep-17", "queue": "research", "shadow": kept["id"]}
    body = {"engine": "kueue", "evictions": [seen]}
    assert service.post("/v1/clusters/production/evictions", json=body).status_code == 204
    for filters, count in (({"workload": "sweep-17"}, 2), ({"queue": "research"}, 1), ({"workload": "x"}, 0), ({}, 2)):
        found = service.get("/v1/shadow", params=filters).json()["items"]
        assert len(found) == count, filters
    (one,) = service.get("/v1/clusters/production/evictions", params={"workload": "sweep-17"}).json()["items"]
    assert (one["shadow"], one["cluster"], one["engine"]) == (kept["id"], "production", "kueue")


def test_agreement_is_counted_over_time(service: TestClient) -> None:
    for minute in (0, 1, 59):
        report(service, cluster="a", seen_at=f"2026-11-22T12:{minute:02}:30Z", victims=TRUE)
    report(service, cluster="a", seen_at="2026-11-22T12:01:40Z")
    report(service, cluster="b", seen_at="2026-11-22T12:01:40Z")
    report(service, cluster="a", seen_at="2026-11-22T13:00:00Z")
    span = {"since": "2026-11-22T12:00:00Z", "until": "2026-11-22T13:00:00Z"}
    counted = service.get("/v1/shadow:counts", params={"cluster": "a", **span}).json()
    assert (counted["since"], counted["until"], len(counted["intervals"])) == (*span.values(), 60)
    told = {one["at"][14:16]: one["outcomes"] for one in counted["intervals"] if one["outcomes"]}
    assert told == {"00": {"agreed": 1}, "01": {"agreed": 1, "differs": 1}, "59": {"agreed": 1}}
    assert counted["causes"] == {"agreed": {"same": 3}, "differs": {"victims": 1}}
    only = service.get("/v1/shadow:counts", params={"cluster": "a", "outcome": "differs", **span}).json()
    assert only["causes"] == {"differs": {"victims": 1}}
    assert [one["outcomes"] for one in only["intervals"] if one["outcomes"]] == [{"differs": 1}]
    assert service.get("/v1/shadow:counts").json()["intervals"][-1]["outcomes"] == {}


def test_comparisons_are_found_by_whom_they_stopped(service: TestClient) -> None:
    """By the workload, its job and its queue: each alone and together, of what followers saw."""
    kept, other = report(service), report(service)
    for one, name in ((kept, "a"), (other, "b")):
        seen = {
            **EVICTION,
            "workload": f"ml/{name}",
            "job": f"ml/job-{name}",
            "queue": f"q-{name}",
            "shadow": one["id"],
        }
        service.post("/v1/clusters/c/evictions", json={"engine": "kueue", "evictions": [seen]}).raise_for_status()

    def found(**filters: str) -> list[str]:
        return [one["id"] for one in service.get("/v1/shadow", params=filters).raise_for_status().json()["items"]]

    a, b = {"workload": "ml/a", "job": "ml/job-a", "queue": "q-a"}, {"job": "ml/job-b", "queue": "q-b"}
    assert found() == [other["id"], kept["id"]]
    for name, value in a.items():
        assert found(**{name: value}) == [kept["id"]], name
    assert found(**a) == [kept["id"]]
    assert found(**b) == [other["id"]]
    assert found(**a | b) == []
    assert found(workload="ml/a", job="ml/job-b") == []
