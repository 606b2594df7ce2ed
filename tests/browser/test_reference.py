"""The reference at /docs: nothing serious for axe, offline, and what is tried there is sent in earnest."""

from tests.browser.conftest import NARROW, WIDE, Site, Visiting, Visitor
from tests.support.pages import findings, until


def check(somebody: Visitor, name: str) -> None:
    """The page as it is, in both themes, wide and narrow."""
    for width, dark in ((NARROW, True), (WIDE, False)):
        page = somebody.look(width=width, dark=dark)
        until(page, f"document.documentElement.classList.contains('dark-mode') === {str(dark).lower()}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert findings(page, impacts=("serious", "critical")) == []  # the rest is Swagger's own
        somebody.picture(f"{name}-narrow-dark" if dark else name, whole=False)


def test_it_works_offline_and_tries_in_earnest(visit: Visiting, site: Site) -> None:
    with visit("read") as somebody:
        asked: list[str] = []
        somebody.page.on("request", lambda request: asked.append(request.url))
        page = somebody.go("/docs")
        page.locator(".opblock").first.wait_for()
        check(somebody, "docs")
        page.get_by_label("Filter by tag or path").fill("/labels")
        until(page, "document.querySelectorAll('.opblock').length === 4")
        page.get_by_role("button", name="Authorize").click()
        page.locator(".auth-container input").fill(site.secrets["read"])
        page.locator(".auth-btn-wrapper .authorize").click()
        check(somebody, "docs-sign-in")
        page.locator(".auth-btn-wrapper .btn-done").click()
        page.wait_for_load_state()
        for operation in page.locator(".opblock-summary-control").all():
            operation.click()
        tried = page.locator("#operations-configurations-list_labels")
        tried.get_by_label("name", exact=True).fill("example")
        tried.get_by_role("button", name="Execute").click()
        tried.locator(".live-responses-table").get_by_text("200").first.wait_for()
        assert "/configurations/" in page.url, "an operation has its address"
        check(somebody, "docs-tried")
        page.get_by_role("link", name="Console").click()
        page.get_by_role("heading", name="Overview").wait_for()
        assert {url for url in asked if not url.startswith((site.address, "data:", "blob:"))} == set()
