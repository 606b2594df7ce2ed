"""The three questions that people come with, from the first screen to the answer: at both widths, dark and light, with
nothing that axe finds."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOOKS, Site, Visiting
from tests.browser.seeds import crowd
from tests.support.pages import cut, findings, fits


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_why_was_my_job_evicted(visit: Visiting, width: int, *, dark: bool) -> None:
    with visit("read") as somebody:
        page = somebody.go("/")
        somebody.look(width=width, dark=dark)
        page.keyboard.press("/")
        page.keyboard.type("EEP-1")
        page.locator("#hits").get_by_role("link", name="sweep-17").first.wait_for()
        assert findings(page) == []
        fits(page, width)
        somebody.picture(f"find-{width}-{'dark' if dark else 'light'}", whole=False)
        page.keyboard.press("ArrowDown")
        assert "sweep-1" in page.evaluate("document.activeElement.textContent")
        page.locator("#hits").get_by_role("link", name="sweep-17").first.click()
        page.get_by_role("link", name="stopped for embeddings-rollout").first.wait_for()
        assert findings(page) == []
        fits(page, width)
        page.get_by_role("link", name="stopped for embeddings-rollout").first.click()
        page.get_by_role("heading", name="What stops, in order").wait_for()
        assert findings(page) == []


def test_a_real_victim_that_no_decision_stopped_is_found_with_what_befell_it(visit: Visiting, site: Site) -> None:
    seen = {"at": "2026-11-22T12:00:00Z", "workload": "ml/really-gone", "job": "ml/train", "by": "ml/serve"}
    site.call("POST", "/v1/clusters/production/evictions", {"engine": "kueue", "evictions": [seen]})
    with visit("read") as somebody:
        page = somebody.go("/queues")
        page.keyboard.press("/")
        page.keyboard.type("lly-gon")
        page.locator("#hits").get_by_role("link", name="ml/really-gone").click()
        page.get_by_role("heading", name="What really happened").wait_for()
        expect(page.locator("main")).to_contain_text("for ml/serve", use_inner_text=True)
        page = somebody.go("/why?workload=ml/train")  # whose it was
        expect(page.locator("main")).to_contain_text("2026-11-22 12:00:00", use_inner_text=True)
        page = somebody.go("/why?workload=nobody")  # stopped in a preemption that was compared
        expect(page.locator("main")).to_contain_text("Arbiter would have decided otherwise", use_inner_text=True)


def test_what_is_misspelt_leads_to_the_nearest(visit: Visiting) -> None:
    with visit("read") as somebody:
        page = somebody.go("/why?workload=sweep-177")
        page.locator("main").get_by_role("link", name="sweep-17", exact=False).first.wait_for()
        page = somebody.go("/find?text=swep-17")
        page.locator("main").get_by_role("link", name="sweep-17", exact=False).first.click()
        page.get_by_role("link", name="stopped for embeddings-rollout").first.wait_for()
        page = somebody.go("/decisions?workload=weep-1")
        page.get_by_text("as a part of the name").wait_for()
        expect(page.locator("#log tbody tr").first).to_be_attached()
        page = somebody.go("/decisions?queue=servig")
        page.locator("#log").get_by_role("link", name="serving").first.click()
        expect(page.locator("#log tbody tr").first).to_be_attached()


def test_enter_leads_to_what_has_that_name_alone(visit: Visiting, site: Site) -> None:
    with visit("read") as somebody:
        page = somebody.go("/decisions")
        page.keyboard.press("/")
        page.keyboard.type("empty-handed")
        page.keyboard.press("Enter")
        page.wait_for_url("**/configurations/empty-handed")
        page = somebody.go(f"/find?text={site.decisions['simulation'][:13]}")
        page.locator("main").get_by_role("link", name="simulation").first.click()
        page.wait_for_url("**/simulations/**")


def test_a_service_that_is_away_says_so_in_the_list(visit: Visiting) -> None:
    with visit("read") as somebody:
        somebody.expected = ("Failed to load resource", "htmx:", "/find?", "ERR_INTERNET_DISCONNECTED")
        page = somebody.go("/decisions")
        somebody.context.set_offline(True)
        try:
            page.keyboard.press("/")
            page.keyboard.type("anything")
            page.locator("#hits").get_by_text("does not answer").wait_for()
        finally:
            somebody.context.set_offline(False)


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_who_is_next(visit: Visiting, site: Site, width: int, *, dark: bool) -> None:
    with visit("admin") as somebody:
        page = somebody.go("/")
        somebody.look(width=width, dark=dark)
        page.get_by_role("link", name="Look ahead").click()
        page.get_by_role("button", name="Find out").wait_for()
        assert findings(page) == []
        fits(page, width)
        page.get_by_role("button", name="Find out").click()
        page.get_by_text("it waits for a worker").wait_for()
        expect(page.get_by_role("link", name="Stop it…")).to_have_count(1)
        while site.worker.once():
            pass
        lines = page.get_by_role("region", name="Lines")
        lines.wait_for()  # without loading the page again
        assert findings(page) == []
        fits(page, width)
        somebody.picture(f"exposures-{width}-{'dark' if dark else 'light'}")
        first = lines.locator("tbody tr").first
        expect(first).to_contain_text("now", use_inner_text=True)
        expect(first).to_contain_text("sweep-17", use_inner_text=True)
        expect(page.get_by_role("region", name="What waits", exact=True)).to_contain_text(
            "embeddings-rollout", use_inner_text=True
        )
        page.get_by_label("Owner or name").fill("chat")
        page.get_by_role("button", name="Filter").click()
        page.wait_for_url("**find=chat")
        expect(lines.locator("tbody tr")).to_have_count(1)
        page.go_back()
        first.get_by_role("button", name="Why").click()
        page.get_by_role("heading", name="What stops, in order").wait_for()
        expect(page.locator("#candidates")).to_contain_text("sweep-17", use_inner_text=True)


def test_looking_ahead_is_stopped_on_the_page(visit: Visiting, site: Site) -> None:
    with visit("decide") as somebody, visit("admin") as other:
        made = site.call("POST", "/v1/exposures", {"state": {"snapshot": "now"}, "asks": "pending"})["id"]
        page = other.go(f"/next/{made}")
        page.get_by_role("link", name="Stop it…").click()
        page.get_by_role("button", name="Stop it").click()
        page.get_by_text("cancelled").first.wait_for()
        while site.worker.once():
            pass
        expect(other.go(f"/next/{made}").get_by_role("region", name="Lines")).to_have_count(0)
        somebody.expected = ("403",)
        expect(somebody.go("/next").locator("h1")).to_contain_text("You may not see this", use_inner_text=True)


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_what_will_my_job_evict(visit: Visiting, width: int, *, dark: bool) -> None:
    with visit("admin") as somebody:
        page = somebody.go("/")
        somebody.look(width=width, dark=dark)
        page.get_by_role("link", name="Describe the job").click()
        page.get_by_role("button", name="Take it").click()
        job = page.get_by_role("form", name="The job")
        job.get_by_label("Queue").select_option("serving")
        job.get_by_label("Priority").fill("50")
        job.get_by_label("nvidia.com/gpu").fill("1")
        assert findings(page) == []
        fits(page, width)
        job.get_by_role("button", name="Find out").click()
        answer = page.get_by_label("The answer")
        answer.wait_for()
        page.wait_for_load_state()
        text = answer.inner_text()
        for told in ("sweep-18", "ask my-job", "goes before", "serving"):
            assert told in text, told
        assert "embeddings-rollout" in text  # which waits already, and goes first
        expect(page.get_by_role("region", name="Queues, as a table").locator("td.changed").first).to_be_attached()
        assert findings(page) == []
        fits(page, width)
        somebody.picture(f"plan-{width}-{'dark' if dark else 'light'}")
        sent = page.url
        assert page.goto(sent) is not None  # as somebody would who was sent it
        expect(page.get_by_label("The answer")).to_have_text(text, use_inner_text=True)
        somebody.expected = ("422",)
        job.get_by_label("Pods").fill("two")
        job.get_by_role("button", name="Find out").click()
        page.get_by_text("/work/0/tasks/0/count", exact=True).wait_for()


@pytest.fixture(scope="module")
def crowded(site: Site) -> Iterator[str]:
    """The name of 10,000 workloads on 5,000 nodes, while a decision has stopped some of them."""
    name, said = "crowded", crowd(nodes=5_000, workloads=10_000, queues=20)
    site.call("PUT", f"/v1/configurations/{name}", said["configuration"])
    site.call("PUT", f"/v1/snapshots/{name}", {"configuration": name, "state": said["state"], "asks": said["asks"]})
    asked = {"configuration": name, "state": {"snapshot": name}, "asks": said["asks"][:1]}
    answer = site.call("POST", "/v1/decisions", asked)
    assert answer["decisions"][0]["outcome"] == "preempt"
    yield name
    site.call("DELETE", f"/v1/snapshots/{name}")
    site.call("DELETE", f"/v1/configurations/{name}", **{"If-Match": "*"})


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_each_question_where_10_000_run_on_5_000_nodes(
    visit: Visiting, site: Site, crowded: str, width: int, *, dark: bool
) -> None:
    with visit("admin") as somebody:

        def sound(name: str) -> None:
            assert (findings(page), cut(page)) == ([], []), name
            fits(page, width)
            somebody.picture(f"crowded-{name}-{width}-{'dark' if dark else 'light'}", whole=False)

        page = somebody.go("/")
        somebody.look(width=width, dark=dark)
        sound("overview")
        page.keyboard.press("/")
        page.keyboard.type("AINING-0520")  # why was my job evicted
        hits = page.locator("#hits")
        hits.get_by_role("link", name="training-05200").first.wait_for()
        sound("hits")
        hits.get_by_role("link", name="training-05200").first.click()
        stopped = page.get_by_role("link", name="stopped for urgent-0").first
        stopped.wait_for()
        sound("why")
        stopped.click()
        page.get_by_role("heading", name="What stops, in order").wait_for()
        expect(page.locator("main")).to_contain_text("training-05200", use_inner_text=True)
        sound("decision")

        page = somebody.go("/")  # what will my job evict
        page.get_by_role("link", name="Describe the job").click()
        page.get_by_role("form", name="The cluster").get_by_label("In").select_option(crowded)
        page.get_by_role("button", name="Take it").click()
        job = page.get_by_role("form", name="The job")
        job.get_by_label("Queue").select_option("team-03")
        job.get_by_label("Priority").fill("50")
        job.get_by_label("gpu").fill("1")
        sound("plan")
        job.get_by_role("button", name="Find out").click()
        page.get_by_label("The answer").wait_for()
        expect(page.get_by_label("The answer")).to_contain_text("of team-03 stops", use_inner_text=True)
        sound("planned")

        page = somebody.go("/")  # who is next
        page.get_by_role("link", name="Look ahead").click()
        page.locator("select[name=snapshot]").select_option(crowded)
        page.get_by_label("Most asks tried").fill("10")
        page.get_by_label("Most rounds played").fill("3")
        page.get_by_role("button", name="Find out").click()
        page.get_by_text("it waits for a worker").wait_for()
        while site.worker.once():
            pass
        lines = page.get_by_role("region", name="Lines")
        lines.wait_for()
        sound("next")
        page.get_by_label("Owner or name").fill("training-05")
        page.get_by_role("button", name="Filter").click()
        page.wait_for_url("**find=training-05")
        lines.get_by_role("button", name="Why").first.click()
        page.get_by_role("heading", name="What stops, in order").wait_for()
        sound("explained")
