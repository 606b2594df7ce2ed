"""What fields of the wire mean: the docstring under each field of the struct that decodes it.

It stands where the field stands, costs nothing when bytes are decoded, and is read from the source when somebody asks:
the OpenAPI document, and whoever must know which engine reads a field.
"""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from types import ModuleType

import msgspec


def descriptions(shape: type[msgspec.Struct]) -> dict[str, str]:
    """Text by name of field, inherited ones included; one that a subclass declares again has the subclass's."""
    found: dict[str, str] = {}
    for base in reversed(shape.__mro__):
        if is_ours(base):
            found |= _of_module(_module(base)).get(base.__qualname__, {})
    return found


def is_ours(shape: type) -> bool:
    """Whether a class is of Arbiter."""
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
