# pyright: reportPrivateUsage=false
"""Documents of a provider: what is sent for them, how long it may take, how long they may be."""

import io
from email.message import Message
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs

import pytest

from app.auth import oidc as keys
from tests.support.instead import Clock, Instead

MOST = 1 << 20


class Site(io.BytesIO):
    """A web site with one document, a piece of which takes ``pace`` seconds; ``asked``: requests and their limits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, document: bytes = b"{}", pace: float = 0.0) -> None:
        super().__init__(document)
        self.asked: list[Any] = []
        self.pieces: list[int | None] = []
        self._pace, self._clock = pace, Clock(monkeypatch)
        self._clock.drives(keys)
        Instead(monkeypatch)(keys.urllib.request, urlopen=self._open)

    def _open(self, request: Any, *, timeout: float) -> Any:
        self.asked.append((request.full_url, request.data, request.get_header("Accept"), timeout))
        return self

    def read1(self, size: int | None = -1, /) -> bytes:
        self.pieces.append(size)
        found = super().read1(-1 if size is None else size)
        self._clock.sleep(self._pace)
        return found


def test_a_document_is_asked_for_and_a_form_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, b'{"a": [1, "\xc3\xa4"]}')
    assert keys.fetch("https://login.example/x?y") == {"a": [1, "ä"]}
    assert site.closed
    assert site.asked == [("https://login.example/x?y", None, "application/json", 5)]
    site = Site(monkeypatch)
    keys.fetch("http://login.example", {"code": "a&b", "other": "ä ="})
    ((url, sent, accept, timeout),) = site.asked
    assert (url, accept, timeout) == ("http://login.example", "application/json", 5)
    assert parse_qs(sent.decode(), strict_parsing=True) == {"code": ["a&b"], "other": ["ä ="]}


def test_only_addresses_of_the_web_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch)
    for url in ("file:///etc/passwd", "ftp://x", "httpx", ""):
        with pytest.raises(ValueError, match=f"^{url}: not an http address$"):
            keys.fetch(url)
    assert site.asked == []


def test_a_document_has_a_megabyte_and_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, b'"%s"' % (b"x" * (MOST - 2)))
    assert len(keys.fetch("https://x")) == MOST - 2
    assert set(site.pieces) == {16_384}
    site = Site(monkeypatch, b'"%s"' % (b"x" * (MOST - 1)))
    with pytest.raises(ValueError, match=r"^https://x is too long$"):
        keys.fetch("https://x")
    assert site.closed


@pytest.mark.parametrize(("pace", "late"), [(5.0, False), (5.01, True)])
def test_it_has_ten_seconds_however_it_trickles(monkeypatch: pytest.MonkeyPatch, pace: float, late: bool) -> None:
    site = Site(monkeypatch, b"[" + b" " * 20_000 + b"]", pace)
    if not late:
        assert keys.fetch("https://x") == []
        return
    with pytest.raises(TimeoutError, match=r"^https://x takes too long$"):
        keys.fetch("https://x")
    assert site.closed


def test_a_refusal_is_closed(instead: Instead) -> None:
    body = io.BytesIO(b"no")
    refused = HTTPError("https://x", 404, "no", Message(), body)

    def fails(request: Any, *, timeout: float) -> Any:
        raise refused

    instead(keys.urllib.request, urlopen=fails)
    with pytest.raises(HTTPError):
        keys.fetch("https://x")
    assert body.closed
