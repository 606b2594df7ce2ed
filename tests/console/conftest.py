"""One service that asks everybody for a name, and one Chromium, for all tests of the console in a run."""

import json
import os
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from app.auth.service import Tokens
from app.db import Database, migrate
from app.settings import Settings
from tests.console.seeds import seed
from tests.live import ROOT, serving

SCREENSHOTS = ROOT / "dist" / "screenshots"
WIDE, NARROW = 1280, 380


@dataclass
class Site:
    """The service. ``secrets``: a token by scope; ``decisions``: ids in its log by name."""

    address: str
    secrets: dict[str, str]
    decisions: dict[str, str] = field(default_factory=dict[str, str])

    def call(self, method: str, path: str, body: Any = None, scope: str = "admin", **headers: str) -> Any:
        """The API, as a program uses it."""
        data = None if body is None else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self.secrets[scope]}", "Content-Type": "application/json", **headers}
        with urllib.request.urlopen(
            urllib.request.Request(self.address + path, data, sent, method=method), timeout=60
        ) as answer:
            return json.loads(answer.read() or b"null")


@pytest.fixture(scope="session")
def site(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    url = new_database()
    migrate(url)
    database = Database(url, Settings(database_url=url))
    tokens = Tokens(database)
    secrets = {scope: tokens.create(f"a {scope}", [scope], None)[0] for scope in ("read", "decide", "admin")}
    with serving(url, tmp_path_factory.mktemp("site"), ARBITER_AUTHENTICATION="required") as (address, _):
        found = Site(address, secrets)
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

    def __init__(self, site: Site, context: BrowserContext) -> None:
        self.site = site
        self.context = context
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.expected: tuple[str, ...] = ()
        self.page.on("console", lambda said: self._complain(said.text) if said.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self._complain(str(error)))

    def _complain(self, text: str) -> None:
        self.complaints.append(text)

    def go(self, path: str) -> Page:
        self.page.goto(self.site.address + path, wait_until="load")
        return self.page

    def sign_in(self, scope: str) -> None:
        self.go("/sign-in")
        self.page.get_by_label("Token").fill(self.site.secrets[scope])
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_load_state("load")

    def picture(self, name: str) -> Path:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        self.page.screenshot(path=path, full_page=True)
        return path


@pytest.fixture(scope="package")
def states(site: Site, browser: Browser) -> dict[str, Any]:
    """What the browser keeps of each scope's session, signed in once."""
    kept: dict[str, Any] = {}
    for scope in site.secrets:
        context = browser.new_context()
        visitor = Visitor(site, context)
        visitor.sign_in(scope)
        kept[scope] = context.storage_state()
        context.close()
    return kept


Visiting = Callable[..., Any]


@pytest.fixture
def visit(site: Site, browser: Browser, states: dict[str, Any]) -> Visiting:
    """Makes visitors: ``with visit("read") as somebody``; None is signed out."""

    @contextmanager
    def made(scope: str | None = "admin", *, width: int = WIDE, dark: bool = False, **more: Any) -> Iterator[Visitor]:
        context = browser.new_context(
            storage_state=states[scope] if scope else None, viewport={"width": width, "height": 800},
            color_scheme="dark" if dark else "light", reduced_motion="reduce", **more,
        )  # fmt: skip
        context.set_default_timeout(15_000)
        visitor = Visitor(site, context)
        try:
            yield visitor
            complaints = [text for text in visitor.complaints if not any(word in text for word in visitor.expected)]
            assert complaints == []
        finally:
            context.close()

    return made
