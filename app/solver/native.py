"""Bounds of the native fields of a configuration: they are kept and never looked into, so they must stay small."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from app.solver.model.configuration import Configuration
from app.solver.model.native import Native
from app.solver.model.problems import Problem, pointer

MAX_BYTES = 4 * 2**20
"""Of all native fields of a configuration together, as JSON: some ten thousand LocalQueues."""
MAX_DEPTH = 40
"""Levels of mappings and lists below one field."""

_encoder = msgspec.json.Encoder()


def native_problems(configuration: Configuration) -> Iterator[Problem]:
    """Native fields that are nested too deeply, or too large together; pointers start at /configuration."""
    size = 0
    for at, native in _natives(configuration):
        fields = [(name, getattr(native, name)) for name in native.__struct_fields__]
        deep = [name for name, value in fields if _too_deep(value)]
        for name in deep:
            yield Problem(pointer=pointer(*at, name), detail=f"nested deeper than {MAX_DEPTH} levels")
        if not deep:
            size += len(_encoder.encode(native))
    if size > MAX_BYTES:
        detail = f"native fields of {size} bytes in all: a configuration may have {MAX_BYTES}"
        yield Problem(pointer="/configuration", detail=detail)


def size_of(configuration: Configuration) -> int:
    """Bytes of all native fields as JSON. They must not be nested too deeply."""
    return sum(len(_encoder.encode(native)) for _, native in _natives(configuration))


def without_native(configuration: Configuration) -> Configuration:
    """The configuration that decides the same, and says nothing more."""
    return replace(
        configuration,
        native=None,
        flavors=[replace(flavor, native=None) for flavor in configuration.flavors],
        queues=[replace(queue, native=None) for queue in configuration.queues],
    )


def _natives(configuration: Configuration) -> Iterator[tuple[tuple[str | int, ...], Native]]:
    if configuration.native is not None:
        yield ("configuration", "native"), configuration.native
    for i, flavor in enumerate(configuration.flavors):
        if flavor.native is not None:
            yield ("configuration", "flavors", i, "native"), flavor.native
    for i, queue in enumerate(configuration.queues):
        if queue.native is not None:
            yield ("configuration", "queues", i, "native"), queue.native


def _too_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        mappings = [cast(dict[str, Any], one) for one in level if isinstance(one, dict)]
        lists = [cast(list[Any], one) for one in level if isinstance(one, list)]
        if not mappings and not lists:
            return False
        level = [inner for one in mappings for inner in one.values()] + [inner for one in lists for inner in one]
    return True
