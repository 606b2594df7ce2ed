"""Descriptions of properties come from the docstrings under the fields."""

from collections.abc import Iterator
from functools import cache
from typing import Any, cast

from app.answering.comparison import ComparisonRequest
from app.base.decoding import descriptions
from app.configurations.queues import QueueDocument
from app.solver.model.configuration import Queue
from app.solver.model.kueue import Queue as KueueQueue
from app.solver.model.request import DecisionRequest, StateOrReference
from app.solver.model.state import State
from tests.support.document import document


@cache
def schemas() -> dict[str, Any]:
    """Nobody here changes them."""
    return document()["components"]["schemas"]


def test_every_property_says_what_it_means() -> None:
    silent = [
        f"{name}.{field}"
        for name, schema in schemas().items()
        for field, said in schema.get("properties", {}).items()
        if not said.get("description", "").endswith((".", "?"))
    ]
    assert silent == [], "write a docstring under each field of the struct"


def test_structs_that_share_a_name_keep_their_own_texts() -> None:
    found = schemas()
    assert found["KueueQueue"]["properties"]["role"]["description"] == descriptions(KueueQueue)["role"]
    assert (
        found["Queue"]["properties"]["parent"]["description"]
        != found["YuniKornQueue"]["properties"]["parent"]["description"]
    )


def test_inherited_fields_keep_their_texts_unless_declared_again() -> None:
    assert descriptions(ComparisonRequest).items() >= descriptions(DecisionRequest).items()
    assert descriptions(StateOrReference).items() >= descriptions(State).items()
    assert descriptions(QueueDocument)["name"] != descriptions(Queue)["name"]
    assert descriptions(QueueDocument)["parent"] == descriptions(Queue)["parent"]


def _integers(schema: dict[str, Any], at: str, seen: set[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every integer that a body of this schema can hold, with its place."""
    if (name := schema.get("$ref", "").rpartition("/")[2]) and name not in seen:
        seen.add(name)
        yield from _integers(schemas()[name], name, seen)
    if schema.get("type") == "integer":
        yield at, schema
    parts: list[Any] = [schema.get(name) for name in ("items", "additionalProperties")]
    for part in (*parts, *schema.get("anyOf", ()), *schema.get("oneOf", ())):
        if isinstance(part, dict):
            yield from _integers(cast("dict[str, Any]", part), at, seen)
    for field, part in schema.get("properties", {}).items():
        yield from _integers(part, f"{at}.{field}", seen)


def test_every_integer_that_is_sent_has_bounds() -> None:
    """One without is promised to be an int64, and Python would take any."""
    ways = [way for item in document()["paths"].values() for way in item.values()]
    bodies = [part["schema"] for way in ways for part in way.get("requestBody", {}).get("content", {}).values()]
    found = list(_integers({"anyOf": bodies}, "", set()))
    assert len(found) > 30
    assert [at for at, schema in found if "maximum" not in schema and "enum" not in schema] == []
