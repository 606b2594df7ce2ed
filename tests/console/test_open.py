"""The console of an open service, without a browser: empty, without its database, and against forged forms."""

import json
import re

import zstandard
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.service.serve import EXAMPLE, NAME, fill
from tests.support import released
from tests.support.working import working

PLAIN = (
    "/",
    "/queues",
    "/decisions",
    "/why?workload=x",
    "/ask",
    "/plan",
    "/compare",
    "/configurations",
    "/simulations",
    "/simulate",
    "/import",
    "/clusters",
)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_an_empty_service_says_what_to_do_next(service: TestClient) -> None:
    for page in PLAIN:
        answer = service.get(page)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-security-policy"].startswith("default-src 'self'")
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert re.search(r"<(script|style)(?![^>]*\bsrc=)[^>]*>|\sstyle=|\son[a-z]+=", answer.text) is None, page
        assert service.head(page).status_code == 200
        unknown = service.get(page, params={"unknown": 1})
        assert unknown.status_code == 422, page
        assert "text/html" in unknown.headers["content-type"]


def test_its_scripts_are_sent_compressed(service: TestClient) -> None:
    page = service.get("/").text
    scripts = re.findall(r'<script[^>]* src="([^"]+)"', page)
    assert scripts
    for place in scripts:
        plain = service.get(place, headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers
        for coding in ("gzip", "zstd"):
            sent = service.get(place, headers={"Accept-Encoding": coding})
            assert (sent.headers["content-encoding"], sent.headers["vary"]) == (coding, "Accept-Encoding"), place
            assert int(sent.headers["content-length"]) < len(plain.content) / 2
            body = zstandard.ZstdDecompressor().stream_reader(sent.content).read() if coding == "zstd" else sent.content
            assert body == plain.content


def test_with_the_examples_every_page_shows_something(service: TestClient, settings: Settings) -> None:
    first = json.loads(EXAMPLE.read_bytes())

    def send(method: str, path: str, body: bytes, media: str = "application/json") -> None:
        answer = service.request(method, path, content=body, headers={"Content-Type": media})
        assert answer.status_code < 300, answer.text

    send("PUT", f"/v1/configurations/{NAME}", json.dumps({"engine": "kueue", **first["configuration"]}).encode())
    fill(send)
    with working(settings) as worker:
        while worker.once():
            pass
    run = service.get("/v1/simulations").json()["items"][0]["id"]
    shown = {page.partition("?")[0] for page in PLAIN} - {"/why", "/clusters"}
    place = f"?configuration={NAME}&snapshot={NAME}"
    more = {"/why?workload=sweep-17", f"/queues{place}", f"/queues/quotas{place}", f"/simulations/{run}"}
    assert "No snapshot is called" in service.get("/plan?snapshot=nope").text
    assert "Type any part of a name" in service.get("/find").text
    for page in sorted(shown | more):
        answer = service.get(page)
        assert answer.status_code == 200, page
        assert 'class="empty"' not in answer.text, page
    assert 'id="loops"' in service.get(f"/simulations/{run}").text


def test_what_a_release_changes_is_named_where_courses_part_and_in_backtests(
    service: TestClient, settings: Settings
) -> None:
    situation = {"configuration": released.configuration("0.13"), "state": released.STATE}
    newer = {"name": "newer", "settings": {"kai": released.settings("0.17")}}
    assert service.post("/v1/decisions", json={**situation, "asks": [released.WAITS], "mode": "cycle"}).is_success
    jobs = [{"ask": released.WAITS, "submitted_at": 0, "duration": 100}]
    run = {**situation, "trace": {"jobs": jobs}, "remaining": {"r": 50}, "variants": [{"name": "now"}, newer]}
    pages: list[str] = []
    for kind, body in (("simulations", run), ("backtests", {"variants": [newer]})):
        accepted = service.post(f"/v1/{kind}", json=body)
        assert accepted.status_code == 202, accepted.text
        pages.append(f"/{kind}/{accepted.json()['id']}")
    with working(settings) as worker:
        while worker.once():
            pass
    for page in pages:
        assert released.RULE in service.get(page).text, page


def test_without_its_database_it_says_so(homeless: TestClient) -> None:
    for page in (
        "/",
        "/queues",
        "/decisions",
        "/why?workload=x",
        "/configurations",
        "/simulations",
        "/simulate",
        "/clusters",
    ):
        answer = homeless.get(page)
        assert answer.status_code == 503, page
        assert "text/html" in answer.headers["content-type"]
        assert "Nothing was changed" in answer.text


def test_a_form_that_another_site_made_up_is_refused(service: TestClient) -> None:
    forged = service.post("/configurations/x/edit", content="step=save&document={}", headers=FORM)
    assert forged.status_code == 403
    other = re.search(r'name="stamp" value="(\w+)"', service.get("/ask").text)
    assert other is not None
    service.cookies.clear()
    stolen = service.post("/ask", content=f"stamp={other[1]}&request={{}}", headers=FORM)
    assert stolen.status_code == 403


def test_a_form_of_ours_is_taken(service: TestClient) -> None:
    stamp = re.search(r'name="stamp" value="(\w+)"', service.get("/ask").text)
    assert stamp is not None
    wrong = service.post("/ask", content=f"stamp={stamp[1]}&request=%7B", headers=FORM)
    assert wrong.status_code == 422
    assert "not a JSON object" in wrong.text


def test_files_are_kept_for_ever_at_addresses_of_their_content(service: TestClient) -> None:
    found = re.findall(r'(?:href|src)="(/assets/[^"]+)"', service.get("/").text)
    assert len(set(found)) >= 4
    for address in found:
        answer = service.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    sent = [service.get(one, headers={"Accept-Encoding": "gzip"}) for one in found if one.endswith((".js", ".css"))]
    sent = [one for one in sent if len(one.content) > 4096]
    assert [one.headers.get("content-encoding") for one in sent[:3]] == ["gzip"] * 3
    assert all(2 * int(one.headers["content-length"]) < len(one.content) for one in sent)
    assert service.get(re.sub(r"/assets/\w+/", "/assets/0/", found[0])).status_code == 404


def test_an_address_where_nothing_is_answers_browsers_with_a_page(service: TestClient) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    found = service.get("/decision<b>/x", headers=browser)
    assert (found.status_code, found.headers["content-type"].partition(";")[0]) == (404, "text/html")
    assert "There is no such thing here" in found.text
    assert "<b>" not in found.text
    assert service.head("/nowhere", headers=browser).status_code == 404
    for path, headers in (("/nowhere", {}), ("/v1/nowhere", browser)):
        assert service.get(path, headers=headers).headers["content-type"] == "application/problem+json", path
