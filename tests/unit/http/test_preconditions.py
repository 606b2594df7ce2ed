import pytest
from fastapi import Request

from app.base.errors import BadRequest, PreconditionFailed, PreconditionRequired
from app.http.openapi import Preconditions, etag_of, read_preconditions


def read(*headers: tuple[str, str]) -> Preconditions:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return read_preconditions(Request({"type": "http", "headers": raw}))


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        ('"a"', ("a",)),
        ('"a","b"', ("a", "b")),
        (' "a" ,  W/"b"', ("a", "b")),
        ("*", ("*",)),
        ('""', ("",)),
        ('"a,b"', ("a,b",)),
    ],
)
def test_lists_of_tags_are_read(value: str, tags: tuple[str, ...]) -> None:
    quoted = tuple(tag if tag == "*" else f'"{tag}"' for tag in tags)
    assert read(("if-match", value)).if_match == quoted


def test_a_header_may_come_in_several_lines() -> None:
    assert read(("if-match", '"a"'), ("if-match", '"b"')).if_match == ('"a"', '"b"')


def test_no_header_is_no_condition() -> None:
    assert read() == Preconditions(None, None)


@pytest.mark.parametrize("value", ["a", '"a', '"a" "b"', 'w/"a"', ",", '"a\x01"'])
def test_what_is_no_list_of_tags_is_refused(value: str) -> None:
    with pytest.raises(BadRequest):
        read(("if-none-match", value))


def test_a_write_names_what_it_replaces() -> None:
    read(("if-match", '"1"')).check_write('"1"')
    read().check_write(None)
    with pytest.raises(PreconditionRequired):
        read().check_write('"1"')
    with pytest.raises(PreconditionFailed):
        read(("if-match", '"1"')).check_write('"2"')
    with pytest.raises(PreconditionFailed):
        read(("if-match", "*")).check_write(None)
    with pytest.raises(PreconditionFailed):
        read(("if-none-match", "*")).check_write('"1"')


def test_a_representation_has_one_tag() -> None:
    assert etag_of(b"a") == etag_of(b"a") != etag_of(b"b")
    assert read(("if-none-match", etag_of(b"a"))).not_modified(etag_of(b"a"))


@pytest.mark.parametrize(
    ("header", "current", "detail"),
    [
        (("if-match", '"1"'), '"2"', 'If-Match names another version: it is at "2"'),
        (("if-match", '"1"'), None, "If-Match names another version: there is none"),
        (("if-none-match", '"1", "2"'), '"2"', "If-None-Match: it exists already"),
        (("if-none-match", "*"), '"2"', "If-None-Match: it exists already"),
    ],
)
def test_a_refusal_says_at_which_version_it_is(header: tuple[str, str], current: str | None, detail: str) -> None:
    for check in (read(header).check_stated, read(header).check_write):
        with pytest.raises(PreconditionFailed) as refused:
            check(current)
        assert refused.value.detail == detail
        assert refused.value.headers == ({} if current is None else {"ETag": current})


def test_a_write_that_names_nothing_is_told_the_version() -> None:
    with pytest.raises(PreconditionRequired) as refused:
        read(("if-none-match", '"1"')).check_write('"2"')
    assert (refused.value.detail, refused.value.headers) == (
        "it exists: say with If-Match which version you mean", {"ETag": '"2"'},
    )  # fmt: skip
    read().check_stated('"2"')
    read(("if-none-match", '"1"')).check_stated(None)


def test_a_read_may_be_answered_with_what_is_known() -> None:
    known = read(("if-none-match", '"1", "2"'))
    assert [known.not_modified(tag) for tag in ('"1"', '"2"', '"3"')] == [True, True, False]
    assert read(("if-none-match", "*")).not_modified('"3"')
    assert not read().not_modified('"1"')
    assert not read(("if-match", '"1"')).not_modified('"1"')
    assert len(etag_of(b"a")) == 34
