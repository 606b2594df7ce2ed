"""A manifest with anything in the place of anything gives findings; it never crashes, and never half-reads a type."""

import json
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.base.documents import read
from app.formats import Unreadable, import_configuration
from app.solver.model.configuration import Configuration
from app.solver.model.state import Ask, State
from tests.support.profiles import examples

MANIFESTS = Path(__file__).resolve().parents[1] / "manifests"
SOURCES: list[tuple[str, list[Any]]] = [
    (path.name.partition("-")[0], [document for _, document in read(path.read_bytes())])
    for path in sorted(MANIFESTS.iterdir())
    if path.is_file()
]
WORDS = ["", "-1", "1e999", "10Ei", "1h", "root", "true", "a/b", "é", "2026-01-01T00:00:00Z", "x" * 600]
NUMBERS = st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False)
KEYS = st.sampled_from(["name", "kind", "cpu", "spec", "a"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container with every key or index into it."""
    found: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        at = pending.pop()
        keys = list(at) if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else []
        found += [(at, key) for key in keys]
        pending += [at[key] for key in keys]
    return found


@examples(600)
@given(st.sampled_from(SOURCES), st.data())
def test_anything_anywhere(source: tuple[str, list[Any]], data: st.DataObject) -> None:
    system, documents = source
    mutated = json.loads(json.dumps(documents))
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(mutated)))
        container[key] = data.draw(ANYTHING)
    for format in (system, "kubernetes"):  # noqa: A001
        try:
            found = import_configuration("\n---\n".join(json.dumps(d) for d in mutated).encode(), format)
        except Unreadable:  # nothing that a system wrote is left of it
            continue
        for part, kind in ((found.configuration, Configuration), (found.state, State), (found.asks, list[Ask])):
            refusal = _refusal(part, kind)
            # Names have a length that only the wire checks; every type must be right.
            assert refusal is None or "length" in refusal, refusal


def _refusal(part: Any, kind: Any) -> str | None:
    try:
        msgspec.json.decode(msgspec.json.encode(part), type=kind)
    except msgspec.ValidationError as error:
        return str(error)
    return None
