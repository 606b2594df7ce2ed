"""Exact integer quantities.

cpu, vcore, gpu and names that end in ``/gpu`` are counted in thousandths, every other resource in whole
units. A finer value, a negative one, or one past 2^53 units is an error (contract.md, Conventions). What is
written in thousandths (``9223372036854775000m``) may use all of int64, as Kueue's own quantities do.
"""

import re
from decimal import Decimal
from functools import lru_cache

from app.solver.model.base import Quantity

MILLI_RESOURCES = frozenset({"cpu", "vcore", "gpu"})
MAX_UNITS = 2**53
MAX_STEPS = 2**63 - 1
UNLIMITED = "unlimited"

_FORM = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,3})|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?"
)
_SUFFIX = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("0.001"),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12),
    "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip


class QuantityError(ValueError):
    """A quantity that is malformed, negative, too fine or too large; the text says which."""


def scale_of(resource: str) -> int:
    """Integer steps in one whole unit of ``resource``: 1000 or 1."""
    return 1000 if resource in MILLI_RESOURCES or resource.endswith("/gpu") else 1


@lru_cache(maxsize=1 << 16, typed=True)
def parse(value: Quantity, scale: int) -> int:
    """``value`` in steps of 1/``scale`` unit. Raises QuantityError.

    Cached: a cluster repeats a few hundred distinct quantities.
    """
    if isinstance(value, bool):
        raise QuantityError("a boolean is not a quantity")
    if isinstance(value, int):
        return _checked(value * scale, scale, value)
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise QuantityError("not a finite number")
        number = Decimal(repr(value))
    else:
        number = _decimal(value)
    steps = number * scale
    if steps != steps.to_integral_value():
        raise QuantityError(f"{value!r} is finer than {'1/1000 of a unit' if scale > 1 else 'one unit'}")
    if scale > 1 and isinstance(value, str) and value.endswith("m") and MAX_UNITS * scale < steps <= MAX_STEPS:
        return int(steps)
    return _checked(int(steps), scale, value)


def exact(value: Quantity) -> Decimal:
    """``value`` in whole units, however fine. Raises QuantityError."""
    if isinstance(value, bool):
        raise QuantityError("a boolean is not a quantity")
    number = _decimal(value) if isinstance(value, str) else Decimal(repr(value))
    if not number.is_finite():
        raise QuantityError("not a finite number")
    if not 0 <= number <= MAX_UNITS:
        raise QuantityError(f"{value!r} is negative" if number < 0 else f"{value!r} is past 2^53 units")
    return number


def _decimal(text: str) -> Decimal:
    match = _FORM.fullmatch(text) if len(text) <= 64 else None
    if match is None:
        raise QuantityError(f"{text[:64]!r} is not a Kubernetes quantity")
    digits, exponent, suffix = match.groups()
    number = Decimal(digits)
    if exponent is not None:
        if abs(int(exponent)) > 30:
            raise QuantityError(f"{text!r} is out of range")
        return number.scaleb(int(exponent))
    return number * _SUFFIX[suffix] if suffix else number


def _checked(steps: int, scale: int, value: Quantity) -> int:
    if steps < 0:
        raise QuantityError(f"{value!r} is negative")
    if steps > MAX_UNITS * scale:
        raise QuantityError(f"{value!r} is past 2^53 units")
    return steps


def units(steps: int, resource: str) -> int | float:
    """``steps`` of ``resource`` as answers show them: a number in whole units."""
    scale = scale_of(resource)
    whole, rest = divmod(steps, scale)
    return whole if rest == 0 else steps / scale
