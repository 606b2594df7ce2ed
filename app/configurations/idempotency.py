"""One transaction that does a write and keeps its answer: both, or neither."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Annotated

from fastapi import Depends, Header, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.auth.callers import current_actor
from app.base.errors import BadInput, Conflict
from app.configurations import repository
from app.db.database import Database

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
_KEPT_HEADERS = ("content-type", "etag", "location")


@dataclass(frozen=True, slots=True)
class Once:
    """What a request says of itself: its key, if any, and all that makes it another request than others."""

    key: str | None
    said: tuple[str, ...]

    def digest(self, body: bytes) -> bytes:
        """SHA-256 over the parts, none of which can run into the next."""
        hashed = sha256()
        for part in (*(text.encode(errors="surrogatepass") for text in self.said), body):
            hashed.update(len(part).to_bytes(8))
            hashed.update(part)
        return hashed.digest()


def read_once(
    request: Request,
    key: Annotated[
        str | None,
        Header(
            alias=HEADER,
            pattern=r"^[\x21-\x7e]{1,255}$",
            description="The same key again gives the first answer again, for a day; nothing happens twice",
        ),
    ] = None,
) -> Once:
    """Conditions are no part of the request: a repeated one may have read the document again."""
    return Once(key, (request.method, request.url.path, request.url.query, request.headers.get("x-comment", "")))


Keyed = Annotated[Once, Depends(read_once)]


class Writes:
    """Units of work that end in an answer. Answers are kept for ``seconds``."""

    def __init__(self, database: Database, seconds: float) -> None:
        self._database = database
        self._age = timedelta(seconds=seconds)

    def run(self, once: Once, act: Callable[[Session], Response], body: bytes = b"") -> Response:
        """``act`` in one transaction, unless its key has an answer already. What it raises is not kept.

        Raises BadInput where the key stands for another request, Unavailable, and what ``act`` raises.
        """
        with self._database.session() as session:
            if once.key is None:
                return act(session)
            who, digest = current_actor(), once.digest(body)
            repository.expire(session, who, once.key, self._age)
            if not repository.claim_key(session, who, once.key, digest):
                return _again(repository.kept(session, who, once.key), digest)
            answer = act(session)
            headers = {name: answer.headers[name] for name in _KEPT_HEADERS if name in answer.headers}
            repository.keep(session, who, once.key, answer.status_code, headers, bytes(answer.body))
            return answer


def _again(kept: repository.Kept | None, digest: bytes) -> Response:
    if kept is None:
        raise Conflict(f"the request of this {HEADER} has just expired; send it again")
    if kept.request != digest:
        raise BadInput([], detail=f"this {HEADER} was used for another request")
    return Response(kept.body, kept.status, {**kept.headers, REPLAYED: "true"})
