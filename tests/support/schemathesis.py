"""What tests of schemathesis share with those beside them."""

from typing import Any


def closed(document: dict[str, Any]) -> dict[str, Any]:
    """The document without the promise that answers may grow: a field that it does not know is a fault today."""
    for schema in document["components"]["schemas"].values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return document
