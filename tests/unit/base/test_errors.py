"""What every refusal says of itself, as docs and clients rely on it."""

import inspect
from http import HTTPStatus
from typing import Any

import pytest

from app.base import errors
from app.base.errors import ArbiterError, BadInput, DeadlinePassed, TooManyRequests, Unauthorized, Unavailable, counted
from app.solver.model.problems import Problem

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, ArbiterError)]
OTHER_TITLES = {
    500: "Internal error", 408: "Request timeout", 412: "Precondition failed", 413: "Content too large",
    422: "Invalid input", 501: "Not installed", 503: "Service unavailable", 504: "Deadline passed",
}  # fmt: skip
WRONG = [Problem(pointer="/a", detail="no"), Problem(pointer="", detail="never")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_stands_in_the_tree_with_its_status(kind: type[ArbiterError]) -> None:
    if kind is not ArbiterError:
        assert f"{kind.__name__} {kind.status} " in (errors.__doc__ or "")
    assert kind.title == OTHER_TITLES.get(kind.status, HTTPStatus(kind.status).phrase.capitalize())
    assert len({one.status for one in KINDS}) == len(KINDS)


def test_an_error_keeps_what_it_is_told() -> None:
    headers, extra = {"A": "b"}, {"code": "c"}
    made = errors.Conflict("moved", problems=iter(WRONG), headers=headers, extra=extra)
    headers.clear()
    extra.clear()
    assert (made.detail, str(made), made.problems, made.headers, made.extra) == (
        "moved", "moved", WRONG, {"A": "b"}, {"code": "c"},
    )  # fmt: skip
    bare = errors.Conflict("moved")
    assert (bare.problems, bare.headers, bare.extra) == ([], {}, {})


@pytest.mark.parametrize(
    ("make", "detail", "headers"),
    [
        (lambda: Unauthorized("who?"), "who?", {"WWW-Authenticate": 'Bearer realm="arbiter"'}),
        (lambda: Unauthorized("no", invalid=True), "no",
         {"WWW-Authenticate": 'Bearer realm="arbiter", error="invalid_token"'}),
        (lambda: Unavailable("away"), "away", {"Retry-After": "5"}),
        (lambda: Unavailable("away", retry_after=9), "away", {"Retry-After": "9"}),
        (lambda: TooManyRequests("full"), "full", {"Retry-After": "1"}),
        (lambda: TooManyRequests("full", retry_after=9), "full", {"Retry-After": "9"}),
        (lambda: DeadlinePassed(0.25), "no answer within 0.25 s; nothing was changed", {}),
        (lambda: BadInput(iter(WRONG)), "2 fields are wrong", {}), (lambda: BadInput(WRONG[:1]), "/a: no", {}),
        (lambda: BadInput(WRONG, detail="so"), "so", {}),
    ],
)  # fmt: skip
def test_what_the_special_ones_say(make: Any, detail: str, headers: dict[str, str]) -> None:
    error = make()
    assert (error.detail, error.headers) == (detail, headers)


def test_problems_in_a_sentence() -> None:
    assert [counted(WRONG), counted(WRONG[:1]), counted(WRONG[1:]), counted([])] == [
        "2 fields are wrong", "/a: no", "the document: never", "0 fields are wrong",
    ]  # fmt: skip
