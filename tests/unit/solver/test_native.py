"""Native fields are kept, never looked into, and stay small: at the bounds of depth and size."""

from typing import Any

import msgspec
import pytest

from app.solver import check
from app.solver import check as native
from app.solver.model.configuration import Configuration
from tests.support.bounds import Bounded


def nested(levels: int, *, lists: bool = False) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] if lists else {"a": value}
    return value


def configuration(top: Any = None, flavor: Any = None, queue: Any = None) -> Configuration:
    def block(value: Any) -> dict[str, Any]:
        return {} if value is None else {"native": {"kueue": value}}

    of = {"flavors": [{"name": "f"} | block(flavor)], "queues": [{"name": "q"} | block(queue)]} | block(top)
    return msgspec.convert(of, Configuration)


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize(("part", "where"), [("top", ""), ("flavor", "/flavors/0"), ("queue", "/queues/0")])
def test_nesting(part: str, where: str, lists: bool) -> None:
    fine, deep = ({"x": nested(levels, lists=lists)} for levels in (native.MAX_DEPTH - 1, native.MAX_DEPTH))
    assert check.configuration_problems(configuration(**{part: fine})) == []
    found = check.configuration_problems(configuration(**{part: deep}))
    assert [p.pointer for p in found] == [f"/configuration{where}/native/kueue"]


def test_size(bounded: Bounded) -> None:
    """All fields together; what is too deep to be looked at is not counted."""
    of = configuration({"a": 1}, {"b": 2}, {"c": 3})
    size = native.size_of(of)
    assert size == 3 * len(b'{"kueue":{"a":1}}')
    bounded(native, MAX_BYTES=size)
    assert list(native.native_problems(of)) == []
    deep = configuration({"a": nested(native.MAX_DEPTH)}, {"b": 2}, {"c": 3})
    assert len(list(native.native_problems(deep))) == 1
    bounded(native, MAX_BYTES=size - 1)
    assert [p.pointer for p in native.native_problems(of)] == ["/configuration"]
    bare = native.without_native(of)
    assert bare == configuration()
    assert native.size_of(bare) == 0
