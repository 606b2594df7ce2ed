"""Who is asked in, signs in and out, here or at a provider; and what open pages are told."""

import asyncio
from typing import Any, cast

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.auth.audit import Caller, acting
from app.auth.oidc import CodeFlow
from app.auth.router import Session, Sessions
from app.base.errors import ArbiterError, Forbidden, NotFound, TooManyRequests, Unavailable
from app.console import access, overview, visit
from app.console import access as provider
from app.console import overview as missing
from app.console.access import PageVisitors
from app.console.api import Api, ApiError, Reply
from app.console.overview import EVERY_SECONDS, Listeners
from app.console.visit import Visit
from tests.support.instead import Instead
from tests.unit.console.requests import READER, Json, Operations, operation, request


def visitors(of: Request) -> PageVisitors:
    return PageVisitors(of.app.state.services.of(Sessions))


def found(_: Sessions, cookie: str) -> Session | None:
    return Session("i", READER) if cookie == "arbs_reader" else None


def test_a_session_says_who_asks(instead: Instead) -> None:
    instead(Sessions, find=found)
    one = request()
    signed = request(headers={"cookie": "arbiter_session=arbs_reader"})
    assert visitors(signed).caller(signed.scope) == READER
    assert visitors(one).caller(one.scope) is None
    forged = request(headers={"cookie": "arbiter_session=x"})
    assert visitors(forged).caller(forged.scope) is None


@pytest.mark.parametrize(
    ("of", "where"),
    [
        (request(path="/a/ä", query="b=c"), "/sign-in?next=%2Fa%2F%C3%A4%3Fb%3Dc"),
        (request(path="/a", method="HEAD"), "/sign-in?next=%2Fa"),
        (request(path="/a", method="POST"), "/sign-in?next=%2F"),
        (request(path="/a", headers={"sec-fetch-site": "same-origin"}), "/sign-in?next=%2Fa"),
        (request(path="/a", method="POST", headers={"sec-fetch-site": "cross-site"}), "/sign-in?next=%2F"),
    ],
)
def test_who_has_no_session_is_asked_in_and_comes_back(of: Request, where: str) -> None:
    answer = visitors(of).ask_in(of.scope)
    assert (answer.status_code, answer.headers["location"]) == (303, where)
    assert answer.headers["cache-control"] == "no-store"


def test_links_from_elsewhere_come_again_and_parts_of_pages_lead_the_whole_one() -> None:
    for site in ("cross-site", "same-site"):
        of = request(path="/a b", query="c=<d>", headers={"sec-fetch-site": site})
        answer = visitors(of).ask_in(of.scope)
        assert answer.status_code == 200
        assert "url=/a%20b?c=%3Cd%3E" in bytes(answer.body).decode()
    of = request(path="/a", headers={"hx-request": "true"})
    answer = visitors(of).ask_in(of.scope)
    assert (answer.status_code, answer.headers["hx-redirect"]) == (204, "/sign-in?next=%2Fa")
    assert answer.headers["cache-control"] == "no-store"


def test_a_refusal_is_a_page_also_where_nobody_knows_whose_session_it_is() -> None:
    of = request()
    for error, status in ((Forbidden("not you"), 403), (Unavailable("away"), 503)):
        answer = visitors(of).refusal(of.scope, cast(ArbiterError, error))
        assert (answer.status_code, error.detail in bytes(answer.body).decode()) == (status, True)
    assert "<nav" not in bytes(visitors(of).refusal(of.scope, Unavailable("away")).body).decode().partition("<main")[0]

    class Away(Visit):
        def show(self, template: str, status: int = 200, /, **values: Any) -> Response:
            raise Unavailable("away")

    answer = visit.failure(Away(request()), 404, {"title": "T", "detail": "because"})
    assert (answer.status_code, "because" in bytes(answer.body).decode()) == (404, True)


PAGES = Operations(queues=operation(page=True), api=operation(), **{"": operation(page=True)})


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("/queues?find=x", "/queues?find=x"), ("/", "/"), ("/api", "/"), ("/none", "/"), ("//evil/queues", "/"),
        ("/\\evil", "/"), ("/queues\\x", "/"), ("https://evil/queues", "/"), ("queues", "/"), ("/queues\n", "/"),
        ("", "/"),
    ],
)  # fmt: skip
def test_nobody_is_sent_elsewhere_after_signing_in(wanted: str, found: str) -> None:
    assert access.safe(Visit(request(PAGES)), wanted) == found


def test_the_form_to_sign_in_is_shown_to_whom_it_helps(instead: Instead) -> None:
    def shown(**more: Any) -> Response:
        return access.sign_in(Visit(request(PAGES, **more)), "/queues")

    assert shown().status_code == 200
    assert 'name="token"' in bytes(shown().body).decode()
    assert "/sign-in/provider" not in bytes(shown().body).decode()
    assert "/sign-in/provider" in bytes(shown(settings={"oidc_client_id": "c"}).body).decode()
    assert shown(settings={"authentication": "open"}).headers["location"] == "/queues"
    instead(Sessions, find=found)
    assert shown(headers={"cookie": "arbiter_session=arbs_reader"}).headers["location"] == "/queues"


def test_a_token_begins_a_session(instead: Instead) -> None:
    tried: list[str] = []

    def with_token(self: Sessions, secret: str, address: str) -> str | None:
        tried.append(secret)
        return "cookie" if secret == "secret" else None

    instead(Sessions, with_token=with_token)

    def done(body: bytes) -> Response:
        of = request(PAGES, method="POST", body=body, settings={"console_session_seconds": 77},
                     headers={"content-type": "application/x-www-form-urlencoded"})  # fmt: skip
        return asyncio.run(access.signed_in(Visit(of)))

    answer = done(b"token=+secret+&next=/queues")
    assert (answer.status_code, answer.headers["location"]) == (303, "/queues")
    assert "arbiter_session=cookie" in answer.headers["set-cookie"]
    assert "max-age=77" in answer.headers["set-cookie"].lower()
    assert done(b"token=secret").headers["location"] == "/"
    for body, said in (
        (b"token=wrong", "unknown, expired or revoked"),
        (b"token=+", "Paste a token."),
        (b"", "Paste a token."),
    ):
        answer = done(body)
        assert (answer.status_code, said in bytes(answer.body).decode()) == (401, True)
    assert tried == ["secret", "secret", "wrong"]


def test_who_signs_out_is_out_everywhere(instead: Instead) -> None:
    ended: list[str] = []
    instead(Sessions, end=lambda _, cookie: ended.append(cookie))
    for settings, where in (({}, "/sign-in"), ({"authentication": "open"}, "/")):
        of = request(headers={"cookie": "arbiter_session=c"}, settings=settings)
        answer = asyncio.run(access.sign_out(Visit(of)))
        assert (answer.headers["location"], ended.pop()) == (where, "c")
        assert "max-age=0" in answer.headers["set-cookie"].lower()
    answer = asyncio.run(access.sign_out(Visit(request())))
    assert (ended, answer.headers["location"]) == ([], "/sign-in")


class Flow:
    """A provider that trusts ``code``."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    async def begin(self, back: str) -> tuple[str, Json]:
        self.begun.append(back)
        return "https://provider/authorize", {"state": "s", "nonce": "n"}

    async def finish(self, code: str, kept: Json, back: str) -> Caller | None:
        assert (kept["nonce"], back) == ("n", self.begun[0])
        return READER if code == "code" else None


def test_signing_in_at_a_provider_goes_there_and_back(instead: Instead) -> None:
    instead(Sessions, with_caller=lambda _, caller, address: f"session-of-{caller.name}")
    kept: dict[str, Json] = {}

    def remember(_: Sessions, said: Json, seconds: int) -> str:
        kept["named"] = said
        assert seconds == 600
        return "named"

    def recall(_: Sessions, identifier: str, state: str) -> Json | None:
        said = kept.get(identifier)
        return said if said is not None and said["state"] == state else None

    instead(Sessions, remember=remember, recall=recall)
    flow = Flow()
    there = Visit(request(PAGES, flow=cast(CodeFlow, flow)))
    answer = asyncio.run(provider.there(there, "/queues"))
    assert (answer.status_code, answer.headers["location"]) == (303, "https://provider/authorize")
    assert (flow.begun, answer.headers["cache-control"]) == (["http://arbiter.test/sign-in/done"], "no-store")
    sent = answer.headers["set-cookie"]
    assert sent.startswith("arbiter_flow=")
    assert "max-age=600" in sent.lower()
    assert "samesite=lax" in sent.lower()

    def back(code: str, state: str, cookie: str = sent.partition(";")[0], **more: str) -> Response:
        of = request(PAGES, flow=flow, headers={"cookie": cookie}, settings={"console_session_seconds": 77})
        return asyncio.run(provider.back(Visit(of), code, state, **more))

    done = back("code", "s")
    assert 'url=/queues"' in bytes(done.body).decode()
    cookies = [value.decode().lower() for name, value in done.raw_headers if name == b"set-cookie"]
    assert cookies[0].startswith("arbiter_session=session-of-reader;")
    assert "max-age=77" in cookies[0]
    assert cookies[1].startswith("arbiter_flow=")
    assert "max-age=0" in cookies[1]
    for given, why in (
        (("code", "other"), "was not begun here"), (("code", ""), "was not begun here"),
        (("code", "s", "x=y"), "was not begun here"), (("", "s"), "the provider refuses: no code"),
        (("wrong", "s"), "can't be trusted"),
    ):  # fmt: skip
        with pytest.raises(Forbidden, match=why):
            back(*given)
    for more, why in (
        ({"error": "denied"}, "refuses: denied"),
        ({"error": "e", "error_description": "no"}, "refuses: no"),
    ):
        with pytest.raises(Forbidden, match=why):
            back("code", "s", **more)
    with pytest.raises(NotFound, match="no provider is set up"):
        asyncio.run(provider.there(Visit(request(PAGES))))


def test_addresses_where_nothing_is_are_a_page_for_browsers() -> None:
    def answered(**more: Any) -> Response:
        return asyncio.run(missing._answer(request(Operations(), **more), HTTPException(404)))  # pyright: ignore

    browser = {"accept": "text/html"}
    answer = answered(path="/" + "x" * 300, headers=browser)
    assert answer.status_code == 404
    text = bytes(answer.body).decode()
    assert f"No page is at /{'x' * 199}: the link is old" in text
    assert answered(path="/x").headers["content-type"] == "application/problem+json"
    assert answered(path="/v1/x", headers=browser).headers["content-type"] == "application/problem+json"


class Looking:
    """An API that is looked at; ``answer`` is what it says."""

    def __init__(self) -> None:
        self.answer: Any = b"1"
        self.asked: list[Any] = []
        self.calls: list[Any] = []

    async def call(self, *of: Any) -> Reply:
        self.asked.append(of)
        self.calls.append(of)
        if isinstance(self.answer, Exception):
            raise self.answer
        return Reply(200, self.answer, {})


def test_a_topic_is_looked_at_once_in_a_while_for_all() -> None:
    async def all_of_it() -> None:
        clock = [0.0]
        asyncio.get_running_loop().time = lambda: clock[0]  # type: ignore[method-assign]
        listeners, looking = Listeners(2), Looking()
        one = cast(Api, looking)
        first = await listeners.mark("decisions", one)
        assert looking.asked == [("GET", "/v1/decisions", {"limit": 1})]
        assert looking.calls == []
        looking.answer = b"2"
        clock[0] += EVERY_SECONDS - 0.0625
        assert await listeners.mark("decisions", one) == first
        clock[0] += 0.0625
        second = await listeners.mark("decisions", one)
        assert second not in (first, "")
        assert len(looking.asked) == 2
        await listeners.mark("simulations", one)
        assert looking.asked[2] == ("GET", "/v1/simulations", {"limit": 50})
        for away in (Unavailable("away"), ApiError(503, {}, {})):
            looking.answer = away
            clock[0] += EVERY_SECONDS
            assert await listeners.mark("decisions", one) == second
            assert looking.calls == []
        other = Listeners(1)
        assert await other.mark("decisions", one) == ""
        assert await other.mark("decisions", one) == ""

    asyncio.run(all_of_it())


def test_as_many_listen_as_may() -> None:
    listeners = Listeners(2)
    who = listeners.join()
    listeners.join()
    with pytest.raises(TooManyRequests, match=r"2 listen already \(ARBITER_CONSOLE_LISTENERS\)") as caught:
        listeners.join()
    assert (listeners.open, caught.value.headers["Retry-After"]) == (2, "60")
    listeners.leave(who)
    listeners.join()
    assert listeners.open == 2


def test_of_one_caller_no_more_listen_than_are_left_for_others() -> None:
    listeners = Listeners(4)
    with acting("token:a"):
        assert (listeners.join(), listeners.join()) == ("token:a", "token:a")
        with pytest.raises(TooManyRequests, match="you listen 2 times already, and only 2 of 4 places are left"):
            listeners.join()
    with acting("token:b"):
        listeners.join()
    with acting("token:c"):
        listeners.join()
    with acting("token:d"), pytest.raises(TooManyRequests, match="4 listen already"):
        listeners.join()
    listeners.leave("token:a")
    listeners.leave("token:a")
    with acting("token:a"):
        listeners.join()
    assert listeners.open == 3


def test_what_happens_is_told_until_the_stream_is_old(monkeypatch: pytest.MonkeyPatch, instead: Instead) -> None:
    marks = {"decisions": ["a", "a", "b", "b"], "simulations": ["x"] * 9}

    async def mark(self: Listeners, topic: str, api: Any) -> str:
        return marks[topic].pop(0) if len(marks[topic]) > 1 else marks[topic][0]

    instead(Listeners, mark=mark)

    async def all_of_it() -> tuple[list[bytes], int, int]:
        clock = [0.0]
        asyncio.get_running_loop().time = lambda: clock[0]  # type: ignore[method-assign]

        async def sleep(seconds: float) -> None:
            clock[0] += seconds

        Instead(monkeypatch)(overview.asyncio, sleep=sleep)
        of = request(caller=READER)
        listeners: Listeners = of.app.state.services.of(Listeners)
        answer: Any = await overview.events(Visit(of), "decisions,unknown,simulations,decisions")
        assert (answer.media_type, listeners.open) == ("text/event-stream", 1)
        pieces = [piece async for piece in answer.body_iterator]
        return pieces, listeners.open, int(clock[0])

    pieces, still, lasted = asyncio.run(all_of_it())
    assert pieces[:5] == [
        b"retry: 5000\n\n", b": here\n\n", b"event: decisions\ndata: new\n\n", b": here\n\n", b": here\n\n",
    ]  # fmt: skip
    assert (pieces.count(b": here\n\n"), len(pieces)) == (300, 302)
    assert (still, lasted) == (0, 600)


def test_who_only_looks_for_headers_or_can_not_be_told_does_not_listen(instead: Instead) -> None:
    of = request(method="HEAD", caller=READER)
    answer = asyncio.run(overview.events(Visit(of)))
    assert (answer.media_type, of.app.state.services.of(Listeners).open) == ("text/event-stream", 0)

    async def mark(self: Listeners, topic: str, api: Any) -> str:
        raise Forbidden("no")

    instead(Listeners, mark=mark)
    of = request(caller=READER)
    with pytest.raises(Forbidden):
        asyncio.run(overview.events(Visit(of)))
    assert of.app.state.services.of(Listeners).open == 0
