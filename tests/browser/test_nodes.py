"""Nodes of a snapshot: use, what runs on one, totals by a label."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOOKS, Site, Visiting
from tests.support.pages import findings, fits


@pytest.fixture(scope="module")
def racks(site: Site) -> str:
    """A snapshot: 250 nodes in 5 racks; the first two run `train`, and others use a cpu of the first."""
    nodes: list[dict[str, Any]] = [
        {"name": f"node-{i:03}", "capacity": {"cpu": 8, "memory": "16Gi"}, "labels": {"rack": f"r{i % 5}"}}
        for i in range(250)
    ]
    nodes[0]["occupied"] = {"cpu": "500m"}
    tasks = [{"name": f"t{i}", "requests": {"cpu": "1500m"}, "node": f"node-{i:03}"} for i in range(2)]
    work = {"id": "ml/train", "queue": "root.a", "priority": 3, "started_at": "2026-03-02T08:00:00Z", "tasks": tasks}
    queues = [{"name": "root"}, {"name": "root.a", "parent": "root"}]
    site.call("PUT", "/v1/configurations/racks", {"engine": "yunikorn", "queues": queues}, **{"If-None-Match": "*"})
    body = {"configuration": "racks", "state": {"nodes": nodes, "workloads": [work]}}
    site.call("PUT", "/v1/snapshots/racks", body)
    return "/nodes?snapshot=racks"


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_use_of_nodes_what_runs_there_and_totals_by_a_label(
    visit: Visiting, racks: str, width: int, *, dark: bool
) -> None:
    with visit("read") as somebody:
        page = somebody.go(racks)
        somebody.look(width=width, dark=dark)
        listed = page.get_by_role("region", name="Nodes", exact=True)
        expect(listed.locator("tbody tr", has_text="node-000")).to_contain_text("2 of 8 cpu", use_inner_text=True)
        expect(listed.locator("tbody tr", has_text="node-001")).to_contain_text("1.5 of 8 cpu", use_inner_text=True)
        page.get_by_text("1–100 of 250").wait_for()
        assert findings(page) == []
        listed.get_by_role("link", name="In use").click()
        page.wait_for_url("**sort=-use**")
        assert listed.locator("tbody td:first-child").all_inner_texts()[:2] == ["node-000", "node-001"]
        listed.get_by_role("link", name="In use").click()
        page.wait_for_url("**sort=use**")
        expect(listed.locator("tbody td:first-child").first, "over all pages").to_have_text(
            "node-002", use_inner_text=True
        )
        fits(page, width)
        somebody.picture(f"nodes-{width}-{'dark' if dark else 'light'}")
        page.get_by_label("By label").select_option("rack")
        page.get_by_role("button", name="Show").click()
        racked = page.get_by_role("region", name="By rack")
        racked.wait_for()
        expect(racked.locator("tbody tr", has_text="r0")).to_contain_text("2 of 400 cpu", use_inner_text=True)
        assert findings(page) == []
        fits(page, width)
        racked.get_by_role("link", name="r1").click()
        page.get_by_text("Those with").wait_for()
        expect(listed.locator("tbody tr")).to_have_count(50)
        listed.get_by_role("link", name="node-001").click()
        there = page.get_by_role("region", name="What runs there")
        there.wait_for()
        expect(there.locator("tbody tr", has_text="ml/train")).to_contain_text("1.5 cpu", use_inner_text=True)
        assert findings(page) == []
        fits(page, width)


def test_a_node_is_found_by_a_part_of_its_name(visit: Visiting, racks: str) -> None:
    with visit("read") as somebody:
        page = somebody.go("/find?text=ode-001")
        page.locator("main").get_by_role("link", name="node-001").click()
        page.get_by_role("region", name="What runs there").wait_for()
        page = somebody.go(racks + "&find=nothing")
        page.get_by_text("No node of that name").wait_for()
