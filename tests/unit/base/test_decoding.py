import json
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest

from app.base import decoding
from app.base.decoding import MAX_PROBLEMS, Malformed, convert, decode, decode_at_once
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.solver.model.request import DecisionRequest
from tests.support.bounds import Bounded

SMALL = {"configuration": "main", "state": {}, "asks": []}


def problems(body: bytes | dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        decode(body if isinstance(body, bytes) else json.dumps(body).encode(), DecisionRequest)
    return {problem.pointer: problem.detail for problem in refused.value.problems}


def test_a_right_body_is_decoded() -> None:
    assert decode(json.dumps(SMALL).encode(), DecisionRequest).configuration == "main"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"configuration": "main"', "line 1, column 25"),
        (b"[1,]", "not JSON"),
        (b"\xff\xfe", "not UTF-8: byte 0"),
        (b'{"configuration": "\xed\xa0\x80"}', "not UTF-8: byte 19"),
        (b'{"configuration": "\\ud800", "state": {}}', "surrogate"),
        (b"[" * 100_000, "deeper than 64 levels"),
        (b'{"state":' + b"[" * 70 + b"]" * 70 + b"}", "deeper than 64 levels"),
        (b'{"\\"[[": ' + b"[" * 3000, "at character 72"),
    ],
)
def test_what_is_no_json_document_is_malformed(body: bytes, says: str) -> None:
    with pytest.raises(Malformed) as refused:
        decode(body, DecisionRequest)
    assert says in refused.value.problems[0].detail


def test_64_levels_are_not_too_deep() -> None:
    found = problems(b'{"zz":' + b"[" * 63 + b"]" * 63 + b"}")
    assert found == {"/zz": "unknown field", "/state": "missing field"}


def test_every_problem_is_listed_with_its_pointer() -> None:
    found = problems(
        {
            "engine": "borg",
            "mode": 3,
            "configuration": {
                "queues": [
                    {"name": "", "x~/y": 1, "quota": {"nvidia.com/gpu": {"limit": True}}},
                    {"created_at": "2024-01-01T00:00:00"},
                ]
            },
            "state": {"workloads": [{"id": 1, "tasks": {}}]},
        }
    )
    assert found == {
        "/engine": "'borg' is none of kueue, yunikorn, kai, ytsaurus, kube-scheduler",
        "/mode": "Expected `str`, got `int`",
        "/configuration/queues/0/name": "Expected `str` of length >= 1",
        "/configuration/queues/0/x~0~1y": "unknown field",
        "/configuration/queues/0/quota/nvidia.com~1gpu/limit": "Expected `int | float | str | null`, got `bool`",
        "/configuration/queues/1/created_at": "Expected `datetime` with a timezone component",
        "/configuration/queues/1/name": "missing field",
        "/state/workloads/0/id": "Expected `str`, got `int`",
        "/state/workloads/0/tasks": "Expected `array`, got `object`",
        "/state/workloads/0/queue": "missing field",
    }


@pytest.mark.parametrize(
    ("number", "detail"),
    [("NaN", "NaN is not a JSON number"), ("1e400", "number out of range"), ("-Infinity", "number out of range"),
     ("9" * 5000, "number out of range")],
)  # fmt: skip
def test_a_number_that_json_does_not_have_is_named_where_it_stands(number: str, detail: str) -> None:
    body = b'{"configuration":"c","state":{"nodes":[{"name":"n","capacity":{"cpu":%b}}]}}' % number.encode()
    assert problems(body) == {"/state/nodes/0/capacity/cpu": detail}


def test_a_flood_of_problems_is_cut() -> None:
    assert len(problems({**SMALL, "asks": [{"id": 1}] * 1000})) == MAX_PROBLEMS


def test_converting_a_parsed_document_lists_problems_too() -> None:
    assert convert({"queues": [{"name": "a"}]}, Configuration).queues[0].name == "a"
    with pytest.raises(InvalidInput) as refused:
        convert({"queues": [{}], "flavours": []}, Configuration)
    assert [p.pointer for p in refused.value.problems] == ["/queues/0/name", "/flavours"]


def test_a_document_too_large_to_walk_again_names_its_first_problem() -> None:
    body = (
        b'{"configuration":"c","state":{"workloads":[{"id":"w","queue":"q","tasks":[' + b"[]," * 2_000_001 + b"[]]}]}}"
    )
    with pytest.raises(InvalidInput) as refused:
        decode(body, DecisionRequest)
    (problem,) = refused.value.problems
    assert (problem.pointer, problem.detail) == ("/state/workloads/0/tasks/0", "Expected `object`, got `array`")


def test_half_a_surrogate_pair_in_a_name_is_malformed() -> None:
    with pytest.raises(Malformed, match="surrogate"):
        decode(b'{"\\ud800": 1}', DecisionRequest)


@pytest.mark.parametrize("written", ["0001-01-01T00:00:00+05:00", "0001-01-01T00:00:00\\u002b05:00",
                                     "\\u0030001-01-01T00:00:00+05:00", "9999-12-31T23:00:00-05:00",
                                     "9999\\u002d12-31T23:00:00-05:00"])  # fmt: skip
@pytest.mark.parametrize("padding", [0, 1 << 17])
def test_an_offset_may_not_lead_out_of_the_calendar(written: str, padding: int) -> None:
    padded = " " * padding
    body = f'{{"configuration": "main", "state": {{}}, {padded} "now": "{written}", {padded} "asks": []}}'
    assert problems(body.encode()) == {"/now": "its offset takes it out of the years 1 to 9999 in UTC"}


class Part(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    size: Annotated[int, msgspec.Meta(ge=1)]
    colour: Literal["red", "blue"] | None = None
    number: float = 0.0


class Whole(msgspec.Struct, rename={"kind": "of"}, kw_only=True):
    """Fields that it doesn't know it leaves alone."""

    kind: str
    parts: Annotated[list[Part], msgspec.Meta(min_length=1, max_length=2)] = []
    named: dict[str, Part] = {}
    either: str | list[Part] | dict[str, int] = ""
    at: datetime | None = None


def wrong(document: Any, shape: Any = Whole) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as refused:
        decode(document if isinstance(document, bytes) else json.dumps(document).encode(), shape)
    return [(problem.pointer, problem.detail) for problem in refused.value.problems]


PART = {"size": 1}
NO_SIZE = "missing field"


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({"unknown": 1}, [("/of", "missing field")]),
        ({"kind": "x"}, [("/of", "missing field")]),
        ({"of": "x", "parts": []}, [("/parts", "0 items, at least 1 are needed")]),
        ({"of": "x", "parts": [PART] * 3}, [("/parts", "3 items, at most 2 are allowed")]),
        ({"of": "x", "parts": [PART, {}, {"x": 1}]},
         [("/parts", "3 items, at most 2 are allowed"), ("/parts/1/size", NO_SIZE), ("/parts/2/x", "unknown field"),
          ("/parts/2/size", NO_SIZE)]),
        ({"of": "x", "parts": {}}, [("/parts", "Expected `array`, got `object`")]),
        ({"of": "x", "parts": [PART | {"size": 0}]}, [("/parts/0/size", "Expected `int` >= 1")]),
        ({"of": "x", "parts": [PART | {"colour": "c" * 65}]},
         [("/parts/0/colour", f"{'c' * 64!r} is none of red, blue")]),
        ({"of": "x", "parts": [PART | {"colour": 3}]}, [("/parts/0/colour", "Expected `str | null`, got `int`")]),
        ({"of": "x", "named": {"a/b": {}}}, [("/named/a~1b/size", NO_SIZE)]),
        ({"of": "x", "named": []}, [("/named", "Expected `object`, got `array`")]),
        ({"of": "x", "either": [PART, {}]}, [("/either/1/size", NO_SIZE)]),
        ({"of": "x", "either": {"a": 1, "b": "2"}}, [("/either/b", "Expected `int`, got `str`")]),
        ({"of": "x", "either": 3}, [("/either", "Expected `str | object | array`, got `int`")]),
        ([], [("", "Expected `object`, got `array`")]),
        ({"of": "x", "at": "0001-01-01T00:00:00+00:01"},
         [("/at", "its offset takes it out of the years 1 to 9999 in UTC")]),
    ],
)  # fmt: skip
def test_each_way_of_being_wrong_is_said_where_it_stands(document: Any, found: list[tuple[str, str]]) -> None:
    assert wrong(document) == found


def test_what_it_does_not_know_may_be_left_alone() -> None:
    assert decode(b'{"of": "x", "more": 1, "parts": [{"size": 1}, {"size": 2}]}', Whole).parts[1].size == 2


def test_numbers_of_hundreds_of_digits_are_numbers() -> None:
    for digits, found in ((400, []), (401, [("/size", "number out of range")])):
        body = b'{"number": "x", "size": %b}' % (b"9" * digits)
        assert wrong(body, Part) == [("/number", "Expected `float`, got `str`"), *found]


def test_a_flood_of_items_names_its_first_problem(bounded: Bounded) -> None:
    """Counted are commas and what opens a list or a mapping."""
    body = b'{"of": 1, "parts": [{"size": 0}], "named": {"a.b": {"size": 0}}}'
    bounded(decoding, MOST_ITEMS=7)
    assert len(wrong(body)) == 3
    bounded(decoding, MOST_ITEMS=6)
    assert wrong(body) == [("/of", "Expected `str`, got `int`")]
    assert wrong(b'{"of": "x", "parts": [{"size": 1}, {"size": 0}], "n": {}}') == [
        ("/parts/1/size", "Expected `int` >= 1")
    ]
    assert wrong(b'{"of": "x", "named": {"a": {"size": 0}}, "x": [1, 2, 3]}') == [("/named", "Expected `int` >= 1")]
    assert wrong(b"[{}, {}, {}, {}]") == [("", "Expected `object`, got `array`")]
    with pytest.raises(Malformed):
        decode(b'{"of": "x", "more": [{}, {}, {}, {}', Whole)


def test_64_levels_may_be_there_and_the_first_past_them_is_named() -> None:
    def nested(levels: int) -> bytes:
        return b'{"more":' * levels + b"1" + b"}" * levels

    assert wrong(nested(64)) == [("/of", "missing field")]
    assert wrong(nested(65)) == [("/more" * 64, "nested deeper than 64 levels")]
    text = b'{"of": "]]]", "x": ' + b"[" * 5000
    with pytest.raises(Malformed) as refused:
        decode(text, Whole)
    assert refused.value.problems[0].detail == f"nested deeper than 64 levels at character {text.index(b'[[') + 63}"
    with pytest.raises(Malformed) as refused:
        decode(b'{"a": [[], {}]' + b', "b": [[], {}]' * 50 + b', "x": ' + b"[" * 5000, Whole)
    assert "nested deeper than 64 levels at character" in refused.value.problems[0].detail


@pytest.mark.parametrize(
    ("body", "looked_at"),
    [
        (b'{"of": "x", "at": "2026-01-01T00:00:00+01:00"}', False),
        (b'{"of": "x", "at": "0001-01-01T12:00:00Z"}', False),
        (b'{"of": "+", "at": "0001-01-01T12:00:00Z"}', True),
        (b'{"of": "x", "at": "9999-12-31T12:00:00Z"}', True),
        (b'{"of": "\\n"}', False), (b'{"of": "\\u0041"}', False), (b'{"of": "\\u0030"}', True),
        (b'{"of": "\\u002B"}', True), (b'{"of": "u0030"}', False), (b'{"of": 1}', None), (b'{"of": ', None),
    ],
)  # fmt: skip
def test_those_who_can_do_without_look_no_closer(body: bytes, looked_at: bool | None) -> None:
    """Only at what could have an offset that leads out of the calendar; digits and signs may be written as escapes."""
    at_once = decode_at_once(body, Whole)
    if looked_at is None:
        assert at_once is None
    else:
        assert at_once == (None if looked_at else decode(body, Whole))
        assert decode(body, Whole).kind in ("x", "+", "\n", "A", "0", "u0030")


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert wrong(b'{"of": 1, "more": "\\ud83d\\ude00"}') == [("/of", "Expected `str`, got `int`")]
    with pytest.raises(Malformed, match="half of a surrogate pair"):
        decode(b'{"of": 1, "more": "\\ud83d\\ude00 \\ud83d"}', Whole)
    assert wrong(b"3") == [("", "Expected `object`, got `int`")]


def test_what_no_walk_finds_is_said_all_the_same() -> None:
    with pytest.raises(InvalidInput) as refused:
        convert({"of": "x", "at": object()}, Whole)
    assert len(refused.value.problems) == 1


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        (b'{"configuration": "a", "state": {}, "asks": [], "configuration": "b"}', ["/configuration"]),
        (b'{"configuration": "a", "state": {"nodes": [{"name": "n", "capacity": {"cpu": 1, "cp\\u0075": 2}}]}}',
         ["/state/nodes/0/capacity/cpu"]),
        (b'{"asks": [], "asks": [], "configuration": "a", "state": {}, "state": {"nodes": []}}', ["/asks", "/state"]),
        (b'{"configuration": "a\\u003ab", "asks": [], "state": {}, "state" : {}}', ["/state"]),
        (b'{"configuration": "a:b", "asks": [], "state": {}, "configuration": "::\\u003A"}', ["/configuration"]),
    ],
)  # fmt: skip
def test_a_key_that_is_there_twice_is_named(body: bytes, pointers: list[str]) -> None:
    found = problems(body)
    assert list(found) == pointers
    assert all("occurs twice in one object" in detail for detail in found.values())
    assert decode_at_once(body, DecisionRequest) is None


def test_one_key_in_two_objects_and_one_in_a_text_are_not_twice() -> None:
    nodes = b'[{"name": "a", "capacity": {}}, {"name": "b", "capacity": {}}]'
    body = b'{"configuration": "state\\": 1, \\"state\\": 2", "state": {"nodes": ' + nodes + b"}}"
    assert decode(body, DecisionRequest).state.nodes[1].name == "b"
    assert decode_at_once(body, DecisionRequest) is not None


def test_the_field_that_was_meant_is_named() -> None:
    found = problems({**SMALL, "configuration": {"queues": [{"name": "a", "quotas": {}, "zzz": 1}]}, "aks": []})
    assert found == {
        "/configuration/queues/0/quotas": "unknown field; did you mean 'quota'?",
        "/configuration/queues/0/zzz": "unknown field",
        "/aks": "unknown field; did you mean 'asks'?",
    }
