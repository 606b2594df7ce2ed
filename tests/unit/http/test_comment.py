"""Why a write was made: who says it, in which encoding, and what is no comment."""

import pytest

from app.base.errors import BadRequest
from app.http.openapi import MOST, read_comment

UTF_8 = "für später".encode().decode("latin-1")
"""As it arrives in a header."""


@pytest.mark.parametrize(
    ("comment", "header", "expected"),
    [
        (None, None, None), (None, "", None), ("  ", "said", None), (None, " said\t", "said"), ("this", "that", "this"),
        (None, UTF_8, "für später"), (None, "sp\xe4ter", "später"), ("a\nb", None, "a\nb"),
        ("a\tb \r\nc", None, "a\tb \r\nc"), ("", "said", None),
        ("x" * MOST, None, "x" * MOST), (None, "x" * MOST + " ", "x" * MOST),
    ],
)  # fmt: skip
def test_what_is_said(comment: str | None, header: str | None, expected: str | None) -> None:
    assert read_comment(comment, header) == expected


@pytest.mark.parametrize("comment", ["x" * (MOST + 1), "a\x00b", "a\x1fb"])
def test_what_may_not_be_said(comment: str) -> None:
    with pytest.raises(BadRequest):
        read_comment(comment)
    with pytest.raises(BadRequest):
        read_comment(None, comment)
