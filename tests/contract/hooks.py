"""What schemathesis can't know of itself: lines of JSON as a body, manifests as answers."""

from typing import Any

import schemathesis
import yaml
from schemathesis.core.media_types import YAML_MEDIA_TYPES


@schemathesis.serializer("application/x-ndjson")
def lines(_: Any, value: Any) -> bytes:
    """A body of lines is a string already; what should be refused goes out as a line of its own."""
    return value.encode(errors="surrogatepass") if isinstance(value, str) else f"{value}\n".encode()


@schemathesis.deserializer(*YAML_MEDIA_TYPES)
def documents(_: Any, response: Any) -> str:
    """An exported manifest is a text, and must be YAML of any number of documents."""
    text: str = response.content.decode()
    list(yaml.safe_load_all(text))
    return text
