import json
from typing import Any

import pytest

from app.decoding import MAX_PROBLEMS, Malformed, convert, decode
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.solver.model.request import DecisionRequest

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
        "/engine": "'borg' is none of kueue, yunikorn, kai, ytsaurus",
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
