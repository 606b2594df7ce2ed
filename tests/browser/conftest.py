"""One service that asks everybody for a name, and one Chromium, for all tests of the console in a run."""

import json
import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, sync_playwright

from app.auth.tokens import Tokens
from app.base.settings import Settings
from app.db.database import Database
from app.jobs.worker import Worker
from tests.browser.seeds import seed
from tests.support.live import ROOT, serving
from tests.support.working import working

SCREENSHOTS = ROOT / "dist" / "screenshots"
WIDE, DESK, NARROW = 1280, 1152, 380
LOOKS = [(WIDE, False), (WIDE, True), (NARROW, False), (NARROW, True)]


@dataclass
class Site:
    """The service. ``secrets``: a token by scope; ``worker``: who makes simulations, when told to;
    ``decisions``: ids by name, of decisions in its log and of simulations."""

    address: str
    secrets: dict[str, str]
    worker: Worker
    decisions: dict[str, str] = field(default_factory=dict[str, str])

    def call(self, method: str, path: str, body: Any = None, scope: str = "admin", **headers: str) -> Any:
        """The API, as a program uses it."""
        data = None if body is None else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self.secrets[scope]}", "Content-Type": "application/json", **headers}
        request = urllib.request.Request(self.address + path, data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            error.add_note(error.read().decode())
            raise


@pytest.fixture(scope="session")
def site(migrated_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    url = migrated_database()
    database = Database(url, Settings(database_url=url))
    tokens = Tokens(database)
    secrets = {scope: tokens.create(f"a {scope}", [scope], None)[0] for scope in ("read", "decide", "admin")}
    folder = tmp_path_factory.mktemp("site")
    with (
        serving(url, folder, ARBITER_AUTHENTICATION="required") as (address, _),
        working(Settings(database_url=url, data_dir=folder)) as worker,
    ):
        found = Site(address, secrets, worker)
        seed(found)
        yield found
    database.close()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """For as long as tests of pages come one after another: Playwright keeps an event loop running in this thread, and
    no other test could run one of its own there."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium here: install chromium")
    with sync_playwright() as playwright:
        arguments = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        started = playwright.chromium.launch(executable_path=program, args=arguments)
        yield started
        started.close()


class Visitor:
    """Somebody at a browser. What the browser complains of on the way fails the test."""

    def __init__(self, site: Site, context: BrowserContext, *, pictures: bool) -> None:
        self.site = site
        self._pictures = pictures
        self.context = context
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.expected: tuple[str, ...] = ()
        self.given_up: tuple[str, ...] = ()
        self.page.on("console", lambda said: self._complain(said.text) if said.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self._complain(str(error)))
        self.page.on("requestfailed", self._failed)

    def _failed(self, sent: Request) -> None:
        """What a page asks for is given up where it is left, and htmx says so."""
        if sent.failure == "net::ERR_ABORTED":
            self.given_up = ("htmx:afterRequest", "htmx:sendError")
        else:
            self._complain(f"{sent.url}: {sent.failure}")

    def _complain(self, text: str) -> None:
        self.complaints.append(text)

    def go(self, path: str) -> Page:
        self.page.goto(self.site.address + path, wait_until="load")
        return self.page

    def look(self, *, width: int, dark: bool) -> Page:
        """The same page, as wide and in that theme."""
        self.page.emulate_media(color_scheme="dark" if dark else "light")
        self.page.set_viewport_size({"width": width, "height": 800})
        return self.page

    def picture(self, name: str, *, whole: bool = True) -> None:
        """With ``--pictures`` keep what the page looks like; not ``whole``: what is on the screen."""
        if self._pictures:
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=whole)


def _opened(browser: Browser) -> BrowserContext:
    made = browser.new_context(
        viewport={"width": WIDE, "height": 800}, color_scheme="light", reduced_motion="reduce"
    )  # fmt: skip
    made.set_default_timeout(15_000)
    return made


@pytest.fixture(scope="package")
def signed_in(site: Site, browser: Browser) -> Iterator[dict[str, BrowserContext]]:
    """A browser's window by scope, signed in as its form would; they keep scripts and styles between tests."""
    kept: dict[str, BrowserContext] = {}
    for scope, secret in site.secrets.items():
        kept[scope] = _opened(browser)
        shown = kept[scope].request.get(f"{site.address}/sign-in").text()
        stamp = re.search(r'name="stamp" value="(\w+)"', shown)
        assert stamp is not None
        sent = {"stamp": stamp[1], "token": secret}
        assert kept[scope].request.post(f"{site.address}/sign-in", form=sent, max_redirects=0).status == 303
    yield kept
    for context in kept.values():
        context.close()


Visiting = Callable[..., AbstractContextManager[Visitor]]


@pytest.fixture
def visit(site: Site, browser: Browser, signed_in: dict[str, BrowserContext], pytestconfig: pytest.Config) -> Visiting:
    """Makes visitors: ``with visit("read") as somebody``; None is signed out, in a window of their own."""

    @contextmanager
    def made(scope: str | None = "admin") -> Generator[Visitor]:
        context = _opened(browser) if scope is None else signed_in[scope]
        visitor = Visitor(site, context, pictures=bool(pytestconfig.getoption("--pictures")))
        try:
            yield visitor
            words = visitor.expected + visitor.given_up
            complaints = [text for text in visitor.complaints if not any(word in text for word in words)]
            assert complaints == []
        finally:
            visitor.page.close()
            if scope is None:
                context.close()

    return made
