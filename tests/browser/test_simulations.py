"""Simulations: started from a form, followed while they run, read side by side, and any round asked why."""

import json
from typing import Any

import pytest
from playwright.sync_api import expect

from app.simulations.router import SIMULATION
from tests.browser.conftest import LOOKS, WIDE, Site, Visiting
from tests.support.pages import findings, fits, until


def test_one_is_started_followed_and_stopped(visit: Visiting, site: Site) -> None:
    with visit("admin") as somebody:
        somebody.expected = ("422",)
        page = somebody.go("/simulations")
        page.get_by_role("link", name="Start one").click()
        page.get_by_label("JSON, as for").fill(json.dumps({**SIMULATION, "round_every": -1}))
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("/round_every", use_inner_text=True)
        page.get_by_label("JSON, as for").fill(json.dumps({**SIMULATION, "variants": None}))
        page.get_by_label("kueue").check()
        page.get_by_role("button", name="Start", exact=True).click()
        page.get_by_text("It waits for a worker").wait_for()
        until(page, "stream !== null && stream.readyState === 1")
        assert site.worker.once()
        page.get_by_role("heading", name="What it came to").wait_for()
        page.wait_for_load_state()
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
        expect(rows).to_have_count(len(said["variants"]) * len(said["variants"][0]["summary"]["queues"]))
        expect(page.get_by_role("link", name="Forget it")).to_have_count(0)
        page.get_by_role("link", name="Events").click()
        expect(page.locator("tbody tr", has_text="evicted").locator("td").nth(5)).to_have_text(
            "serve-1", use_inner_text=True
        )


def test_a_loop_is_drawn_and_its_round_says_why(visit: Visiting, site: Site) -> None:
    said = site.call("GET", f"/v1/simulations/{site.decisions['loop']}")["variants"][0]["summary"]
    with visit("admin") as somebody:
        page = somebody.go(f"/simulations/{site.decisions['loop']}")
        expect(page.locator("#loops .figure")).to_have_count(len(said["first_loops"]))
        stopping = {(e["by"], e["job"]) for e in said["first_loops"][0]["evictions"] if e.get("by")}
        expect(page.locator("#loops .figure").first.locator("path.edge")).to_have_count(len(stopping))
        page.get_by_role("button", name="Why, in round").first.click()
        page.get_by_role("heading", name="What was looked at").wait_for()


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_its_pictures_lay_variants_over_each_other(visit: Visiting, site: Site, width: int, *, dark: bool) -> None:
    said = site.call("GET", f"/v1/simulations/{site.decisions['simulation']}")
    with visit("read") as somebody:
        somebody.look(width=width, dark=dark)
        page = somebody.go(f"/simulations/{site.decisions['simulation']}")
        chart = page.get_by_role("img", name="What was used over time by each variant")
        chart.first.scroll_into_view_if_needed()
        chart.first.locator("canvas").wait_for()
        legend = chart.first.locator(".u-legend").inner_text()
        for variant in said["names"]:
            assert f"{variant}: used" in legend
        chart.first.hover(position={"x": 200, "y": 100})
        until(page, "/\\d/.test(document.querySelector('.chart .u-legend .u-value').textContent)")  # its values
        page.get_by_role("link", name="How often work of each queue").scroll_into_view_if_needed()
        page.get_by_role("region", name="Evictions from queue to queue").wait_for()
        assert findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        somebody.picture(f"pictures-{width}-{'dark' if dark else 'light'}")


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_a_queue_alone_is_drawn_with_what_it_wanted(visit: Visiting, site: Site, width: int, *, dark: bool) -> None:
    said = site.call("GET", f"/v1/simulations/{site.decisions['simulation']}")
    with visit("read") as somebody:
        somebody.look(width=width, dark=dark)
        page = somebody.go(f"/simulations/{site.decisions['simulation']}")
        page.get_by_role("region", name="By queue, as a table").get_by_role("link", name="team-b").click()
        chart = page.get_by_role("img", name="What team-b used of cpu")
        chart.locator("canvas").wait_for()
        page.wait_for_load_state()
        legend = chart.locator(".u-legend").inner_text()
        for variant in said["names"]:
            assert f"{variant}: used" in legend
            assert f"{variant}: wanted" in legend
        expect(page.locator("#drawn .chart")).to_have_count(1)
        assert findings(page) == []
        fits(page, width)
        page.get_by_role("link", name="All queues").click()
        page.get_by_role("img", name="What was used over time by each variant").first.wait_for()


def test_a_picture_is_looked_at_closely_in_either_theme_and_leads_to_the_round(visit: Visiting, site: Site) -> None:
    with visit("admin") as somebody:
        page = somebody.go(f"/simulations/{site.decisions['simulation']}")
        page.locator(".chart").first.scroll_into_view_if_needed()
        over = page.locator(".chart").first.locator(".u-over")
        over.wait_for()
        box = over.bounding_box()
        assert box is not None
        span = "(({ chart }) => chart.scales.x.max - chart.scales.x.min)(drawn.get(document.querySelector('.chart')))"
        before = page.evaluate(span)
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 100, middle)
        page.mouse.down()
        page.mouse.move(box["x"] + 200, middle, steps=4)
        page.mouse.up()
        until(page, f"{span} < {before} / 2")
        page.mouse.dblclick(box["x"] + 150, middle)
        until(page, f"{span} === {before}")
        pixels = "document.querySelector('.chart canvas').toDataURL()"
        light = page.evaluate(pixels)
        somebody.look(width=WIDE, dark=True)
        until(page, f"{pixels} !== {json.dumps(light)}")
        over = page.locator(".chart").first.locator(".u-over")
        over.click(position={"x": 60, "y": 60})
        page.wait_for_url("**/rounds?variant=**")
        expect(page.get_by_role("region", name="Rounds").locator("tbody tr").first).to_be_attached()


def test_rounds_are_jumped_to_and_filtered(visit: Visiting, site: Site) -> None:
    run = site.decisions["loop"]
    said = site.call("GET", f"/v1/simulations/{run}")["variants"][0]["summary"]
    with visit("read") as somebody:
        page = somebody.go(f"/simulations/{run}/rounds")
        rows = page.get_by_role("region", name="Rounds").locator("tbody tr")
        every = rows.count()
        page.get_by_label("Show").first.select_option("evictions")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**only=evictions**")
        assert 0 < rows.count() <= every
        assert all(row.locator("td").nth(4).inner_text() for row in rows.all())
        page = somebody.go(f"/simulations/{run}/rounds?only=loops")
        expect(rows).to_have_count(said["loops"])
        page.get_by_label("Show").first.select_option("")
        page.get_by_label("From round").fill("3")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**round=3")
        expect(rows.first.locator("td").first).to_have_text("3", use_inner_text=True)


def test_numbers_are_sent_once_to_each_browser(visit: Visiting, site: Site) -> None:
    with visit("read") as somebody:
        place = f"{site.address}/simulations/{site.decisions['simulation']}/plots/usage.json"
        told = somebody.context.request.get(place)
        again = {"If-None-Match": told.headers["etag"]}
        assert somebody.context.request.get(place, headers=again).status == 304
        forgotten = place.replace(site.decisions["simulation"], site.decisions["waiting"])
        assert somebody.context.request.get(forgotten, headers=again).status == 404


def test_a_simulation_has_a_name(visit: Visiting, site: Site) -> None:
    with visit("admin") as somebody:
        page = somebody.go("/simulate")
        page.get_by_label("Name", exact=True).fill("what if <b>half</b> of it")
        page.get_by_role("button", name="Start").click()
        page.wait_for_url("**/simulations/*")
        assert page.get_by_role("heading", level=1).inner_text().startswith("what if <b>half</b> of it:")
        assert page.title() == "what if <b>half</b> of it · Simulation · Arbiter"
        made = page.url.rpartition("/")[2]
        assert site.call("GET", f"/v1/simulations/{made}")["name"] == "what if <b>half</b> of it"
        page = somebody.go("/simulations")
        page.get_by_role("link", name="what if <b>half</b> of it").click()
        page.wait_for_url(f"**/simulations/{made}")
        site.call("DELETE", f"/v1/simulations/{made}")


def test_all_loops_are_reached(visit: Visiting, site: Site) -> None:
    with visit("read") as somebody:
        page = somebody.go(f"/simulations/{site.decisions['loop']}")
        loops = int(
            page.get_by_role("region", name="Variants").locator("tr", has_text="Loops").locator("td.n").inner_text()
        )
        page.wait_for_load_state("networkidle")  # pictures above the link move it as they are drawn
        page.get_by_role("link", name=f"All {loops} in its rounds").click()
        page.wait_for_url("**only=loops**")
        expect(page.get_by_role("region", name="Rounds").locator("tbody tr")).to_have_count(loops)
        expect(page.get_by_text("begins a loop again")).to_have_count(loops)


def test_jobs_are_sorted_over_all_their_pages(visit: Visiting, site: Site) -> None:
    task = {"name": "t", "requests": {"cpu": 1}}
    jobs = [
        {"ask": {"id": f"j{i:03}", "queue": "q", "tasks": [task]}, "submitted_at": i, "duration": 30}
        for i in range(250)
    ]
    queues = [{"name": "q", "quota": {"cpu": {"guaranteed": 400}}}]
    asked = {"configuration": {"engine": "kueue", "queues": queues}, "trace": {"jobs": jobs}}
    made = site.call("POST", "/v1/simulations", asked)["id"]
    while site.worker.once():
        pass
    with visit("read") as somebody:
        page = somebody.go(f"/simulations/{made}/jobs")
        listed = page.get_by_role("region", name="Jobs").locator("tbody td:first-child")
        assert (listed.count(), listed.first.inner_text()) == (200, "j000")
        title = page.get_by_role("region", name="Jobs").get_by_role("columnheader", name="Job", exact=True)
        title.get_by_role("link").click()
        page.wait_for_url("**sort=name**")
        title.get_by_role("link").click()
        page.wait_for_url("**sort=-name**")
        expect(title).to_have_attribute("aria-sort", "descending")
        expect(listed.first).to_have_text("j249", use_inner_text=True)
        page.get_by_role("link", name="Next →").click()
        page.wait_for_url("**from=200**")
        assert (listed.count(), listed.first.inner_text()) == (50, "j049")
        assert findings(page) == []
