"""Editing: checked as one types, compared before it is saved, and a lost race shows both versions."""

import json

from playwright.sync_api import expect

from tests.browser.conftest import Site, Visiting
from tests.browser.seeds import EXAMPLES, example
from tests.support.pages import findings, until

QUEUE = {"name": "q", "quota": {"cpu": {"guaranteed": 4}}}


def test_a_change_is_checked_compared_commented_and_saved(visit: Visiting, site: Site) -> None:
    site.call("PUT", "/v1/configurations/edited", {"engine": "kueue", "queues": [QUEUE]})
    with visit("admin") as somebody:
        page = somebody.go("/configurations/edited/queue?queue=q")
        somebody.expected = ("422",)
        box = page.get_by_label("Document")
        box.fill(json.dumps({"name": "q", "quota": {"cpu": {"guaranteed": "many"}}}))
        page.locator("#findings").get_by_text("guaranteed").first.wait_for()
        box.fill(json.dumps({"name": "q", "quota": {"cpu": {"guaranteed": 6}}}))
        page.get_by_text("Nothing speaks against it").wait_for()
        page.get_by_role("button", name="Show the difference").click()
        page.get_by_role("heading", name="What saving changes").wait_for()
        somebody.picture("edit-compared")
        expect(page.locator("ins").first).to_contain_text("6", use_inner_text=True)
        page.get_by_label("Why").fill("the team has grown")
        page.get_by_role("button", name="Save", exact=True).click()
        page.wait_for_url("**/configurations/edited")
        expect(page.locator("main")).to_contain_text("the team has grown", use_inner_text=True)
    assert site.call("GET", "/v1/configurations/edited/queues/q")["queue"]["quota"]["cpu"]["guaranteed"] in (6, "6")


def test_a_lost_race_shows_both_versions(visit: Visiting, site: Site) -> None:
    site.call("PUT", "/v1/configurations/raced", {"engine": "kueue", "queues": [QUEUE]})
    with visit("admin") as somebody:
        somebody.expected = ("412",)
        page = somebody.go("/configurations/raced/edit")
        theirs = {"engine": "kueue", "queues": [{"name": "q", "quota": {"cpu": {"guaranteed": 9}}}]}
        site.call("PUT", "/v1/configurations/raced", theirs, **{"If-Match": "*"})
        page.get_by_label("Document").fill(json.dumps({"engine": "kueue", "queues": [{**QUEUE, "weight": 3}]}))
        page.get_by_role("button", name="Show the difference").click()
        page.get_by_text("Somebody else was faster").first.wait_for()
        page.wait_for_load_state()
        both = page.locator("#findings").inner_text()
        assert "9" in both
        assert "weight" in both
        somebody.picture("edit-lost")
        assert site.call("GET", "/v1/configurations/raced")["revision"] == 2
        page.get_by_role("button", name="Save over theirs").click()
        page.wait_for_url("**/configurations/raced")
    assert site.call("GET", "/v1/configurations/raced")["revision"] == 3


def test_a_new_configuration_from_an_empty_form(visit: Visiting, site: Site) -> None:
    with visit("admin") as somebody:
        page = somebody.go("/configurations")
        page.get_by_label("Name").fill("fresh")
        page.get_by_role("button", name="Write it").click()
        page.get_by_label("Document").fill(json.dumps({"engine": "kueue", **example("kueue-classic")["configuration"]}))
        page.get_by_role("button", name="Show the difference").click()
        page.get_by_role("button", name="Save", exact=True).click()
        page.wait_for_url("**/configurations/fresh")
    assert site.call("GET", "/v1/configurations/fresh")["revision"] == 1


def test_manifests_become_a_configuration(visit: Visiting, site: Site) -> None:
    with visit("admin") as somebody:
        page = somebody.go("/configurations")
        page.get_by_role("link", name="import the manifests").click()
        page.get_by_label("Name of the configuration").fill("imported")
        page.get_by_label("A file").set_input_files(EXAMPLES / "kueue-cluster.yaml")
        until(page, "document.getElementById('manifest').value.length > 0")
        page.get_by_role("button", name="Read it").click()
        page.get_by_role("heading", name="What saving changes").wait_for()
        somebody.picture("import-compared")
        page.get_by_role("button", name="Save", exact=True).click()
        page.wait_for_url("**/configurations/imported")
        somebody.expected = ("422",)
        page = somebody.go("/import?name=imported")
        page.get_by_label("YAML or JSON").fill("a: [")
        page.get_by_role("button", name="Read it").click()
        expect(page.get_by_role("alert")).to_have_count(1)
        expect(page.get_by_label("YAML or JSON")).to_have_value("a: [")
    assert site.call("GET", "/v1/configurations/imported")["revision"] == 1


def test_restoring_and_labels(visit: Visiting, site: Site) -> None:
    site.call("PUT", "/v1/configurations/restored", {"engine": "kueue", "queues": [QUEUE]})
    site.call("PUT", "/v1/configurations/restored", {"engine": "kueue", "queues": []}, **{"If-Match": "*"})
    with visit("admin") as somebody:
        page = somebody.go("/configurations/restored")
        page.get_by_label("Label").fill("stable")
        page.get_by_role("button", name="Point it there").click()
        page.get_by_text("stable").first.wait_for()
        page.get_by_role("link", name="Restore revision 1").click()
        page.get_by_role("heading", name="What changes").wait_for()
        somebody.picture("restore-asked")
        page.get_by_role("button", name="Restore revision 1").click()
        page.get_by_text("repeats 1").wait_for()


def test_what_was_typed_survives_a_session_that_ended_elsewhere(visit: Visiting, site: Site) -> None:
    site.call("PUT", "/v1/configurations/typed", {"engine": "kueue", "queues": [QUEUE]})
    mine = json.dumps({"engine": "kueue", "queues": [{**QUEUE, "weight": 7}]})
    with visit("admin") as somebody:
        page = somebody.go("/configurations/typed/edit")
        page.get_by_label("Document").fill(mine)
        page.get_by_text("Nothing speaks against it").wait_for()
        page.context.clear_cookies()
        page.get_by_role("button", name="Show the difference").click()
        page.wait_for_url("**/sign-in?*")
        page.get_by_label("Token").fill(site.secrets["admin"])
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/configurations/typed/edit")
        expect(page.get_by_label("Document")).to_have_value(mine)
        page.get_by_text("is filled in again").wait_for()
        page.get_by_role("button", name="Show the difference").click()
        page.get_by_role("button", name="Save", exact=True).click()
        page.wait_for_url("**/configurations/typed")
        assert page.evaluate("Object.keys(sessionStorage).filter(key => key.startsWith('arbiter:'))") == []
    assert site.call("GET", "/v1/configurations/typed/queues/q")["queue"]["weight"] == 7


def test_whatever_was_typed_is_there_after_going_away_and_back(visit: Visiting, site: Site) -> None:
    site.call("PUT", "/v1/configurations/left", {"engine": "kueue", "queues": [QUEUE]})
    others = "ask", "plan", "import", "compare", "simulate", "sweeps", "backtests", "traces"
    with visit("admin") as somebody:
        somebody.page.on("dialog", lambda dialog: dialog.accept())
        for path in ("/configurations/left/edit", *(f"/{other}" for other in others)):
            fields = somebody.go(path).locator("form[method=post]:has(textarea) :is(textarea, input:not([type]))")
            somebody.page.locator("details").evaluate_all("folds => folds.forEach(fold => { fold.open = true })")
            typed = [f"{i} of mine" for i in range(fields.count())]
            assert typed, path
            for field, text in zip(fields.all(), typed, strict=True):
                field.fill(text)
            somebody.go("/queues")
            somebody.go(path)
            expect(somebody.page.get_by_text("is filled in again"), path).to_have_count(1)
            assert [field.input_value() for field in fields.all()] == typed, path
            assert all(field.is_visible() for field in fields.all()), path
            somebody.page.get_by_role("button", name="Begin anew").click()
            for i, text in enumerate(typed):
                expect(fields.nth(i), path).not_to_have_value(text)
        assert somebody.page.evaluate("Object.keys(sessionStorage).filter(key => key.startsWith('arbiter:'))") == []


def test_what_was_typed_is_on_the_page_of_an_old_form(visit: Visiting, site: Site) -> None:
    site.call("PUT", "/v1/configurations/stale", {"engine": "kueue", "queues": [QUEUE]})
    mine = json.dumps({"engine": "kueue", "queues": [{**QUEUE, "weight": 11}], "flavors": [{"name": "a"}]}, indent=1)
    with visit("admin") as somebody:
        somebody.expected = ("403",)
        page = somebody.go("/configurations/stale/edit")
        page.get_by_label("Document").fill(mine)
        page.evaluate("document.querySelector('form[data-keep] [name=stamp]').value = 'old'")
        page.get_by_role("button", name="Show the difference").click()
        page.get_by_text("What you typed is not lost").wait_for()
        expect(page.get_by_label("document")).to_have_value(mine)
        page.get_by_role("link", name="Open the form again").click()
        page.get_by_text("is filled in again").wait_for()
        expect(page.get_by_label("Document")).to_have_value(mine)


def test_a_check_that_fails_says_nothing_of_an_earlier_one(visit: Visiting, site: Site) -> None:
    site.call("PUT", "/v1/configurations/unheard", {"engine": "kueue", "queues": [QUEUE]})
    with visit("admin") as somebody:
        page = somebody.go("/configurations/unheard/edit")
        box = page.get_by_label("Document")
        box.fill(json.dumps({"engine": "kueue", "queues": [{**QUEUE, "weight": 2}]}))
        page.get_by_text("Nothing speaks against it").wait_for()
        page.route("**/configurations/unheard/edit", lambda route: route.fulfill(status=503, body="away"))
        somebody.expected = ("503",)
        box.fill(json.dumps({"engine": "kueue", "queues": [{**QUEUE, "weight": 3}]}))
        page.get_by_text("the service answered 503").wait_for()
        expect(page.get_by_text("Nothing speaks against it")).to_have_count(0)


def test_after_a_form_was_sent_the_title_and_the_focus_are_on_what_came_of_it(visit: Visiting) -> None:
    with visit("admin") as somebody:
        somebody.expected = ("422",)
        page = somebody.go("/ask")
        page.get_by_label("Priority of the asks").fill("high")
        page.get_by_label("JSON, as for").fill('{\n "asks": x}')
        page.get_by_role("button", name="Decide").click()
        page.get_by_text("2 fields are wrong").wait_for()
        assert page.title() == "Not done · Ask · Arbiter"
        assert page.evaluate("document.activeElement.matches('.problem')")
        page.wait_for_load_state()
        said = page.locator(".problem li").all_inner_texts()
        assert [one.split()[0] for one in said] == ["request", "priority"], "all at once"
        assert "line 2, column 10" in said[0]
        expect(page.locator("[aria-invalid=true]")).to_have_count(2)
        assert findings(page) == []
        page = somebody.go("/compare")
        page.get_by_role("button", name="Compare").click()
        page.get_by_role("heading", name="Side by side").wait_for()
        assert page.title() == "The answer · Compare · Arbiter"
        assert page.evaluate("document.activeElement.getAttribute('aria-labelledby')") == "side"
        page = somebody.go("/decisions")
        page.get_by_label("Queue", exact=True).fill("serving")
        page.get_by_role("button", name="Filter").click()
        page.wait_for_url("**queue=serving**")
        assert page.evaluate("document.activeElement.id") == "log"
        page = somebody.go("/decisions?queue=serving")
        assert page.evaluate("document.activeElement.tagName") == "BODY", "nobody sent a form"


def test_what_is_wrong_is_told_once(visit: Visiting) -> None:
    with visit("admin") as somebody:
        somebody.expected = ("422",)
        page = somebody.go("/configurations/empty-handed/edit")
        broken = {"engine": "kueue", "queues": [{"name": "a", "quota": {"cpu": {"guaranteed": -1}}}, {"name": "a"}]}
        page.get_by_label("Document").fill(json.dumps(broken))
        page.get_by_role("button", name="Show the difference").click()
        page.get_by_text("2 fields are wrong").wait_for()
        expect(page.get_by_text("a second queue 'a'")).to_have_count(1)
        expect(page.get_by_text("-1 is negative")).to_have_count(1)
        page.get_by_label("Document").fill(json.dumps({"engine": "kueue", "quees": []}))
        page.get_by_role("button", name="Show the difference").click()
        page.get_by_text("/quees").wait_for()
        expect(page.get_by_text("unknown field")).to_have_count(1)


def test_a_form_opened_directly_leads_to_where_it_begins(visit: Visiting) -> None:
    with visit("admin") as somebody:
        page = somebody.go("/new")
        assert page.url.endswith("/configurations#new")
        assert "/queues/quotas?configuration=" in somebody.go("/queues/quotas").url
        somebody.expected = ("400",)
        page = somebody.go("/new?name=a%20b")
        page.get_by_text("A name has letters, digits").wait_for()


def test_landmarks_have_names_of_their_own(visit: Visiting, site: Site) -> None:
    named = """() => {
      const role = (one) => one.getAttribute("role") || one.tagName;
      const name = (one) => one.getAttribute("aria-label")
        || (document.getElementById(one.getAttribute("aria-labelledby")) || {}).textContent || "";
      const every = document.querySelectorAll("nav, [role=search], [role=region], section, main form.filters");
      return [...every].map((one) => [role(one), name(one).trim()]);
    }"""
    with visit("admin") as somebody:
        for path in (
            "/queues?configuration=zoned&snapshot=zoned", f"/decisions/{site.decisions['many']}",
            f"/simulations/{site.decisions['loop']}", f"/simulations/{site.decisions['loop']}/rounds",
            "/queues/of?configuration=example&queue=research&snapshot=now", "/configurations",
            "/configurations/example", "/decisions", "/queues/quotas?configuration=example&snapshot=now", "/",
        ):  # fmt: skip
            found = [tuple(one) for one in somebody.go(path).evaluate(named)]
            assert [one for one in found if not one[1]] == [], path
            assert len(set(found)) == len(found), path


def test_leaving_with_something_unsaved_asks(visit: Visiting, site: Site) -> None:
    site.call("PUT", "/v1/configurations/unsaved", {"engine": "kueue", "queues": [QUEUE]})
    with visit("admin") as somebody:
        page = somebody.go("/configurations/unsaved/edit")
        asked: list[str] = []
        page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
        box = page.get_by_label("Document")
        box.press("End")
        page.goto(f"{site.address}/queues")
        assert asked == [], "nothing was typed"
        page.goto(f"{site.address}/configurations/unsaved/edit")
        box.press("x")
        page.goto(f"{site.address}/queues")
        assert asked == ["beforeunload"]
