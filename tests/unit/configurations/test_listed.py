"""Pages of configurations and of revisions: what their endpoints ask for, and when there is a next one."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from pydantic import TypeAdapter, ValidationError

from app.configurations.repository import Summary
from app.configurations.router import Against, Number, QueueName, list_configurations, list_revisions
from app.http.openapi import Preconditions, encode_cursor, etag_of

ANY = Preconditions(None, None)


class Stored:
    """Configurations ``c1`` to ``c3``, revisions 3 to 1; what was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def page(self, after: str | None, limit: int) -> list[Summary]:
        self.asked.append((after, limit))
        return [summary(f"c{i}", 1) for i in (1, 2, 3) if after is None or f"c{i}" > after][:limit]

    def history(self, name: str, before: int | None, limit: int) -> list[Summary]:
        self.asked.append((before, limit))
        return [summary(name, i) for i in (3, 2, 1) if before is None or i < before][:limit]


def summary(name: str, revision: int) -> Summary:
    return Summary(name, revision, "d", datetime(2026, 11, 22, tzinfo=UTC), "mo", None, None)


def listed(stored: Any, of: str | None, *given: Any, conditions: Preconditions = ANY) -> Any:
    if of is None:
        return list_configurations(stored, conditions, *given)
    return list_revisions(of, stored, conditions, *given)


@pytest.mark.parametrize(
    ("of", "field", "cursors", "far"),
    [(None, "name", ["c1", "c2"], ["c2", "c3"]), ("prod", "revision", [3, 2], [2, 1])],
)
def test_a_page_has_a_next_one_where_there_is_more(of: str | None, field: str, cursors: Any, far: Any) -> None:
    stored = Stored()

    def page(*given: Any) -> tuple[list[Any], str | None]:
        found = msgspec.json.decode(listed(stored, of, *given).body)
        return [item[field] for item in found["items"]], found["next_cursor"]

    assert page(2) == (cursors, encode_cursor(cursors[1]))
    assert page(2, encode_cursor(cursors[0])) == (far, None), "a full page may be the last"
    assert page()[1] is None
    assert stored.asked == [(None, 3), (cursors[0], 3), (None, 101)]


def test_a_cursor_past_what_a_revision_can_be_is_one_past_all() -> None:
    stored = Stored()
    listed(stored, "prod", 1, encode_cursor(2**31))
    listed(stored, "prod", 1, encode_cursor(2**31 - 2))
    assert [before for before, _ in stored.asked] == [2**31 - 1, 2**31 - 2], "the most that the column holds"


@pytest.mark.parametrize("of", [None, "prod"])
def test_a_page_that_the_caller_has_is_not_sent_again(of: str | None) -> None:
    first = listed(Stored(), of, 2)
    assert first.headers["ETag"] == etag_of(first.body)
    again = listed(Stored(), of, 2, conditions=Preconditions(None, (first.headers["ETag"],)))
    assert (again.status_code, again.body, again.headers["ETag"]) == (304, b"", first.headers["ETag"])


@pytest.mark.parametrize(
    ("parameter", "allowed", "refused"),
    [
        (Number, [1, 10**9], [0, 10**9 + 1]), (Against, [None, 0, 10**9], [-1, 10**9 + 1]),
        (QueueName, ["q", "q" * 512], ["", "q" * 513]),
    ],
)  # fmt: skip
def test_what_a_path_and_a_query_may_say(parameter: Any, allowed: list[Any], refused: list[Any]) -> None:
    """Any number of these fits into its column of 32 bits, and a name is as long as one in a document may be."""
    adapter = TypeAdapter[Any](parameter)
    assert [adapter.validate_python(value) for value in allowed] == allowed
    for value in refused:
        with pytest.raises(ValidationError):
            adapter.validate_python(value)
