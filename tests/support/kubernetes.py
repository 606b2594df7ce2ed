"""What tests of kubernetes share with those beside them."""

import json
from typing import Any

from app.formats import import_configuration
from app.formats.reader import Imported


def read(*items: dict[str, Any], format: str = "kubernetes") -> Imported:  # noqa: A002
    return import_configuration(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}).encode(), format)
