"""Simulations: started from a form, followed while they run, read side by side, and any round asked why."""

import json
from typing import Any

from app.simulations.router import SIMULATION
from tests.console.browser.conftest import Site, Visiting
from tests.support.pages import until


def test_one_is_started_followed_and_stopped(visit: Visiting, site: Site) -> None:
    with visit("admin") as somebody:
        somebody.expected = ("422",)
        page = somebody.go("/simulations")
        page.get_by_role("link", name="Start one").click()
        page.get_by_label("JSON, as for").fill(json.dumps({**SIMULATION, "round_every": -1}))
        page.get_by_role("button", name="Start", exact=True).click()
        assert "/round_every" in page.get_by_role("alert").inner_text()
        page.get_by_label("JSON, as for").fill(json.dumps({**SIMULATION, "variants": None}))
        page.get_by_label("kueue").check()
        page.get_by_role("button", name="Start", exact=True).click()
        page.get_by_text("It waits for a worker").wait_for()
        until(page, "stream !== null && stream.readyState === 1")
        assert site.worker.once()
        page.get_by_role("heading", name="What it came to").wait_for()
        heads = page.locator(".measures").first.locator("thead th").all_inner_texts()
        assert heads == ["All queues", "kueue"]
        until(page, "stream === null")
        page.get_by_role("link", name="Forget it").click()
        page.get_by_text("There is no way back").wait_for()
        page.get_by_role("button", name="Forget it").click()
        page.wait_for_url("**/simulations")


def test_what_it_came_to_is_what_the_api_says(visit: Visiting, site: Site) -> None:
    said: dict[str, Any] = site.call("GET", f"/v1/simulations/{site.decisions['simulation']}")
    with visit("read") as somebody:
        page = somebody.go(f"/simulations/{site.decisions['simulation']}")
        row = page.locator("tr", has_text="Evictions how often").locator("td").all_inner_texts()
        assert [int(cell) for cell in row[1:]] == [v["summary"]["total"].get("evictions", 0) for v in said["variants"]]
        rows = page.locator("#by-queue tbody tr")
        assert rows.count() == len(said["variants"]) * len(said["variants"][0]["summary"]["queues"])
        assert page.get_by_role("link", name="Forget it").count() == 0
        page.get_by_role("link", name="Events").click()
        assert page.locator("tbody tr", has_text="evicted").locator("td").nth(5).inner_text() == "serve-1"


def test_a_loop_is_drawn_and_its_round_says_why(visit: Visiting, site: Site) -> None:
    said = site.call("GET", f"/v1/simulations/{site.decisions['loop']}")["variants"][0]["summary"]
    with visit("admin") as somebody:
        page = somebody.go(f"/simulations/{site.decisions['loop']}")
        assert page.locator("#loops .figure").count() == len(said["first_loops"])
        stopping = {(e["by"], e["job"]) for e in said["first_loops"][0]["evictions"] if e.get("by")}
        assert page.locator("#loops .figure").first.locator("path.edge").count() == len(stopping)
        page.get_by_role("button", name="Why, in round").first.click()
        page.get_by_role("heading", name="What was looked at").wait_for()


def test_one_that_is_done_is_drawn(visit: Visiting, site: Site) -> None:
    with visit("read") as somebody:
        page = somebody.go(f"/simulations/{site.decisions['simulation']}")
        page.get_by_role("link", name="fair").click()
        picture = page.get_by_role("img", name="What each queue of fair used over time")
        with page.expect_response("**/plots/usage.svg?variant=fair", timeout=60_000) as told:
            picture.scroll_into_view_if_needed()
        until(page, "document.querySelector('.plot img').naturalWidth > 0")
        again = {"If-None-Match": told.value.headers["etag"]}
        assert somebody.context.request.get(told.value.url, headers=again).status == 304
        forgotten = told.value.url.replace(site.decisions["simulation"], site.decisions["waiting"])
        assert somebody.context.request.get(forgotten, headers=again).status == 404
