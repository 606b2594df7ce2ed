"""Schemas as generators of clients read them."""

import copy
from typing import Any

import pytest

from app.service.document import of_parameter, portable, references

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


ASKS: dict[str, Any] = {
    "title": "Asks",
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    "description": "Which ones",
    "default": "all",
}


READ: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"$ref": "#/components/schemas/Document", "description": "gone"}, {"$ref": "#/components/schemas/Document"}),
    ({"type": "integer"}, {"type": "integer", "format": "int64"}),
    ({"type": "number", "maximum": 2}, {"type": "number", "maximum": 2, "format": "double"}),
    ({"type": "boolean"}, {"type": "boolean"}),
    ({"enum": ["b", "a"]}, {"type": "string", "enum": ["b", "a"]}),
    ({"type": "string", "description": "``a`` or ``b``"}, {"type": "string", "description": "`a` or `b`"}),
    ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, {"type": "number", "format": "double"}),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]},
     {"anyOf": [{"type": "integer", "format": "int64"}, {"type": "string"}]}),
    ({"anyOf": [{"type": "null"}, {"type": "integer"}]},
     {"anyOf": [{"type": "null"}, {"type": "integer", "format": "int64"}]}),
    ({"type": "array", "items": {"type": "integer"}, "default": []},
     {"type": "array", "items": {"type": "integer", "format": "int64"}}),
    ({"type": "object", "additionalProperties": {"type": "integer"}, "default": {}},
     {"type": "object", "additionalProperties": {"type": "integer", "format": "int64"}}),
    ({"type": "object", "properties": {"n": {"type": "integer"}}, "required": []},
     {"type": "object", "properties": {"n": {"type": "integer", "format": "int64"}}}),
    ({"type": "object", "properties": {}, "required": ["n"]},
     {"type": "object", "properties": {}, "required": ["n"]}),
    ({"type": "string", "default": ""}, {"type": "string"}),
    ({"type": "string", "default": None}, {"type": "string"}),
    ({"type": "integer", "default": 0}, {"type": "integer", "format": "int64", "default": 0}),
    ({"type": "boolean", "default": False}, {"type": "boolean", "default": False}),
    ({"type": "string", "default": "x"}, {"type": "string", "default": "x"}),
    (ASKS, {"type": "array", "items": {"type": "string"}, "default": "all", "description": "Which ones"}),
    (ASKS | {"default": []}, {"type": "array", "items": {"type": "string"}, "description": "Which ones"}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "made"), READ)
def test_a_property_as_generators_read_it(given: dict[str, Any], made: dict[str, Any]) -> None:
    before = copy.deepcopy(given)
    assert properties(it=given)["it"] == made
    assert given == before, "what msgspec gave is left as it is"


def test_what_has_a_title_becomes_a_component() -> None:
    """Once, whoever refers to it; its default stays with whoever has it."""
    level: dict[str, Any] = {"enum": ["low", "high"], "title": "Level"}
    asked: dict[str, Any] = {"type": "object", "properties": {"a": {**level, "default": "low"}, "b": level}}
    made = portable({"Asked": {**asked, "title": "Asked"}}, ["Asked"], {})
    assert made == {
        "Asked": {
            "type": "object",
            "properties": {
                "a": {"$ref": "#/components/schemas/Level", "default": "low"},
                "b": {"$ref": "#/components/schemas/Level"},
            },
        },
        "Level": {"type": "string", "enum": ["low", "high"]},
    }
    assert list(portable({"B": asked, "A": asked}, ["A"], {})) == ["A", "B", "Level"], "in the order of their names"
    other: dict[str, Any] = {"type": "object", "properties": {"c": {"type": "string", "title": "Level"}}}
    with pytest.raises(AssertionError, match="two schemas are called Level"):
        portable({"Asked": asked, "Other": other}, ["Asked"], {})


def test_a_small_schema_has_its_name_however_it_is_said() -> None:
    """The order of the words and what is said beside them make no other one; other bounds do."""
    common = {"Level": {"type": "string", "enum": ["high", "low"]}, "Count": {"type": "integer", "format": "int64"}}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "level": {"enum": ["low", "high"], "description": "How much", "default": "low"},
            "count": {"type": "integer", "default": 7},
            "bounded": {"type": "integer", "maximum": 7},
        },
    }
    made = portable({"Asked": schema}, ["Asked"], common)
    assert made["Asked"]["properties"] == {
        "level": {"$ref": "#/components/schemas/Level", "default": "low"},
        "count": {"$ref": "#/components/schemas/Count", "default": 7},
        "bounded": {"type": "integer", "maximum": 7, "format": "int64"},
    }
    assert made["Count"] == {"type": "integer", "format": "int64"}


def test_only_what_is_sent_is_closed() -> None:
    """With all that it refers to; answers may grow fields."""
    shut: dict[str, Any] = {"type": "object", "additionalProperties": False}
    sent = shut | {"properties": {"a": {"type": "array", "items": {"$ref": "#/components/schemas/Inner"}}}}
    inner = shut | {"properties": {"again": {"$ref": "#/components/schemas/Sent"}}}
    shown = {"type": "object", "additionalProperties": {"type": "string"}, "properties": {}}
    made = portable({"Sent": sent, "Inner": inner, "Answer": shut, "Shown": shown}, ["Sent"], {})
    assert made["Sent"]["additionalProperties"] is made["Inner"]["additionalProperties"] is False
    assert made["Answer"] == {"type": "object"}
    assert made["Shown"]["additionalProperties"] == {"type": "string"}


def test_a_weight_that_is_left_out_is_not_its_default() -> None:
    weight: dict[str, Any] = {"type": "object", "properties": {"weight": {"type": "number", "default": 1.0}}}
    made = portable({"Queue": weight, "Pool": weight}, [], {})
    assert made["Queue"]["properties"]["weight"] == {"type": "number", "format": "double"}
    assert made["Pool"]["properties"]["weight"] == {"type": "number", "format": "double", "default": 1.0}


def test_references_are_found_wherever_they_stand() -> None:
    a, b, c = ({"$ref": f"#/components/schemas/{name}"} for name in "ABC")
    assert references({"x": [{"y": a}, b], "z": {"w": [[c]]}, "n": 1}) == ["A", "B", "C"]
    assert references({"$ref": "#/components/schemas/A", "beside": b}) == ["A", "B"]
    assert references([{"$ref": "#/components/headers/A"}, {"$ref": a}, "#/components/schemas/B", None]) == ["A"]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"type": "integer", "title": "Limit", "description": "How many", "default": 5},
         {"type": "integer", "default": 5, "format": "int64"}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "title": "Name"}, {"type": "string"}),
        ({"anyOf": [{"type": "string"}, {"type": "boolean"}, {"type": "null"}]},
         {"anyOf": [{"type": "string"}, {"type": "boolean"}]}),
        ({"anyOf": [{"enum": ["low"]}, {"type": "null"}]}, {"$ref": "#/components/schemas/Level"}),
    ],
)  # fmt: skip
def test_a_parameter_is_never_null(given: dict[str, Any], made: dict[str, Any]) -> None:
    assert of_parameter(given, {"Level": {"type": "string", "enum": ["low"]}}) == made
