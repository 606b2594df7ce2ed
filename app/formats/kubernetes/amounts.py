"""Amounts of resources: sums as Kubernetes makes them, rounded up to what Arbiter counts in."""

from collections.abc import Iterable, Mapping

from app.formats.documents.reader import Reader
from app.solver.model.base import Quantity
from app.solver.model.quantity import QuantityError, parse, scale_of

_NANO = 10**9

Steps = dict[str, int]
"""Amounts by resource in the steps of ``quantity.scale_of``: thousandths of cpu and GPUs, whole units of the rest."""


def steps(reader: Reader, key: str) -> Steps:
    """The resource list under ``key``. What is finer than a step is rounded up, as the Kubernetes scheduler does."""
    inner = reader.child(key)
    out: Steps = {}
    for name in inner.value:
        value = inner.take(name)
        if value is None:
            continue
        try:
            if not isinstance(value, (str, int, float)):
                raise QuantityError("a quantity is expected")
            out[name] = _rounded_up(value, scale_of(name))
        except QuantityError as error:
            inner.warn(name, str(error), "error", "bad-value")
    return out


def _rounded_up(value: Quantity, scale: int) -> int:
    try:
        return parse(value, scale)
    except QuantityError:
        return -(-parse(value, _NANO) * scale // _NANO)


def plus(one: Mapping[str, int], other: Mapping[str, int]) -> Steps:
    """The sum."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def largest(one: Mapping[str, int], other: Mapping[str, int]) -> Steps:
    """The larger of both, resource by resource."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


def total(parts: Iterable[Mapping[str, int]]) -> Steps:
    """The sum of many."""
    out: Steps = {}
    for part in parts:
        for name, value in part.items():
            out[name] = out.get(name, 0) + value
    return out


def quantity(value: int, resource: str) -> Quantity:
    """Steps as a document shows them: whole units, or thousandths."""
    whole, rest = divmod(value, scale_of(resource))
    return whole if rest == 0 else f"{value}m"


def quantities(amounts: Mapping[str, int]) -> dict[str, Quantity]:
    """The same for a resource list."""
    return {name: quantity(value, name) for name, value in amounts.items()}
