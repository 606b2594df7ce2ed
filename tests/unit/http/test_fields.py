"""Descriptions of properties come from the docstrings under the fields."""

import json
from typing import Any

from app.answering.comparison_bodies import ComparisonRequest
from app.configurations.queues.schemas import QueueDocument
from app.document import text
from app.http.fields import descriptions
from app.solver.model.configuration import Queue
from app.solver.model.kueue import Queue as KueueQueue
from app.solver.model.request import DecisionRequest, StateOrReference
from app.solver.model.state import State


def schemas() -> dict[str, Any]:
    return json.loads(text())["components"]["schemas"]


def test_every_property_says_what_it_means() -> None:
    silent = [
        f"{name}.{field}"
        for name, schema in schemas().items()
        for field, said in schema.get("properties", {}).items()
        if not said.get("description", "").endswith(".")
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
