"""The OpenAPI document as it is committed. That it is what the service serves is test_openapi.py's to say: making it
takes a second, for every process that collects tests."""

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "openapi" / "openapi.json"


def document() -> dict[str, Any]:
    """Anew each time, for whoever changes it."""
    return json.loads(FILE.read_bytes())
