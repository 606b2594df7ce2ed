"""What a web page of somebody else's may not do with a service that its visitor can reach.

A page can have a browser send requests anywhere. Where nobody has to say who they are, being asked from a browser on
the right machine is all it takes: so an open service answers to its own names alone (a name that somebody else made
point here is none of them: DNS rebinding), and takes no writes that a browser says come from another site. Sessions are
cookies, which browsers send by themselves: the same holds for whatever is asked with one.
"""

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.base.errors import ArbiterError, Forbidden, Misdirected
from app.http.problems import answer_to

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_PROBES = frozenset({"/healthz", "/readyz"})
"""Asked by address, of whatever is there: they say nothing that is worth a name."""
_FOREIGN = frozenset({"cross-site", "same-site"})
_LOOPBACK = "localhost"
ANY = "*"


class SitesMiddleware:
    """``hosts``: by which an open service may be called, beside loopback; None where everybody says who they are."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str] | None) -> None:
        self.app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._refusal(scope)) is not None:
            await (await answer_to(Request(scope), refusal))(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _refusal(self, scope: Scope) -> ArbiterError | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._hosts is not None and scope["path"] not in _PROBES and not self._is_ours(host):
            return Misdirected(
                f"an open service answers to {_LOOPBACK} and the hosts of ARBITER_ALLOWED_HOSTS, not to {host[:100]!r}"
            )
        if scope["method"] in _READS or (self._hosts is None and "cookie" not in headers):
            return None
        if headers.get("sec-fetch-site", "").lower() in _FOREIGN or not _is_own(headers.get("origin"), host):
            return Forbidden("a page of another site may not write here")
        return None

    def _is_ours(self, host: str) -> bool:
        assert self._hosts is not None
        name = name_of(host)
        if name in self._hosts or ANY in self._hosts or name == _LOOPBACK or name.endswith(f".{_LOOPBACK}"):
            return True
        try:
            return ip_address(name).is_loopback
        except ValueError:
            return False


def name_of(host: str) -> str:
    """``host`` as a header has it, without its port and brackets, in lower case."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _is_own(origin: str | None, host: str) -> bool:
    """Whether a page of ours asks, or nobody's: programs name no origin."""
    return origin is None or urlsplit(origin.strip().lower()).netloc == host.strip().lower()
