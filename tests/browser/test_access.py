"""Tokens, sessions and the audit log: made, ended and read at both widths, dark and light."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOOKS, Site, Visiting
from tests.support.pages import findings, fits


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_a_token_is_made_shown_once_and_revoked(visit: Visiting, site: Site, width: int, *, dark: bool) -> None:
    name = f"nightly {width} {dark}"
    with visit("admin") as somebody:
        page = somebody.go("/")
        somebody.look(width=width, dark=dark)
        page.get_by_role("link", name="Access").click()
        page.get_by_role("button", name="Create a token").wait_for()
        assert findings(page) == []
        fits(page, width)
        page.get_by_label("Whom it is for").fill(name)
        page.get_by_label("Days until it expires").fill("30")
        page.get_by_label("decide", exact=True).check()
        page.get_by_role("button", name="Create a token").click()
        shown = page.get_by_role("status")
        shown.wait_for()
        assert findings(page) == []
        fits(page, width)
        page.wait_for_load_state()
        secret = shown.locator("pre").inner_text()
        site.secrets[name] = secret
        assert site.call("POST", "/v1/shares", {"state": {"snapshot": "now"}}, scope=name)["queues"]
        somebody.picture(f"access-{width}-{'dark' if dark else 'light'}")
        row = page.get_by_role("region", name="Tokens").locator("tbody tr", has_text=name)
        expect(row).to_contain_text("valid", use_inner_text=True)
        page.goto(site.address + "/access")
        assert secret not in page.content()
        page.get_by_role("link", name=f"Revoke… {name}").click()
        assert findings(page) == []
        page.get_by_role("button", name="Revoke it").click()
        page.wait_for_url("**/access")
        row = page.get_by_role("region", name="Tokens").locator("tbody tr", has_text=name)
        expect(row).to_contain_text("revoked", use_inner_text=True)
        page.get_by_role("link", name="Who did what").click()
        log = page.get_by_role("region", name="The audit log")
        log.wait_for()
        assert findings(page) == []
        fits(page, width)
        log.get_by_role("link", name=re.compile("revoke")).first.click()
        page.wait_for_url("**/audit?action=**")
        assert set(log.locator("tbody tr td:nth-child(3)").all_inner_texts()) == {"token.revoke"}


def test_a_session_is_ended(visit: Visiting, site: Site) -> None:
    secret = site.call("POST", "/v1/tokens", {"name": "guest", "scopes": ["read"]})["token"]
    with visit("admin") as somebody, visit(None) as guest:
        page = guest.go("/sign-in")
        page.get_by_label("Token").fill(secret)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("heading", name="Overview").wait_for()
        ours = somebody.go("/access")
        ours.get_by_role("link", name=re.compile("^End… that of token:guest")).click()
        ours.get_by_role("button", name="End it").click()
        ours.wait_for_url("**/access")
        expect(ours.get_by_role("region", name="Sessions")).not_to_contain_text("token:guest", use_inner_text=True)
        page.goto(site.address + "/decisions")
        assert "/sign-in" in page.url


def test_what_is_wrong_with_a_token_is_said_and_nothing_is_made(visit: Visiting, site: Site) -> None:
    with visit("admin") as somebody:
        somebody.expected = ("422",)
        page = somebody.go("/access")
        before = len(site.call("GET", "/v1/tokens")["items"])
        page.get_by_label("Whom it is for").fill("nobody")
        page.get_by_role("button", name="Create a token").click()
        page.get_by_role("alert").wait_for()
        expect(page.get_by_role("alert")).to_contain_text("/scopes", use_inner_text=True)
        expect(page.get_by_label("Whom it is for")).to_have_value("nobody")
        page.get_by_label("Days until it expires").fill("soon")
        page.get_by_role("button", name="Create a token").click()
        page.get_by_text("whole number").wait_for()
        assert len(site.call("GET", "/v1/tokens")["items"]) == before


def test_who_may_only_read_is_not_shown_the_way(visit: Visiting) -> None:
    with visit("read") as somebody:
        somebody.expected = ("403",)
        page = somebody.go("/")
        expect(page.get_by_role("link", name="Access")).to_have_count(0)
        page = somebody.go("/access")
        expect(page.locator("main")).to_contain_text("needs scope admin", use_inner_text=True)
