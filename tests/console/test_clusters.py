"""The page of followed clusters: what followers reported, and real preemptions with how they differ."""

import html
import re

import psycopg
from starlette.testclient import TestClient

from app.clusters.router import EVICTION
from app.clusters.router import EXAMPLE as REPORT
from app.clusters.shadow import EXAMPLE as PREEMPTION

FINDING = {"rule": "import.skipped", "severity": "warning", "pointer": "/queues/0", "detail": "a <b>field</b> is left"}
COUNTS = {"nodes": 3, "workloads": 1234, "tasks": 5, "reservations": 0, "asks": 7}
TRUE = [{"workload": "sweep-17", "reason": "InCohortReclamation"}]


def test_reports_and_preemptions_are_shown(service: TestClient) -> None:
    assert "arbiter follow" in service.get("/clusters").text
    report = {**REPORT, "findings": [FINDING], "counts": COUNTS, "lag_seconds": 2.5, "error": "no more watches"}
    assert service.put("/v1/clusters/prod", json=report).status_code == 200
    shown = service.get("/clusters").text
    for told in ("prod", "Workload", "1\u202f234 workloads run, 7 wait", "2.5 s", "no more watches", "&lt;b&gt;field"):
        assert told in shown, told
    assert 'class="empty"' not in shown
    document = {"engine": report["engine"], "queues": [{"name": "q"}]}
    service.put(f"/v1/configurations/{report['configuration']}", json=document).raise_for_status()
    page = service.get(f"/configurations/{report['configuration']}").text
    for told in ("Followed from prod", "1 finding<", "&lt;b&gt;field", "no more watches"):
        assert told in page, told
    ids = {v["workload"]: service.post("/v1/shadow", json={**PREEMPTION, "victims": [v]}).json()["id"]
           for v in ({"workload": "nobody"}, *TRUE)}  # fmt: skip
    shown = service.get("/clusters").text
    linked = re.findall(r"/clusters/preemptions/([^/]+)/request.json", shown)
    assert linked == [ids["nobody"]]
    assert "evicted, though Arbiter would not: nobody" in shown
    kept = service.get(f"/clusters/preemptions/{linked[0]}/request.json")
    assert kept.json() == service.get(f"/v1/shadow/{linked[0]}/request").json()
    assert service.get(f"/clusters/preemptions/{ids['sweep-17']}/request.json").status_code == 404
    agreed = service.get("/clusters?outcome=agreed")
    assert (agreed.status_code, "sweep-17" in agreed.text, "/request.json" in agreed.text) == (200, True, False)
    assert service.get("/clusters?outcome=unknown").status_code == 422


def test_a_configuration_that_is_held_is_said_where_it_is_looked_at(service: TestClient) -> None:
    name = REPORT["configuration"]
    document = {"engine": REPORT["engine"], "queues": [{"name": "q"}]}
    service.put(f"/v1/configurations/{name}", json=document).raise_for_status()
    for held, shown in (("2026-03-02T09:30:00Z", True), (None, False)):
        service.put("/v1/clusters/prod", json={**REPORT, "held_since": held}).raise_for_status()
        (follower,) = service.get("/v1/clusters/prod").json()["followers"]
        assert follower.get("held_since") == held
        for page in ("/clusters", "/clusters/prod", f"/configurations/{name}"):
            text = service.get(page).text
            assert ("not what the cluster says since" in text) == shown, page
            assert ("2026-03-02T09:30:00Z" in text) == shown, page


def test_evictions_are_found_by_their_queue_and_job(service: TestClient) -> None:
    service.put("/v1/clusters/prod", json=REPORT).raise_for_status()
    others = {"workload": "ml/job-sweep-1", "job": "ml/sweep", "queue": "others"}
    said = [EVICTION, {**EVICTION, **others, "at": "2026-11-22T12:00:01Z"}]
    service.post("/v1/clusters/prod/evictions", json={"engine": "kueue", "evictions": said}).raise_for_status()
    for asked, shown in (
        ("", ["sweep", "train"]), ("queue=research", ["train"]), ("job=ml/sweep", ["sweep"]),
        ("queue=others&job=ml/train", []), ("queue=research&outcome=agreed", ["train"]),
    ):  # fmt: skip
        page = service.get(f"/clusters/prod?{asked}")
        found = {name for name in ("train", "sweep") if f"ml/job-{name}-" in page.text}
        assert (page.status_code, sorted(found)) == (200, shown), asked
    assert "an eviction of these" in service.get("/clusters/prod?queue=others&job=ml/train").text
    assert 'name="outcome" value="agreed"' in page.text


def test_who_was_not_heard_of_for_a_minute_follows_nothing(service: TestClient, database_url: str) -> None:
    service.put("/v1/clusters/prod", json=REPORT).raise_for_status()
    assert "✓ following" in service.get("/clusters/prod").text
    with psycopg.connect(database_url.replace("+psycopg", "", 1), autocommit=True) as connection:
        connection.execute("update cluster_followers set reported_at = now() - interval '2 minutes'")
    for page in ("/clusters", "/clusters/prod"):
        shown = service.get(page).text
        assert "◷ silent for 2 min" in shown
        assert "✓ following" not in shown


def test_the_log_has_spans_that_people_look_at(service: TestClient) -> None:
    shown = service.get("/decisions?engine=kueue").text
    spans = re.findall(r'href="(/decisions[^"]*since=[^"]*)"', shown)
    assert [html.unescape(one) for one in spans] == [f"/decisions?engine=kueue&since={of}" for of in ("1h", "1d", "7d")]
    assert all(service.get(html.unescape(one)).status_code == 200 for one in spans)
    assert service.get("/decisions?since=2026-03-02+09:30:00&until=2026-03-02T09:30:00Z").status_code == 200
