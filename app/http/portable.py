"""JSON schemas that code generators read well, from those that msgspec writes.

Both accept the same documents, with three exceptions: answers may grow fields in later versions, so shapes that are
never sent are open; a number is said to be a double or a 64-bit integer where JSON knows only numbers; and where a word
may stand for a list, the list is shown and the word is said.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

Schema = dict[str, Any]
Schemas = dict[str, Schema]

_PREFIX = "#/components/schemas/"
_NUMBERS = {"integer": "int64", "number": "double"}
_INTEGER, _NUMBER, _NULL = {"type": "integer"}, {"type": "number"}, {"type": "null"}
_MEANT_ABSENT = frozenset({("Queue", "weight")})
"""Leaving it out is not the same as its default, which a generated client would send."""
_SHOWN_AS_LIST = "Asks"
"""Of a list or a word Java's generator makes nothing that compiles, Go's a type that each caller would have to fill."""


def portable(schemas: Mapping[str, Schema], sent: Iterable[str], common: Mapping[str, Schema]) -> Schemas:
    """``schemas`` by name, and those that hide in them under a title or as one of ``common``.

    ``sent``: names that request bodies refer to; ``common``: small schemas that deserve a name.
    """
    found: Schemas = {}
    named = {_key(schema): name for name, schema in common.items()}
    for name, schema in schemas.items():
        made = _rewritten({key: value for key, value in schema.items() if key != "title"}, found, named)
        for field, inner in made.get("properties", {}).items():
            if (name, field) in _MEANT_ABSENT:
                inner.pop("default", None)
        found[name] = made
    _drop_defaults_of_unions(found)
    closed = closure(found, sent)
    for name, schema in found.items():
        if name not in closed and schema.get("additionalProperties") is False:
            del schema["additionalProperties"]
    return dict(sorted(found.items()))


def closure(schemas: Mapping[str, Schema], names: Iterable[str]) -> set[str]:
    """``names`` and all that they refer to."""
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(references(schemas[name]))
    return seen


def references(value: Any) -> list[str]:
    """Names of the schemas that ``value`` refers to, anywhere in it."""
    if isinstance(value, list):
        return [name for item in cast(list[Any], value) for name in references(item)]
    if not isinstance(value, dict):
        return []
    content = cast(dict[str, Any], value)
    target = content.get("$ref")
    here = [target.removeprefix(_PREFIX)] if isinstance(target, str) and target.startswith(_PREFIX) else []
    return here + [name for item in content.values() for name in references(item)]


def of_parameter(schema: Schema, common: Mapping[str, Schema]) -> Schema:
    """The schema of a parameter: never null, without the title that pydantic makes up."""
    plain = {key: value for key, value in schema.items() if key not in ("title", "description")}
    made = _rewritten(plain, {}, {_key(shape): name for name, shape in common.items()})
    if "anyOf" in made:
        made |= _any_of([one for one in made.pop("anyOf") if one != _NULL])
    return made


def _rewritten(schema: Schema, found: Schemas, named: Mapping[bytes, str]) -> Schema:
    """``schema`` without what only msgspec needs; what has a title or a name leaves a reference to ``found``."""
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    made = dict(schema)
    if made.get("title") == _SHOWN_AS_LIST:
        told = {name: made[name] for name in ("default", "description") if name in made}
        made = next(one for one in made["anyOf"] if one.get("type") == "array") | told
    for key in ("properties", "$defs"):
        if key in made:
            made[key] = {name: _rewritten(inner, found, named) for name, inner in made[key].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = _rewritten(made[key], found, named)
    if "anyOf" in made:
        alternatives = [_rewritten(inner, found, named) for inner in _distinct(made.pop("anyOf"))]
        made |= _any_of(_gathered(alternatives, found, named))
    made = _tidied(made)
    if (name := named.get(_key(made))) is not None:
        made["title"] = name
    return _hoisted(made, found)


def _tidied(schema: Schema) -> Schema:
    """Prose without reStructuredText, nothing that says nothing, a type for enumerations and a format for numbers."""
    made = dict(schema)
    if "description" in made:
        made["description"] = made["description"].replace("``", "`")
    if "default" in made and made["default"] in (None, [], {}, ""):
        del made["default"]
    if made.get("required") == []:
        del made["required"]
    if "enum" in made:
        return {"type": "string", **made}
    if made.get("type") in _NUMBERS:
        made["format"] = _NUMBERS[made["type"]]
    return made


def _key(schema: Schema) -> bytes:
    """The same for schemas that accept the same and differ in what they say besides."""
    said = {key: value for key, value in schema.items() if key not in ("default", "description", "title")}
    if "enum" in said:
        said["enum"] = sorted(said["enum"])
    return msgspec.json.encode(said, order="deterministic")


def _any_of(alternatives: list[Schema]) -> Schema:
    return alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}


def _gathered(alternatives: list[Schema], found: Schemas, named: Mapping[bytes, str]) -> list[Schema]:
    """What has a name keeps it where it may be null as well: one type in a generated client, not one a property."""
    rest = [one for one in alternatives if one != _NULL]
    name = named.get(_key({"anyOf": rest}))
    if name is None or rest == alternatives:
        return alternatives
    return [_hoisted({"anyOf": rest, "title": name}, found), _NULL]


def _drop_defaults_of_unions(schemas: Schemas) -> None:
    """A generated client would write the value where its class for the union belongs, which no compiler takes: the
    defaults of properties of several types are said in their descriptions alone."""
    for schema in schemas.values():
        for inner in schema.get("properties", {}).values():
            named = schemas.get(inner.get("$ref", "").removeprefix(_PREFIX), {})
            if "anyOf" in inner or "anyOf" in named:
                inner.pop("default", None)


def _distinct(alternatives: list[Schema]) -> list[Schema]:
    """A number may be whole; saying so twice only makes generators invent a third type."""
    return [one for one in alternatives if one != _INTEGER or _NUMBER not in alternatives]


def _hoisted(schema: Schema, found: Schemas) -> Schema:
    title = schema.pop("title", None)
    if title is None:
        return schema
    default = {"default": schema.pop("default")} if "default" in schema else {}
    if found.setdefault(title, schema) != schema:
        raise AssertionError(f"two schemas are called {title}")
    return {"$ref": _PREFIX + title, **default}
