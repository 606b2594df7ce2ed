"""A visit of a page without a service behind it: what is asked of the API is answered by a table."""

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import msgspec

from app.console.api import Api, ApiError, Call, Query, Reply
from app.console.visit import Visit

Json = dict[str, Any]


class Asked(NamedTuple):
    """One request to the API."""

    method: str
    path: str
    query: Any
    body: Any
    headers: Any


class Shown(NamedTuple):
    """A page that was shown; a write leads elsewhere: then ``template`` is None and ``to`` says where."""

    template: str | None
    status: int
    values: Json
    to: str | None = None


def refused(status: int, **document: Any) -> ApiError:
    return ApiError(status, {"title": "T", "detail": "because", "status": status, **document}, {})


class Answers(Api):
    """Answers by ``METHOD path``; a list is answered one after another. ``scopes``: those of the visitor."""

    def __init__(self, answers: Json, scopes: tuple[str, ...]) -> None:
        self.answers = answers
        self.asked: list[Asked] = []
        self.calls: list[Call] = []
        self._scopes = scopes

    def may(self, scope: str) -> bool:
        return scope in self._scopes

    async def call(
        self, method: str, path: str, query: Query | None = None, body: Any = None, headers: Query | None = None
    ) -> Reply:
        self.asked.append(Asked(method, path, query, body, headers))
        self.calls.append(Call(method, path, None))
        key = f"{method} {path}"
        if key not in self.answers:
            raise refused(404)
        answer = self.answers[key]
        if isinstance(answer, list):
            answer = cast(list[Any], answer).pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Reply):
            return answer
        return Reply(200, answer if isinstance(answer, bytes) else msgspec.json.encode(answer), {"etag": '"e1"'})


class Page:
    """Stands in for a visit. ``fields``: of the form; ``headers``: of the request."""

    def __init__(
        self, answers: Json | None = None, *, fields: Json | None = None, scopes: tuple[str, ...] = ("read", "decide"),
        headers: Json | None = None, **more: Any,
    ) -> None:  # fmt: skip
        self.api = Answers(answers or {}, scopes)
        self.request = SimpleNamespace(headers=headers or {}, method="GET", **more)
        self._fields = fields or {}

    def may(self, scope: str) -> bool:
        return self.api.may(scope)

    async def form(self) -> dict[str, str]:
        return dict(self._fields)

    def show(self, template: str, status: int = 200, /, **values: Any) -> Any:
        return Shown(template, status, values)

    def go(self, address: str) -> Any:
        return Shown(None, 303, {}, address)

    @property
    def visit(self) -> Visit:
        """As pages take it."""
        return cast(Visit, self)

    @property
    def asked(self) -> list[Asked]:
        """What was asked of the API."""
        return self.api.asked

    def queries(self, path: str) -> list[Any]:
        """The queries with which a path was asked for."""
        return [one.query for one in self.asked if one.path == path]


def run(page: Coroutine[Any, Any, Any]) -> Any:
    """What a page answers."""
    return asyncio.run(page)
