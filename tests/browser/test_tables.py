"""Tables: cards on a phone, columns that sort by click and keyboard, and a sign where something is beside the edge."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import NARROW, Site, Visiting
from tests.browser.seeds import example
from tests.support.pages import cut, findings


def column(page: Page, table: str, number: int) -> list[str]:
    """What stands in a column, from 1, from top to bottom."""
    return page.get_by_role("region", name=table, exact=True).locator(f"tbody td:nth-child({number})").all_inner_texts()


def head(page: Page, table: str, title: str) -> Locator:
    return page.get_by_role("region", name=table, exact=True).get_by_role("columnheader", name=title)


def test_columns_sort_by_click_and_by_keyboard(visit: Visiting) -> None:
    with visit("read") as somebody:
        page = somebody.go("/decisions")
        before = column(page, "Decisions", 4)
        stops = head(page, "Decisions", "Stops")
        assert stops.get_attribute("aria-sort") is None
        button = stops.get_by_role("button")
        button.click()
        expect(stops).to_have_attribute("aria-sort", "descending")
        expect(button, "whoever goes on by keyboard is still there").to_be_focused()
        largest = column(page, "Decisions", 4)
        assert largest[0] == "1\u202f500", "as a number, not as a word"
        assert sorted(before) == sorted(largest)
        assert [int(one.replace("\u202f", "")) for one in largest] == sorted(
            (int(one.replace("\u202f", "")) for one in before), reverse=True
        )
        assert findings(page) == []
        button.press("Enter")  # whatever looked for findings may have taken the focus
        expect(stops).to_have_attribute("aria-sort", "ascending")
        assert column(page, "Decisions", 4) == largest[::-1]
        page.keyboard.press("Enter")
        expect(stops).not_to_have_attribute("aria-sort", "ascending")
        assert column(page, "Decisions", 4) == before
        head(page, "Decisions", "Engine").get_by_role("button").press("Space")
        engines = column(page, "Decisions", 5)
        assert engines == sorted(engines)


def test_groups_of_rows_sort_together(visit: Visiting, site: Site) -> None:
    with visit("read") as somebody:
        page = somebody.go(f"/simulations/{site.decisions['simulation']}")
        names = page.get_by_role("region", name="By queue, as a table").locator("th.name")
        expect(names).to_have_text(["all", "team-a", "team-b"], use_inner_text=True)
        head(page, "By queue, as a table", "Evictions").get_by_role("button").click()
        expect(names.last, "whose work was never stopped").to_have_text("team-b", use_inner_text=True)
        expect(page.get_by_role("region", name="By queue, as a table").locator("tbody")).to_have_count(3)


def test_rows_are_cards_on_a_phone(visit: Visiting, site: Site) -> None:
    with visit("read") as somebody:
        somebody.look(width=NARROW, dark=True)
        page = somebody.go("/queues/of?configuration=example&queue=research&snapshot=now")
        row = page.get_by_role("region", name="What runs").locator("tbody tr").first
        told = row.evaluate(
            "row => [...row.cells].map((cell) => [getComputedStyle(cell, '::before').content, cell.innerText])"
        )
        assert [label for label, _ in told] == ['"Runs"', '"Queue"', '"Priority"', '"Holds"', '"Since"']
        assert told[3][1] == "8 nvidia.com/gpu in a100"
        tops = row.locator("td").evaluate_all("cells => cells.map((cell) => cell.getBoundingClientRect().top)")
        assert tops == sorted(set(tops)), "one below the other"
        page.get_by_role("region", name="What runs").get_by_role("button", name="Priority").click()
        page = somebody.go(f"/simulations/{site.decisions['simulation']}")
        labels = (
            page.get_by_role("region", name="By queue, as a table")
            .locator("tbody td")
            .evaluate_all("cells => cells.slice(0, 3).map((cell) => cell.dataset.label)")
        )
        assert labels == ["Variant", "Jobs", "Finished"], "beside a name that covers several rows"


def test_what_is_beside_the_edge_is_named(visit: Visiting) -> None:
    with visit("read") as somebody:
        page = somebody.go("/queues/of?configuration=example&queue=research&snapshot=now")
        assert cut(page) == []
        page.evaluate(
            "document.querySelector('[aria-label=\"What runs\"] tbody td:nth-child(2)').style.paddingRight = '90rem'"
        )
        note = page.locator("p.beyond:visible")
        note.wait_for()
        assert note.inner_text().endswith("Priority, Holds, Since.")
        assert cut(page) == ["What runs"]
        assert findings(page) == []
        page.get_by_role("region", name="What runs").evaluate("one => one.scrollTo(1e6, 0)")
        page.get_by_text("Not in view: Runs").wait_for()


def test_flavors_stand_apart_and_who_lends_is_told(visit: Visiting, site: Site) -> None:
    with visit("read") as somebody:
        page = somebody.go(f"/decisions/{site.decisions['flavored']}")
        page.get_by_role("region", name="Queues, as a table").locator("tbody", has_text="vision").wait_for()
        told = page.get_by_role("region", name="Queues, as a table").locator("tbody", has_text="vision").inner_text()
        assert told.split("\t")[1:4] == ["cpu in spot", "0", "1\u202f500"]
    with visit("admin") as somebody:
        page = somebody.go("/queues?configuration=zoned&snapshot=zoned")
        rows = page.get_by_role("region", name="Queues", exact=True).locator("tbody", has_text="batch").locator("tr")
        cells = rows.evaluate_all(
            "rows => rows.map((row) => [...row.cells].map((cell) => [cell.dataset.label, cell.innerText.trim()]))"
        )
        spot = {label: text for label, text in cells[0] if text}
        assert (spot["Of"], spot["Promised"], spot["Borrows at most"]) == ("cpu in spot", "1\u202f000", "2\u202f000")
        assert (spot["Uses, of what is nominal"], spot["Borrowed"]) == ("2\u202f999.5 of 1\u202f000", "1\u202f999.5")
        own = next(dict(row) for row in cells if ["Of", "cpu in own"] in row)
        assert (own["Promised"], own["Lends at most"], own["Borrowed"]) == ("40", "10", "–")
        shown = page.locator("main").inner_text()
        assert "0.5 GiB" in shown
        assert "MiB" not in shown, "one unit a page"
        lent = page.get_by_role("region", name="Who lends to whom, as a table").locator("tbody tr")
        expect(lent).to_have_text(["all\tcpu in spot\tbatch 1\u202f999.5\tvision 3\u202f000"], use_inner_text=True)


def test_what_runs_is_sorted_over_all_its_pages(visit: Visiting) -> None:
    with visit("read") as somebody:
        page = somebody.go("/queues/of?configuration=zoned&queue=batch&snapshot=zoned")
        expect(page.get_by_text("1–200 of 3\u202f000")).to_be_visible()
        expect(page.get_by_role("region", name="What waits"), "that is another queue's").to_have_count(0)
        head(page, "What runs", "Runs").get_by_role("link").press("Enter")
        page.wait_for_url("**sort=name**")
        head(page, "What runs", "Runs").get_by_role("link").press("Enter")
        page.wait_for_url("**sort=-name**")
        expect(head(page, "What runs", "Runs")).to_have_attribute("aria-sort", "descending")
        assert column(page, "What runs", 1)[:2] == ["run02999", "run02998"]
        assert page.evaluate("document.activeElement.textContent") == "Runs", "the focus stays"
        page.get_by_role("link", name="Next →").click()
        page.get_by_text("201–400 of").wait_for()
        assert column(page, "What runs", 1)[0] == "run02799"
        head(page, "What runs", "Holds").get_by_role("link").click()
        page.wait_for_url("**sort=-holds**")
        page.get_by_text("1–200 of").wait_for()
        head(page, "What runs", "Holds").get_by_role("link").click()
        page.wait_for_url("**sort=holds**")
        assert column(page, "What runs", 4)[0] == "0.5 cpu in spot"
        page = somebody.go("/queues/of?configuration=zoned&queue=all&snapshot=zoned")
        expect(page.get_by_text("1–200 of 250")).to_be_visible()
        assert findings(page) == []


def test_a_page_of_a_list_says_that_it_alone_is_sorted(visit: Visiting, site: Site) -> None:
    for _ in range(60):
        site.call("POST", "/v1/decisions?purpose=what-if", example("kueue-classic"))
    said = "Sorted: the rows of this page, not those of the others."
    with visit("read") as somebody:
        page = somebody.go("/decisions")
        expect(page.get_by_text(said)).not_to_be_visible()
        head(page, "Decisions", "Stops").get_by_role("button").click()
        page.get_by_text(said).wait_for()
        assert findings(page) == []
        page.get_by_role("link", name="Older →").click()
        page.wait_for_url("**cursor=**")
        page.get_by_role("link", name="← From the start").click()
        page.wait_for_url(lambda address: "cursor" not in address)
        page = somebody.go("/queues/of?configuration=example&queue=research&snapshot=now")
        page.get_by_role("region", name="What runs").get_by_role("button", name="Priority").click()
        expect(head(page, "What runs", "Priority")).to_have_attribute("aria-sort", re.compile("."))
        expect(page.get_by_text(said), "those are all").not_to_be_visible()
