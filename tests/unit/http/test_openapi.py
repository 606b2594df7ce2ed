"""What routers say about an operation, and what becomes of it in the document."""

from typing import Any

import pytest

from app.answering.comparison import ComparisonRequest
from app.http.openapi import is_page, lines, name_of, needed_by, operation, page, reference, renamed
from app.http.responses import Fault, ProblemDocument
from app.solver.model.configuration import Queue
from app.solver.model.kueue import Queue as KueueQueue

PROBLEM = {
    "description": "",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
}


def test_an_operation_says_all_that_it_can_answer() -> None:
    made = operation(
        needs="read",
        request=ComparisonRequest,
        responses={202: Fault, 300: Fault, 304: None, 207: {"text/plain": {"schema": {"type": "string"}}}},
        errors=(404, 422),
        example={"a": 1},
        etag=True,
    )
    etag = {"ETag": {"$ref": "#/components/headers/ETag"}}
    fault = {"schema": {"$ref": "#/components/schemas/Fault"}}
    assert made["status_code"] == 202
    assert list(made["responses"].items()) == [
        (202, {"description": "Accepted", "content": {"application/json": fault},
               "headers": etag}),
        (300, {"description": "Multiple Choices", "content": {"application/json": fault}, "headers": etag}),
        (304, {"description": "Not modified: If-None-Match names it", "headers": etag}),
        (207, {"description": "Multi-Status", "content": {"text/plain": {"schema": {"type": "string"}}},
               "headers": etag}),
        *((status, PROBLEM) for status in (400, 401, 403, 404, 408, 413, 415, 422, 429, 500)),
    ]  # fmt: skip
    assert made["openapi_extra"] == {
        "security": [{"bearer": ["read"]}, {}],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/ComparisonRequest"}, "example": {"a": 1}}
            },
        },
    }
    assert needed_by(made["openapi_extra"]) == ("read",)


def test_an_operation_that_says_little() -> None:
    made = operation(needs=None, responses={200: Fault})
    assert list(made["responses"]) == [200, 400, 401, 403, 422, 500]
    assert made["responses"][200] == {
        "description": "Done",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Fault"}}},
    }
    assert made["openapi_extra"] == {"security": []}
    assert needed_by(made["openapi_extra"]) == ()
    with pytest.raises(AssertionError):
        needed_by(None)


def test_lines_need_not_be_there() -> None:
    content = lines(Fault, {"a": 1}, {"a": 2})
    schema = {
        "type": "string", "contentMediaType": "application/x-ndjson",
        "contentSchema": {"$ref": "#/components/schemas/Fault"},
    }  # fmt: skip
    assert content == {"application/x-ndjson": {"schema": schema, "example": '{"a":1}\n{"a":2}\n'}}
    assert lines(Fault) == {"application/x-ndjson": {"schema": schema}}
    made = operation(needs=None, request=content, responses={200: None})
    assert made["openapi_extra"]["requestBody"] == {"required": False, "content": content}
    assert 413 not in made["responses"], "what is no struct says its refusals itself"


def test_a_page_is_in_no_document() -> None:
    made: dict[str, Any] = page("read", 404)
    assert (made["status_code"], made["include_in_schema"]) == (404, False)
    assert (needed_by(made["openapi_extra"]), is_page(made["openapi_extra"])) == (("read",), True)
    assert (page(None)["status_code"], needed_by(page(None)["openapi_extra"])) == (200, ())
    both = operation(needs="read", followers=True, responses={200: None})["openapi_extra"]
    assert needed_by(both) == ("read", "follow")
    assert not is_page(operation(needs=None, responses={200: None})["openapi_extra"])
    assert not is_page(None)


def test_structs_of_one_name_are_told_apart_by_their_engine() -> None:
    assert (name_of("app.solver.model.kai", "Queue"), name_of("app.traces.kai", "Queue")) == ("KaiQueue", "Queue")
    assert reference(KueueQueue) == {"$ref": "#/components/schemas/KueueQueue"}
    assert reference(Queue) == {"$ref": "#/components/schemas/Queue"}
    assert reference(ProblemDocument) == {"$ref": "#/components/schemas/ProblemDocument"}
    text = '"app.solver.model.kueue.Queue" "app_solver_model_yunikorn_Queue" "app_solver_model_state_Node" "apple.X"'
    assert renamed(text) == '"KueueQueue" "YuniKornQueue" "Node" "apple.X"'
