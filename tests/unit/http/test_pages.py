import pytest

from app.errors import BadRequest
from app.http.pages import decode_cursor, encode_cursor


@pytest.mark.parametrize("keys", [("a",), ("ü/?&=\N{SNOWMAN}",), (7,), ("a", 7, "b")])
def test_a_cursor_comes_back_and_fits_in_a_url(keys: tuple[str | int, ...]) -> None:
    cursor = encode_cursor(*keys)
    assert cursor.replace("-", "").replace("_", "").isalnum()
    assert decode_cursor(cursor, *(type(key) for key in keys)) == list(keys)


@pytest.mark.parametrize("cursor", ["", "!", "a", "bm9uc2Vuc2U", encode_cursor("a", "b"), encode_cursor(1), "\udc80"])
def test_what_is_not_a_cursor_of_this_list_is_refused(cursor: str) -> None:
    with pytest.raises(BadRequest):
        decode_cursor(cursor, str)
