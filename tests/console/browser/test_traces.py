"""Stored traces: listed, looked at and forgotten, at both widths, dark and light."""

import json

import pytest

from tests.console.browser.conftest import LOOKS, Site, Visiting
from tests.console.browser.seeds import put_trace
from tests.support.pages import findings, fits


def stored(site: Site, name: str, jobs: int) -> None:
    """A trace whose jobs are of as many queues."""
    tasks = [{"name": "main", "count": 2, "requests": {"cpu": 1}}]
    lines = [
        json.dumps({"ask": {"id": f"j{i}", "queue": f"q{i:03}", "tasks": tasks}, "submitted_at": i, "duration": 60})
        for i in range(jobs)
    ]
    put_trace(site, name, "\n".join(lines))


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_a_trace_is_looked_at_and_forgotten(visit: Visiting, site: Site, width: int, *, dark: bool) -> None:
    name = f"week-{width}-{dark}"
    stored(site, name, 70)
    with visit("admin") as somebody:
        page = somebody.go("/")
        somebody.look(width=width, dark=dark)
        page.get_by_role("link", name="Traces").click()
        listed = page.get_by_role("region", name="Traces")
        listed.get_by_role("link", name=name).wait_for()
        assert findings(page) == []
        fits(page, width)
        listed.get_by_role("link", name=name).click()
        queues = page.get_by_role("region", name="Queues of the trace")
        queues.wait_for()
        assert "120 cpu" in queues.locator("tbody tr", has_text="q000").inner_text()
        page.get_by_text("1–50 of 70").wait_for()
        assert findings(page) == []
        fits(page, width)
        page.get_by_role("link", name="Forget it…").click()
        page.get_by_role("button", name="Forget it").click()
        page.wait_for_url("**/traces")
        assert name not in page.locator("main").inner_text()
