"""The OpenAPI document: what it promises is what the service does."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
from openapi_spec_validator import validate
from starlette.testclient import TestClient

from app.http.responses import MEDIA_TYPE
from app.solver.engine import all_facts
from openapi import refresh
from tests.support.document import FILE, document
from tests.support.instead import Instead

DOCUMENT = document()
METHODS = {"get", "put", "post", "delete", "patch"}


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    every = [(path, method, item[method]) for path, item in DOCUMENT["paths"].items() for method in METHODS & set(item)]
    assert every
    return every


def whole(part: dict[str, Any]) -> dict[str, Any]:
    """``part``, or what it refers to."""
    for key in part.get("$ref", "#").split("/")[1:]:
        part = (DOCUMENT if key == "components" else part)[key]
    return part


def test_the_document_is_what_the_service_serves(homeless: TestClient) -> None:
    assert homeless.get("/openapi.json").json() == DOCUMENT


def test_the_file_is_the_document() -> None:
    assert FILE.read_text() == refresh.text(), "run `make openapi`"


def test_the_check_tells_a_difference(tmp_path: Path, instead: Instead) -> None:
    copy = tmp_path / "openapi.json"
    instead(refresh, DOCUMENT=copy)
    for content, differs in ((None, True), (refresh.text(), False), (refresh.text().replace("Arbiter", "U", 1), True)):
        if content is not None:
            copy.write_text(content)
        assert any("openapi.json" in found for found in refresh.check()) is differs


def test_it_is_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    validate(DOCUMENT)


def test_operation_ids_are_explicit_and_unique() -> None:
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", one) for one in ids), ids


def test_every_operation_is_described_and_tagged() -> None:
    declared = {tag["name"] for tag in DOCUMENT["tags"]}
    for path, method, operation in operations():
        assert operation.get("summary"), (path, method)
        assert operation.get("description"), (path, method)
        assert len(operation["tags"]) == 1, (path, method)
        assert set(operation["tags"]) <= declared, (path, method)
        for parameter in map(whole, operation.get("parameters", ())):
            assert parameter.get("description"), (path, method, parameter["name"])


def test_every_reference_resolves_and_every_schema_is_used() -> None:
    used = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(DOCUMENT)))
    assert used == set(DOCUMENT["components"]["schemas"])
    assert all(re.fullmatch(r"[A-Z][A-Za-z0-9]*", name) for name in used)


def test_no_schema_is_a_list_or_a_word() -> None:
    """Java's generator makes of one what does not compile."""

    def unions(value: Any, at: str) -> Iterator[tuple[str, list[Any]]]:
        if isinstance(value, list):
            for i, inner in enumerate(cast(list[Any], value)):
                yield from unions(inner, f"{at}/{i}")
        if isinstance(value, dict):
            content = cast(dict[str, Any], value)
            if isinstance(some := content.get("anyOf", content.get("oneOf")), list):
                yield at, cast(list[Any], some)
            for name, inner in content.items():
                yield from unions(inner, f"{at}/{name}")

    kinds = {at: {one.get("type", "object") for one in some} - {"null"} for at, some in unions(document(), "")}
    assert kinds
    assert [at for at, found in kinds.items() if "array" in found and len(found) > 1] == []


def test_errors_are_problem_documents() -> None:
    for path, method, operation in operations():
        for status, response in operation["responses"].items():
            if int(status) >= 400 and path != "/readyz":
                assert MEDIA_TYPE in whole(response)["content"], (path, method, status)
        if "application/json" in operation.get("requestBody", {}).get("content", {}):
            assert {"400", "413", "415", "422", "500"} <= set(operation["responses"]), (path, method)


def test_bodies_have_examples_that_are_valid() -> None:
    for _, _, operation in operations():
        media = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if media is not None:
            shown = [media["example"]] if "example" in media else [one["value"] for one in media["examples"].values()]
            schema = {**media["schema"], "components": DOCUMENT["components"]}
            for example in shown:
                jsonschema.Draft202012Validator(schema).validate(example)


def test_a_decision_has_an_example_of_each_engine() -> None:
    media = DOCUMENT["paths"]["/v1/decisions"]["post"]["requestBody"]["content"]["application/json"]
    assert {name: one["value"]["engine"] for name, one in media["examples"].items()} == {
        facts.title: facts.name for facts in all_facts()
    }


def test_the_example_of_a_configuration_is_stored_without_findings(service: TestClient) -> None:
    operation = DOCUMENT["paths"]["/v1/configurations/{name}"]["put"]
    example = operation["requestBody"]["content"]["application/json"]["example"]
    stored = service.put("/v1/configurations/c", json=example)
    assert (stored.status_code, stored.json()["findings"]) == (201, [])


@pytest.mark.parametrize("path", ["/v1/decisions", "/v1/shares", "/v1/preemptibility", "/v1/effective-settings"])
def test_examples_of_questions_are_answered(homeless: TestClient, path: str) -> None:
    media = DOCUMENT["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    documented = DOCUMENT["paths"][path]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    validator: Any = jsonschema.Draft202012Validator({**documented, "components": DOCUMENT["components"]})
    examples = [media["example"]] if "example" in media else [one["value"] for one in media["examples"].values()]
    assert examples
    for example in examples:
        answer = homeless.post(path, json=example)
        assert answer.status_code == 200, answer.text
        validator.validate(answer.json())


def test_the_documentation_page_loads_nothing_from_elsewhere(homeless: TestClient) -> None:
    page = homeless.get("/docs")
    assert page.status_code == 200
    assert "/openapi.json" in page.text
    assert "//" not in page.text
    assert '<a class="back" href="/">' in page.text, "the console is there"
    assert page.headers["Content-Security-Policy"].startswith("default-src 'self';")
