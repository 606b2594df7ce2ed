"""Schemas as generators of clients read them."""

from typing import Any

from app.http.portable import portable

NAME_OR_DOCUMENT: dict[str, Any] = {"anyOf": [{"type": "string"}, {"$ref": "#/components/schemas/Document"}]}


def properties(**fields: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = {"type": "object", "properties": {}}
    schemas: dict[str, dict[str, Any]] = {"Asked": {"type": "object", "properties": fields}, "Document": document}
    return portable(schemas, ["Asked"], {"DocumentOrName": NAME_OR_DOCUMENT})["Asked"]["properties"]


def test_a_union_that_has_a_name_keeps_it_where_it_may_be_null() -> None:
    made = properties(must=NAME_OR_DOCUMENT, may={"anyOf": [*NAME_OR_DOCUMENT["anyOf"], {"type": "null"}]})
    assert made["must"] == {"$ref": "#/components/schemas/DocumentOrName"}
    assert made["may"] == {"anyOf": [{"$ref": "#/components/schemas/DocumentOrName"}, {"type": "null"}]}


def test_a_default_is_left_to_generated_code_only_where_there_is_one_type() -> None:
    made = properties(
        several={"anyOf": [{"type": "integer"}, {"type": "string"}], "default": 1},
        single={"type": "boolean", "default": True},
    )
    assert "default" not in made["several"]
    assert made["single"] == {"type": "boolean", "default": True}


def test_no_default_is_left_where_a_component_has_several_types() -> None:
    span: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "string"}], "title": "Span"}
    asked: dict[str, Any] = {"type": "object", "properties": {"every": {**span, "default": 1}}}
    made = portable({"Asked": asked}, ["Asked"], {})
    assert made["Asked"]["properties"]["every"] == {"$ref": "#/components/schemas/Span"}
