"""Stored traces: listed, looked at and forgotten, at both widths, dark and light."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOOKS, Site, Visiting
from tests.browser.seeds import put_trace
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
        expect(queues.locator("tbody tr", has_text="q000")).to_contain_text("120 cpu", use_inner_text=True)
        page.get_by_text("1–50 of 70").wait_for()
        assert findings(page) == []
        fits(page, width)
        page.get_by_role("link", name="Forget it…").click()
        page.get_by_role("button", name="Forget it").click()
        page.wait_for_url("**/traces")
        expect(page.locator("main")).not_to_contain_text(name, use_inner_text=True)


SWF = """; MaxNodes: 8
; UnixStartTime: 1700000000
1 0 5 100 4 -1 -1 4 200 -1 1 7 1 -1 2 -1 -1 -1
2 30 5 60 2 -1 -1 2 100 -1 1 8 1 -1 3 -1 -1 -1
"""
MAPPING = """queue: user-{user}
count: processors
resources: {cpu: 1}
nodes: {capacity: {cpu: 1}}
cluster: {each: {queue: {name: any}}}
"""


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_a_trace_is_stored_once_its_mapping_was_seen(visit: Visiting, site: Site, width: int, *, dark: bool) -> None:
    name = f"pasted-{width}-{dark}"
    with visit("admin") as somebody:
        page = somebody.go("/traces")
        somebody.look(width=width, dark=dark)
        page.get_by_text("Store one").click()
        page.get_by_label("Name", exact=True).fill(name)
        page.get_by_role("combobox").select_option("swf")
        page.get_by_label("The lines").fill(SWF)
        page.get_by_label("The mapping").fill("nothing: here")
        somebody.expected = ("422", "400")
        page.get_by_role("button", name="Preview").click()
        page.get_by_role("alert").wait_for()
        expect(page.get_by_label("The lines"), "what was typed stays").to_have_value(SWF)
        page.get_by_label("The mapping").fill(MAPPING)
        page.get_by_role("button", name="Preview").click()
        made = page.get_by_role("region", name="What the mapping makes of it")
        made.wait_for()
        expect(made).to_contain_text("2 jobs", use_inner_text=True)
        expect(made.locator("tbody tr")).to_have_count(2)
        assert findings(page) == []
        fits(page, width)
        assert name not in [one["name"] for one in site.call("GET", "/v1/traces")["items"]]
        page.get_by_role("button", name="Store", exact=True).click()
        page.wait_for_url(f"**/traces/{name}")
        page.get_by_role("region", name="Queues of the trace").wait_for()
        assert site.call("GET", f"/v1/traces/{name}/summary")["configuration"]["engine"] == "kueue"
