"""The page of one cluster: agreement over time, findings in pages, evictions; reached from where its name stands."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.clusters.router import EXAMPLE as REPORT
from app.clusters.shadow import EXAMPLE as PREEMPTION
from tests.console.browser.conftest import LOOKS, Site, Visiting
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
        page.locator(".chart canvas").wait_for()
        assert findings(page) == []
        fits(page, width)
        somebody.picture(f"cluster-{width}-{'dark' if dark else 'light'}")
        real = page.get_by_role("region", name="Real preemptions")
        assert real.locator("tbody tr").count() == 4
        assert "ml/gone" in page.get_by_role("region", name="Who was evicted").inner_text()
        assert page.locator("#findings li").count() == 50
        page.get_by_role("navigation", name="Pages of findings").get_by_role("link", name="Next").click()
        page.get_by_text("51–70 of 70").wait_for()
        page.get_by_label("Outcome").select_option("differs")
        page.get_by_role("search", name="Comparisons").get_by_role("button", name="Filter").click()
        page.wait_for_url("**outcome=differs**")
        assert real.locator("tbody tr").count() == 1


def reported(site: Site, name: str) -> None:
    found = [
        {"rule": "import.skipped", "severity": "warning", "pointer": f"/queues/{i}", "detail": "left out"}
        for i in range(70)
    ]
    where = f"/v1/clusters/{name}"
    site.call("PUT", where, {**REPORT, "findings": found, "lag_seconds": 2.5})
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
        assert "nowhere" in page.locator("main").inner_text()
