import base64
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from pydantic import TypeAdapter, ValidationError

from app.base.errors import BadRequest
from app.http.openapi import Limit, Moment, decode_cursor, decode_id, encode_cursor


@pytest.mark.parametrize("keys", [("a",), ("ü/?&=\N{SNOWMAN}",), (7,), ("a", 7, "b")])
def test_a_cursor_comes_back_and_fits_in_a_url(keys: tuple[str | int, ...]) -> None:
    cursor = encode_cursor(*keys)
    assert cursor.replace("-", "").replace("_", "").isalnum()
    assert decode_cursor(cursor, *(type(key) for key in keys)) == list(keys)


@pytest.mark.parametrize("cursor", ["", "!", "a", "bm9uc2Vuc2U", encode_cursor("a", "b"), encode_cursor(1), "\udc80",
                                    encode_cursor("a") + "!!!!"])  # fmt: skip
def test_what_is_not_a_cursor_of_this_list_is_refused(cursor: str) -> None:
    with pytest.raises(BadRequest):
        decode_cursor(cursor, str)


@pytest.mark.parametrize(
    ("key", "taken"),
    [(0, True), (1, True), (2**63 - 1, True), (-1, False), (2**63, False), ("", True), ("a\x00b", False)],
)
def test_a_key_is_one_that_the_database_can_compare_with(key: str | int, taken: bool) -> None:
    cursor = encode_cursor("a", key)
    if taken:
        assert decode_cursor(cursor, str, type(key)) == ["a", key]
        return
    with pytest.raises(BadRequest, match="the cursor is not one of this list"):
        decode_cursor(cursor, str, type(key))


@pytest.mark.parametrize("document", [b"[true]", b"[1.5]", b"[null]", b"{}", b"[[1]]", b"1", b"[1] "])
def test_a_cursor_holds_a_list_of_keys(document: bytes) -> None:
    cursor = base64.urlsafe_b64encode(document).decode().rstrip("=")
    if document == b"[1] ":
        assert decode_cursor(cursor, int) == [1]
        return
    with pytest.raises(BadRequest):
        decode_cursor(cursor, int)


def test_a_cursor_of_every_length_is_padded() -> None:
    for length in range(1, 9):
        assert decode_cursor(encode_cursor("x" * length), str) == ["x" * length]


def test_a_cursor_may_hold_an_id() -> None:
    one = UUID("01920000-0000-7000-8000-000000000000")
    assert decode_id(encode_cursor(str(one))) == one
    for cursor in (encode_cursor("no id"), encode_cursor(7), encode_cursor(str(one), "more")):
        with pytest.raises(BadRequest, match="the cursor is not one of this list"):
            decode_id(cursor)


def test_how_many_there_may_be_on_a_page() -> None:
    limit: TypeAdapter[Any] = TypeAdapter(Limit)
    assert [limit.validate_python(number) for number in ("1", "500")] == [1, 500]
    for number in ("0", "501"):
        with pytest.raises(ValidationError):
            limit.validate_python(number)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-02T09:30:00Z", datetime(2026, 3, 2, 9, 30, tzinfo=UTC)),
        ("2026-03-02t09:30:00.25z", datetime(2026, 3, 2, 9, 30, 0, 250_000, tzinfo=UTC)),
        ("2026-03-02T09:30:00+01:30", datetime(2026, 3, 2, 9, 30, tzinfo=timezone(timedelta(minutes=90)))),
        ("1772443800", None), ("2026-03-02", None), ("2026-03-02T09:30:00", None), ("2026-03-02 09:30:00Z", None),
        ("2026-03-02T09:30Z", None), ("2026-03-02T09:30:00Z ", None), ("2026-13-02T09:30:00Z", None),
        *((text, datetime(2, 1, 1, tzinfo=UTC)) for text in ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00")),
        *((text, datetime(9998, 12, 31, tzinfo=UTC)) for text in ("9999-12-31T23:59:59-14:00", "9999-01-01T00:00:00Z")),
    ],
)  # fmt: skip
def test_a_moment_is_one_of_rfc_3339(text: str, moment: datetime | None) -> None:
    moments: TypeAdapter[Any] = TypeAdapter(Moment)
    if moment is not None:
        assert moments.validate_python(text) == moment
        return
    with pytest.raises(ValidationError):
        moments.validate_python(text)
