"""The page of one cluster: agreement over time, findings in pages, evictions; reached from where its name stands."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import expect

from app.clusters.router import EXAMPLE as REPORT
from app.clusters.router import USE
from app.clusters.shadow import EXAMPLE as PREEMPTION
from tests.browser.conftest import LOOKS, Site, Visiting
from tests.support.pages import findings, fits

TRUE = [{"workload": "sweep-17", "reason": "InCohortReclamation"}]


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_one_cluster_with_agreement_over_time(visit: Visiting, site: Site, width: int, *, dark: bool) -> None:
    name = f"site-{width}-{dark}"
    reported(site, name)
    with visit("read") as somebody:
        page = somebody.go("/clusters")
        somebody.look(width=width, dark=dark)
        page.get_by_role("heading", name=name).get_by_role("link").click()
        page.get_by_text("66.7 % of 3 preemptions").wait_for()
        page.locator(".chart[data-series] canvas").wait_for()
        used = page.get_by_role("img", name="What all queues together used of nvidia.com/gpu")
        used.scroll_into_view_if_needed()
        used.locator("canvas").wait_for()
        expect(used.locator(".u-legend")).to_contain_text("in a100", use_inner_text=True)
        assert findings(page) == []
        fits(page, width)
        somebody.picture(f"cluster-{width}-{'dark' if dark else 'light'}")
        real = page.get_by_role("region", name="Real preemptions")
        expect(real.locator("tbody tr")).to_have_count(4)
        expect(page.get_by_role("region", name="Who was evicted")).to_contain_text("ml/gone", use_inner_text=True)
        expect(page.locator("#findings li")).to_have_count(50)
        page.get_by_role("navigation", name="Pages of findings").get_by_role("link", name="Next").click()
        page.get_by_text("51–70 of 70").wait_for()
        page.get_by_label("Outcome").select_option("differs")
        page.get_by_role("search", name="Comparisons").get_by_role("button", name="Filter").click()
        page.wait_for_url("**outcome=differs**")
        expect(real.locator("tbody tr")).to_have_count(1)
        page.get_by_role("link", name="agreed, same: 2").click()
        page.wait_for_url("**outcome=agreed&cause=same**")
        expect(real.locator("tbody tr")).to_have_count(2)


def reported(site: Site, name: str) -> None:
    found = [
        {"rule": "import.skipped", "severity": "warning", "pointer": f"/queues/{i}", "detail": "left out"}
        for i in range(70)
    ]
    where = f"/v1/clusters/{name}"
    site.call("PUT", where, {**REPORT, "findings": found, "lag_seconds": 2.5})
    for minutes in (0, 20, 60):
        now = f"{datetime.now(UTC) - timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"
        site.call("POST", f"{where}/use", {**USE, "at": now})
    gone = {"at": "2026-11-22T12:00:00Z", "workload": "ml/gone", "by": "ml/serve", "reason": "Preempted"}
    site.call("POST", f"{where}/evictions", {"engine": "kueue", "evictions": [gone]})
    kinds: list[dict[str, Any]] = [
        {"victims": TRUE},
        {"victims": TRUE},
        {},
        {"requests": [], "unjudged": "listed anew"},
    ]
    for hours, one in enumerate(kinds):
        seen_at = f"{datetime.now(UTC) - timedelta(hours=hours, minutes=1):%Y-%m-%dT%H:%M:%SZ}"
        site.call("POST", "/v1/shadow", {**PREEMPTION, "cluster": name, "seen_at": seen_at, **one})


def test_a_cluster_that_is_not_followed_is_said(visit: Visiting) -> None:
    with visit("read") as somebody:
        somebody.expected = ("404",)
        page = somebody.go("/clusters/nowhere")
        expect(page.locator("main")).to_contain_text("nowhere", use_inner_text=True)


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_use_of_a_queue_over_time(visit: Visiting, site: Site, width: int, *, dark: bool) -> None:
    site.call("PUT", "/v1/clusters/used", {**REPORT, "configuration": "example"})
    site.call("POST", "/v1/clusters/used/use", {**USE, "at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"})
    with visit("read") as somebody:
        page = somebody.go("/queues/of?configuration=example&queue=research&snapshot=now")
        somebody.look(width=width, dark=dark)
        used = page.get_by_role("img", name="What research used of nvidia.com/gpu")
        used.locator("canvas").wait_for()
        expect(used.locator(".u-legend")).to_contain_text("in a100", use_inner_text=True)
        assert findings(page) == []
        fits(page, width)
        page.get_by_role("heading", name="What it used in used").get_by_role("link").click()
        page.get_by_role("heading", name="What it used, the last day").wait_for()
    site.call("DELETE", "/v1/clusters/used")
