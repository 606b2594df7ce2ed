"""Forecasts and backtests: begun, read when they are done, forgotten; at both widths, dark and light."""

import re
from pathlib import Path
from time import sleep

import msgspec
import pytest
import zstandard
from playwright.sync_api import Route, expect

from app.console.overview import EVERY_SECONDS
from app.studies.forecasting import FORECAST
from tests.browser.conftest import LOOKS, Site, Visiting
from tests.support.pages import findings, fits
from tests.support.recordings import course


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_the_log_is_decided_again_under_another_configuration(
    visit: Visiting, site: Site, width: int, *, dark: bool
) -> None:
    with visit("admin") as somebody:
        page = somebody.go("/backtests")
        somebody.look(width=width, dark=dark)
        page.get_by_label("Under the stored configuration").fill("empty-handed")
        page.get_by_label("Only those decided on").fill("example")
        page.get_by_role("button", name="Decide again").click()
        page.get_by_role("heading", name="The log, decided again").wait_for()
        assert findings(page) == []
        fits(page, width)
        while site.worker.once():
            pass
        page.reload()
        variants = page.get_by_role("region", name="Variants")
        variants.wait_for()
        expect(variants).to_contain_text("empty-handed", use_inner_text=True)
        assert findings(page) == []
        fits(page, width)
        otherwise = page.get_by_role("region", name="Decided otherwise")
        assert re.match("/decisions/", otherwise.get_by_role("link").first.get_attribute("href") or "")
        expect(otherwise).to_contain_text("refused", use_inner_text=True)
        somebody.picture(f"backtest-{width}-{'dark' if dark else 'light'}")
        page.get_by_role("link", name="Forget it…").click()
        page.get_by_role("button", name="Stop or forget it").click()
        page.wait_for_url("**/backtests")


def test_a_recording_is_uploaded_and_decided_again(visit: Visiting, site: Site, tmp_path: Path) -> None:
    lines = b"".join(msgspec.json.encode(line) + b"\n" for line in course("kai").lines)
    file = tmp_path / "recording.zst"
    began = b'{"type":"RECORDING","version":1,"engine":"kai","cluster":"c"}\n'
    file.write_bytes(zstandard.ZstdCompressor().compress(began + lines))
    with visit("admin") as somebody:
        page = somebody.go("/backtests")
        page.get_by_label("Under the stored configuration").fill("empty-handed")
        page.get_by_label("A recording, in place of the log").set_input_files(file)
        page.wait_for_function("document.getElementById('recording').value !== ''")
        page.get_by_role("button", name="Decide again").click()
        page.get_by_role("heading", name="A recording, decided again").wait_for()
        while site.worker.once():
            pass
        page.reload()
        expect(page.get_by_role("region", name="Variants")).to_contain_text("empty-handed", use_inner_text=True)
        expect(page.get_by_role("region", name="Decided otherwise")).to_contain_text("default/one", use_inner_text=True)
        assert findings(page) == []


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_a_forecast_says_when_each_ask_starts(visit: Visiting, site: Site, width: int, *, dark: bool) -> None:
    made = site.call("POST", "/v1/forecasts", FORECAST)
    while site.worker.once():
        pass
    told = site.call("GET", f"/v1/forecasts/{made['id']}")["asks"]
    with visit("admin") as somebody:
        page = somebody.go("/forecasts")
        somebody.look(width=width, dark=dark)
        page.locator(f"a[href='/forecasts/{made['id']}']").click()
        asks = page.get_by_role("region", name="Asks that wait")
        asks.wait_for()
        assert told
        expect(asks.locator("tbody tr")).to_have_count(len(told))
        expect(asks).to_contain_text(told[0]["ask"], use_inner_text=True)
        assert findings(page) == []
        fits(page, width)
        page.get_by_role("link", name="Forget it…").click()
        page.get_by_role("button", name="Stop or forget it").click()
        page.wait_for_url("**/forecasts")


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_a_trace_is_played_under_a_grid(visit: Visiting, site: Site, width: int, *, dark: bool) -> None:
    with visit("admin") as somebody:
        page = somebody.go("/sweeps")
        somebody.look(width=width, dark=dark)
        page.get_by_role("combobox").select_option("january")
        page.get_by_label("Configurations, by name").fill("teams")
        values = page.get_by_label("Values to try")
        values.fill("/configuration/settings/kueue/fair_sharing: [false, much]")
        page.get_by_role("button", name="Play them").click()
        somebody.expected = ("422",)
        page.get_by_role("alert").wait_for()
        page.wait_for_load_state()
        assert "much" in values.input_value(), "what was typed stays"
        values.fill("/configuration/settings/kueue/fair_sharing: [false, true]")
        assert findings(page) == []
        fits(page, width)
        page.get_by_role("button", name="Play them").click()
        page.get_by_role("heading", name="january, in 2 ways").wait_for()
        expect(page.get_by_text("Nothing so far")).to_have_count(1)
        while site.worker.once():
            pass
        points = page.get_by_role("region", name="Points")
        points.wait_for()  # without loading the page again
        rows = points.locator("tbody tr")
        for i, value in enumerate(("false", "true")):
            expect(rows.nth(i)).to_have_text(re.compile(rf"^\S+\s+{value}\b"), use_inner_text=True)
        expect(rows).to_have_count(2)
        assert findings(page) == []
        fits(page, width)
        somebody.picture(f"sweep-{width}-{'dark' if dark else 'light'}")
        page.get_by_role("link", name="Forget it…").click()
        page.get_by_role("button", name="Stop or forget it").click()
        page.wait_for_url("**/sweeps")


def test_what_happened_before_a_page_listens_is_shown_too(visit: Visiting, site: Site) -> None:
    def play(route: Route) -> None:
        if "sweeps" in page.url and not page.url.endswith("/sweeps"):
            while site.worker.once():
                pass
            sleep(1.5 * EVERY_SECONDS)  # what was looked at before that is no longer asked for
        route.continue_()

    with visit("admin") as somebody:
        page = somebody.go("/sweeps")
        page.route("**/events?*", play)
        page.get_by_role("combobox").select_option("january")
        page.get_by_label("Configurations, by name").fill("teams")
        page.get_by_role("button", name="Play them").click()
        page.get_by_role("heading", name="january").wait_for()
        page.get_by_role("region", name="Points").wait_for()  # without loading the page again
        page.get_by_role("link", name="Forget it…").click()
        page.get_by_role("button", name="Stop or forget it").click()
        page.wait_for_url("**/sweeps")


def test_a_configuration_that_is_not_there_is_said_and_what_was_typed_stays(visit: Visiting) -> None:
    with visit("admin") as somebody:
        somebody.expected = ("404", "422")
        page = somebody.go("/backtests")
        page.get_by_label("Under the stored configuration").fill("nowhere")
        page.get_by_role("button", name="Decide again").click()
        page.get_by_role("alert").wait_for()
        expect(page.get_by_label("Under the stored configuration")).to_have_value("nowhere")
