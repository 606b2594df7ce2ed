"""A service whose database can't be reached, in a browser; and what the checks of the keyboard find."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.conftest import NARROW
from tests.browser.keyboard import HEARD, dead_ends, unreachable
from tests.support.live import serving
from tests.support.pages import findings

NOBODY_THERE = "postgresql+psycopg://nobody@127.0.0.1:1/none"
BROKEN = """<!doctype html><div id=mouse>only the mouse</div><a>no address</a><button tabindex=3>jumps</button>
<form><input><button tabindex=-1>Send</button></form><form><input><button>Send</button></form>"""


def test_its_pages_say_so_and_the_browser_complains_of_nothing_else(browser: Browser, tmp_path: Path) -> None:
    with serving(NOBODY_THERE, tmp_path, WORKERS="0") as (address, _), browser.new_page() as page:
        complaints: list[str] = []
        page.on("console", lambda said: complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.set_viewport_size({"width": NARROW, "height": 800})
        for path in ("/", "/queues?configuration=example", "/decisions"):
            answer = page.goto(address + path, wait_until="load")
            assert answer is not None
            assert answer.status == 503, path
            expect(page.get_by_text("Nothing was changed"), path).to_have_count(1)
            assert page.evaluate("document.documentElement.scrollWidth") <= NARROW
            # Chromium tells of the page's own status; anything else would be a script's or the policy's.
            assert [text for text in complaints if "503 (Service Unavailable)" not in text] == []
        assert findings(page) == []


def test_the_keyboard_s_checks_find_what_only_a_mouse_can_do(browser: Browser) -> None:
    with browser.new_page() as page:
        page.add_init_script(HEARD)
        page.goto("about:blank")
        page.set_content(BROKEN)
        page.evaluate("document.getElementById('mouse').addEventListener('click', () => {})")
        found = unreachable(page)
        for wrong in ("only the mouse", "no address", ">Send<", "jumps"):
            assert sum(wrong in one for one in found) == 1, (wrong, found)
        assert len(dead_ends(page)) == 1
