"""What fields mean, as the OpenAPI document says it: the docstring under each field of the struct that decodes it.

It stands where the field stands, costs nothing when bytes are decoded, and is read from the source when the document
is asked for.
"""

import ast
import inspect
from collections.abc import Iterable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

import msgspec

from app.http.openapi import name_of


def described(schemas: dict[str, Any]) -> dict[str, Any]:
    """``schemas`` with the description of each property that a struct of the app declares."""
    shapes: dict[str, list[type[msgspec.Struct]]] = {}
    for shape in filter(_is_ours, _structs(msgspec.Struct)):
        for name in {shape.__name__, name_of(shape.__module__, shape.__name__)}:
            shapes.setdefault(name, []).append(shape)
    return {name: _described(schema, shapes.get(name, ())) for name, schema in schemas.items()}


def descriptions(shape: type[msgspec.Struct]) -> dict[str, str]:
    """Text by name of field, inherited ones included; one that a subclass declares again has the subclass's."""
    found: dict[str, str] = {}
    for base in reversed(shape.__mro__):
        if _is_ours(base):
            found |= _of_module(_module(base)).get(base.__qualname__, {})
    return found


def _described(schema: dict[str, Any], called: Iterable[type[msgspec.Struct]]) -> dict[str, Any]:
    """``called``: structs of that name, of which the one with these fields is meant."""
    properties = schema.get("properties", {})
    meant = next((shape for shape in called if set(shape.__struct_encode_fields__) == set(properties)), None)
    if meant is None or not properties:
        return schema
    said = descriptions(meant)
    spelled = zip(meant.__struct_encode_fields__, meant.__struct_fields__, strict=True)
    texts = {name: said[field] for name, field in spelled if field in said}
    told = {name: value | {"description": texts[name]} for name, value in properties.items() if name in texts}
    return schema | {"properties": properties | told}


def _structs(base: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for shape in base.__subclasses__():
        yield shape
        yield from _structs(shape)


def _is_ours(shape: type) -> bool:
    return shape.__module__.partition(".")[0] == "app"


def _module(shape: type) -> ModuleType:
    module = inspect.getmodule(shape)
    assert module is not None
    return module


@cache
def _of_module(module: ModuleType) -> dict[str, dict[str, str]]:
    classes = (node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ClassDef))
    return {node.name: dict(_of_class(node)) for node in classes}


def _of_class(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, after in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match after:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield field.target.id, " ".join(text.split())
                case _:
                    pass
