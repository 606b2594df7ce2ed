"""What tests of pages share with those beside them."""

from axe_playwright_python.base import AXE_SCRIPT  # pyright: ignore[reportMissingTypeStubs]
from playwright.sync_api import Page


def findings(page: Page, within: str = "html", impacts: tuple[str, ...] = ()) -> list[str]:
    """What axe finds, of whatever kind, or of these; its script is brought once to a page that stays."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate("within => axe.run(within, {resultTypes: ['violations'], elementRef: false})", within)[
        "violations"
    ]
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:160]}"
        for one in found
        if one["impact"] in (impacts or (one["impact"],))
    ]


def fits(page: Page, width: int) -> None:
    """Nothing of it is beside the screen."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def until(page: Page, holds: str) -> None:
    """Wait for what a script says; the browser's own waiting would have to evaluate text, which our policy forbids."""
    for _ in range(100):
        if page.evaluate(holds):
            return
        page.wait_for_timeout(50)
    raise AssertionError(holds)


def cut(page: Page) -> list[str]:
    """Tables with columns beside the screen; a page on which ``tables.js`` has run."""
    return page.locator(".scroll.over").evaluate_all("boxes => boxes.map((one) => one.getAttribute('aria-label'))")
