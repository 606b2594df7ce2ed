"""A mapping read key by key: what each way of reading takes, and what it says of anything else."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from app.formats.reader import MOST_ALIKE, Findings, Reader

Read = Callable[[Reader, str], Any]
FALSE, WORD, LIST = "a bool", "a string", "a list"
LONG = "x" * 101


def reading(value: Any, read: Read) -> tuple[Any, list[tuple[str, str, str, str]]]:
    """What is read of ``value``, and every finding."""
    findings = Findings()
    found = read(Reader({"key": value}, ("at", 3), findings), "key")
    return found, [(one.severity, one.rule, one.pointer, one.detail) for one in findings.all()]


OFFSET = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("read", "given", "expected"),
    [
        (Reader.text, "x", "x"), (Reader.text, "", ""), (Reader.text, None, None),
        (Reader.integer, 2**31, 2**31), (Reader.integer, -(2**31), -(2**31)), (Reader.integer, 3.0, 3),
        (Reader.count, 0, 0), (Reader.count, 7, 7), (Reader.count, None, None),
        (Reader.number, 0.5, 0.5), (Reader.number, -3, -3), (Reader.number, 9e299, 9e299),
        (Reader.boolean, True, True), (Reader.boolean, False, False), (Reader.boolean, None, None),
        (lambda r, k: r.quantity(k, "cpu"), "100m", "100m"), (lambda r, k: r.quantity(k, "cpu"), 2, 2),
        (lambda r, k: r.quantity(k, "cpu"), 0.5, 0.5), (lambda r, k: r.quantity(k, "cpu"), None, None),
        (Reader.decimal, "1500m", 1.5), (Reader.decimal, "2", 2.0), (Reader.decimal, 0.25, 0.25),
        (Reader.duration, "1h30m", "1h30m"), (Reader.duration, 60, 60), (Reader.duration, None, None),
        (Reader.time, "2026-11-22T10:00:00Z", datetime(2026, 11, 22, 10, tzinfo=UTC)), (Reader.time, None, None),
        (Reader.time, "2026-11-22T10:00:00+02:00", datetime(2026, 11, 22, 10, tzinfo=OFFSET)),
        (lambda r, k: r.choice(k, {"a": "b"}), "a", "b"), (lambda r, k: r.choice(k, {"a": "b"}), "", None),
        (lambda r, k: r.choice(k, {"a": "b"}), None, None),
        (Reader.strings, ["a", "b"], ["a", "b"]), (Reader.strings, None, []), (Reader.strings, [], []),
        (lambda r, k: r.words(k, ("a", "b")), ["b", "a", "b"], ["b", "a", "b"]),
        (Reader.labels, {"a": "b"}, {"a": "b"}), (Reader.labels, None, {}),
        (Reader.quantities, {"cpu": 1, "memory": "1Gi", "gpu": None}, {"cpu": 1, "memory": "1Gi"}),
        (lambda r, k: r.child(k).value, {"a": 1}, {"a": 1}), (lambda r, k: r.child(k).value, None, {}),
        (lambda r, k: [c.value for c in r.children(k)], [{"a": 1}, {}], [{"a": 1}, {}]),
    ],
)  # fmt: skip
def test_what_is_read_without_a_word(read: Read, given: Any, expected: Any) -> None:
    found, said = reading(given, read)
    assert (found, type(found)) == (expected, type(expected))
    assert said == []


def wrong(expected: str, kind: str) -> tuple[str, str]:
    return "wrong-type", f"{expected} is expected, not {kind}"


@pytest.mark.parametrize(
    ("read", "given", "expected", "said"),
    [
        (Reader.text, 5, None, wrong("a string", "the number 5")), (Reader.text, True, None, wrong("a string", FALSE)),
        (Reader.text, {}, None, wrong("a string", "a mapping")),
        (Reader.integer, 2**31 + 1, None, wrong("a whole number of 32 bits", "the number 2147483649")),
        (Reader.integer, True, None, wrong("a whole number of 32 bits", FALSE)),
        (Reader.integer, 0.5, None, wrong("a whole number of 32 bits", "the number 0.5")),
        (Reader.integer, "1", None, wrong("a whole number of 32 bits", WORD)),
        (Reader.count, -1, None, ("bad-value", "-1 is negative")),
        (Reader.number, True, None, wrong("a finite number", FALSE)),
        (Reader.number, 1e300, None, wrong("a finite number", "the number 1e+300")),
        (Reader.number, float("inf"), None, wrong("a finite number", "the number inf")),
        (Reader.number, float("nan"), None, wrong("a finite number", "the number nan")),
        (Reader.boolean, 1, None, wrong("true or false", "the number 1")),
        (Reader.boolean, "yes", None, wrong("true or false", WORD)),
        (lambda r, k: r.quantity(k, "cpu"), True, None, wrong("a quantity", FALSE)),
        (lambda r, k: r.quantity(k, "cpu"), [], None, wrong("a quantity", LIST)),
        (lambda r, k: r.quantity(k, "cpu"), "1x", None, ("bad-value", None)),
        (Reader.decimal, "x", None, ("bad-value", None)), (Reader.decimal, [], None, wrong("a finite number", LIST)),
        (Reader.duration, False, None, wrong("a duration", FALSE)),
        (Reader.duration, [], None, wrong("a duration", LIST)),
        (Reader.duration, "1 fortnight", None, ("bad-value", None)),
        (Reader.time, "2026-11-22T10:00:00", None, ("bad-value", "an instant in RFC 3339 with offset is expected")),
        (Reader.time, 5, None, ("bad-value", "an instant in RFC 3339 with offset is expected")),
        (lambda r, k: r.choice(k, {"a": "b", "c": "d"}), LONG, None, ("bad-value", f"'{LONG[:100]}' is none of a, c")),
        (lambda r, k: r.choice(k, {"a": "b"}), 3, None, wrong("a string", "the number 3")),
        (Reader.strings, "a", [], wrong("a list", WORD)),
        (lambda r, k: r.words(k, ("a", "b")), ["a", "y" * 200], ["a"], ("bad-value", f"{'y' * 100!r} is none of a, b")),
        (lambda r, k: r.child(k).value, [], {}, ("wrong-type", "a mapping is expected, not a list")),
        (lambda r, k: r.children(k), {}, [], wrong("a list", "a mapping")),
    ],
)  # fmt: skip
def test_what_is_read_otherwise_is_an_error_there(
    read: Read, given: Any, expected: Any, said: tuple[str, str | None]
) -> None:
    found, (one,) = reading(given, read)
    assert found == expected
    assert one[:3] == ("error", said[0], "/at/3/key")
    assert one[3] == said[1] or (said[1] is None and one[3])


def test_what_is_wrong_inside_is_said_of_the_inside() -> None:
    for read, given, expected, at in (
        (Reader.strings, ["a", 1, None], ["a"], ["/at/3/key/1", "/at/3/key/2"]),
        (Reader.labels, {"a": "b", "c": 1}, {"a": "b"}, ["/at/3/key/c"]),
        (Reader.quantities, {"cpu": 1, "gpu": "x"}, {"cpu": 1}, ["/at/3/key/gpu"]),
    ):  # fmt: skip
        found, said = reading(given, read)
        assert (found, [one[2] for one in said]) == (expected, at)


def test_there_is_what_has_a_value() -> None:
    reader = Reader({"a": 0, "b": None}, (), Findings())
    assert ["a" in reader, "b" in reader, "c" in reader] == [True, False, False]


def test_what_nobody_read_is_said_when_it_is_closed_unless_it_is_empty() -> None:
    findings = Findings()
    value = {"read": 1, "left": 2, "none": None, "empty": {}, "list": [], "word": "", "zero": 0, "no": 3, "off": 4}
    reader = Reader(value, ("x",), findings)
    reader.take("read")
    reader.ignore("off")
    reader.not_carried("no", "because", "info")
    reader.not_carried("read", "never said")
    reader.close("error")
    reader.close()
    assert [(one.severity, one.rule, one.pointer, one.detail) for one in findings.all()] == [
        ("info", "not-carried", "/x/no", "because"),
        ("error", "not-carried", "/x/left", "'left' has no counterpart in Arbiter"),
        ("error", "not-carried", "/x/zero", "'zero' has no counterpart in Arbiter"),
    ]


def test_what_is_kept_keeps_its_shape_and_says_that_it_is_kept() -> None:
    findings = Findings()
    deep: Any = {"a": 1}
    for _ in range(200):
        deep = {"a": deep}
    reader = Reader({"below": {"in": {"x": 1}, "read": 2}, "out": 3, "as": 4, "deep": deep, "rest": 5}, (), findings)
    below = reader.keep().child("below")
    below.take("read")
    below.child("in").close()
    reader.keep_as_is("as", "missing")
    reader.undecided("out", "means something")
    reader.undecided("deep", "is too deep")
    reader.keep_rest()
    reader.close()
    assert reader.unread() == {"below": {"in": {"x": 1}}, "out": 3, "as": 4, "rest": 5}
    assert reader.unread("below") == {"out": 3, "as": 4, "rest": 5}
    first, second, third, fourth = findings.all()
    assert (first.rule, first.detail) == ("not-decided", "'x' has no counterpart in Arbiter; kept for an export")
    assert (second.rule, second.severity, second.detail) == (
        "not-decided", "warning", "means something; kept for an export",
    )  # fmt: skip
    assert (third.rule, third.severity, third.detail[:14]) == ("not-carried", "error", "can't be kept:")
    assert fourth.pointer == "/deep"


def test_nothing_is_kept_of_what_does_not_keep() -> None:
    findings = Findings()
    reader = Reader({"out": 3, "as": 4}, (), findings)
    reader.undecided("out", "means something")
    reader.keep_as_is("as")
    assert reader.unread() == {}
    assert [(one.rule, one.detail) for one in findings.all()] == [("not-carried", "means something")]


@pytest.mark.parametrize("given", [[], "x", 3, True])
def test_what_is_no_mapping_reads_as_an_empty_one(given: Any) -> None:
    findings = Findings()
    assert Reader(given, ("x",), findings).value == {}
    (one,) = findings.all()
    assert (one.rule, one.severity, one.pointer) == ("wrong-type", "error", "/x")


@pytest.mark.parametrize(("here", "there"), [(0, 3), (3, 0), (MOST_ALIKE - 1, 3), (3, MOST_ALIKE + 5), (30, 30)])
def test_taken_findings_are_as_if_they_had_been_found_here(here: int, there: int) -> None:
    """Those of another list, which has listed no more than it may, are listed or counted here."""
    one, other, whole = Findings(), Findings(), Findings()
    for findings, first, number in ((one, 0, here), (other, here, there)):
        for i in range(first, first + number):
            for kept in (findings, whole):
                kept.add("bad-value", "error", (i, "x"), f"{i}")
                kept.add("unknown-name", "info", (i,), f"{i}")
    one.take(other)
    assert one.all() == whole.all()
