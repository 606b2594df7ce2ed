"""Requests whose workloads repeat tasks are read as all others are: the same request, the same refusals."""

import json
from typing import Any

import msgspec
import pytest

from app.answering import answers
from app.answering.answers import decode_request, tasks_repeat
from app.base.decoding import decode
from app.solver.delta import StateDigest
from app.solver.model.problems import InvalidInput
from app.solver.model.request import DecisionRequest
from tests.support.instead import Instead

WORKLOADS = 3000
SHAPES = 7


def _request() -> dict[str, Any]:
    workloads: list[dict[str, Any]] = [
        {
            "id": f"w{i}",
            "queue": "q",
            "created_at": "2026-01-01T00:00:00+01:00",
            "tasks": [
                {"name": "main", "requests": {"cpu": f"{i % SHAPES}", "memory": 5}, "flavors": {"cpu": "f\u00e5]"}}
            ],
        }
        for i in range(WORKLOADS)
    ]
    del workloads[10]["tasks"]
    workloads[11]["tasks"] = []
    return {"engine": "kueue", "configuration": "prod", "state": {"workloads": workloads}}


def _strict(body: bytes) -> DecisionRequest:
    return decode(body, DecisionRequest)


def _body(request: dict[str, Any]) -> bytes:
    return json.dumps(request).encode()


def test_the_request_is_the_same_and_lists_are_made_once():
    body = _body(_request())
    found, strict = decode_request(body), _strict(body)
    assert msgspec.to_builtins(found) == msgspec.to_builtins(strict)
    assert msgspec.msgpack.encode(found) == msgspec.msgpack.encode(strict)
    assert StateDigest(found.state).hexdigest() == StateDigest(strict.state).hexdigest()
    assert len({id(workload.tasks) for workload in found.state.workloads}) == SHAPES + 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"tasks": [{"name": "", "count": -1}]},
        {"tasks": None},
        {"tasks": [{"name": "a", "colour": "red"}], "tusks": []},
        {"created_at": "0001-01-01T00:00:00+23:00"},
    ],
)
def test_what_is_wrong_is_refused_alike(wrong: dict[str, Any]):
    request = _request()
    request["state"]["workloads"][2900].update(wrong)
    body = _body(request)
    assert tasks_repeat(body)
    with pytest.raises(InvalidInput) as shared:
        decode_request(body)
    with pytest.raises(InvalidInput) as strict:
        _strict(body)
    assert shared.value.problems == strict.value.problems


@pytest.mark.parametrize("torn", [b'"memory": 5}', b"main", b'"f\\u00e5]"'])
def test_torn_bytes_are_refused_alike(torn: bytes):
    body = _body(_request())
    at = body.rindex(torn)
    for broken in (body[:at] + b"\xff" + body[at + 1 :], body[: at + 2] + body[at + 3 :], body[:at]):
        problems: list[object] = []
        for read in (decode_request, _strict):
            try:
                problems.append(msgspec.to_builtins(read(broken)))
            except InvalidInput as refused:
                problems.append(refused.problems)
        assert problems[0] == problems[1]


def test_lists_too_long_to_be_looked_at_do_not_repeat():
    request = _request()
    for workload in request["state"]["workloads"]:
        workload["tasks"] = [{"name": f"main-{i}"} for i in range(100)]
    assert not tasks_repeat(_body(request))


def test_tasks_that_differ_are_not_compared(instead: Instead):
    request = _request()
    for i, workload in enumerate(request["state"]["workloads"]):
        workload["tasks"] = [{"name": f"main-{i}"}]
    body = _body(request)
    assert not tasks_repeat(body)
    instead(answers, decode_at_once=None)
    assert msgspec.to_builtins(decode_request(body)) == msgspec.to_builtins(_strict(body))
