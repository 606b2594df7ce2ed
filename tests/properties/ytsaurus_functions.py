"""YTsaurus' fair share functions in fractions, from what they mean: no algebra of curves, no tolerance, no arrays.

A function is told by its values alone. What a pool takes of a suggestion is found by walking over the places where its
children's sum bends, and the places where *that* bends are tried out among all that could be.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise

Row = tuple[Fraction, ...]
ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Function:
    """Left-continuous, never falling, straight between ``places``: values there, and what follows right behind."""

    places: list[Fraction]
    values: list[Row]
    behind: list[Row]

    def at(self, x: Fraction) -> Row:
        """The value at ``x``, which is not before the first place; behind the last place nothing changes any more."""
        for k, (low, high) in enumerate(pairwise(self.places)):
            if x == low:
                return self.values[k]
            if x < high:
                return between(self.behind[k], self.values[k + 1], (x - low) / (high - low))
        return self.values[-1] if x == self.places[-1] else self.behind[-1]


def between(one: Row, other: Row, part: Fraction) -> Row:
    """``part`` of the way from one to the other."""
    return tuple(a + part * (b - a) for a, b in zip(one, other, strict=True))


def plus(rows: Iterable[Row], width: int) -> Row:
    """Their sum."""
    return tuple(sum((row[r] for row in rows), ZERO) for rows in [list(rows)] for r in range(width))


def traced(value: Callable[[Fraction], Row], places: Iterable[Fraction]) -> Function:
    """The function with these values, which is straight between the places."""
    at = sorted(set(places))
    values = [value(x) for x in at]
    behind: list[Row] = []
    for k, (low, high) in enumerate(pairwise(at)):
        middle = value((low + high) / 2)
        behind.append(between(values[k + 1], middle, Fraction(2)))
    return Function(at, values, [*behind, values[-1]])


def largest_fit(total: Function, guarantee: Row, limits: Row, suggestion: Fraction) -> Fraction:
    """How far ``total`` can go within its limits and what is offered on top of its guarantee.

    Below a suggestion above 0 it stays strictly, which gives the smaller end of a jump; at 0 it goes as far as it can.
    What it takes from the start is never too much."""
    start = total.values[0]
    floor = tuple(map(max, guarantee, start))
    cap = tuple(map(max, limits, start))
    bound = tuple(min(most, least + suggestion) for most, least in zip(cap, floor, strict=True))
    for k, (low, high) in enumerate(pairwise(total.places)):
        begin, end = total.behind[k], total.values[k + 1]
        offered = [value - least for value, least in zip(begin, floor, strict=True)]
        if any(map(Fraction.__gt__, begin, bound)) or (suggestion > 0 and max(offered) >= suggestion):
            return low
        rises = [(a, b, most) for a, b, most in zip(begin, end, bound, strict=True) if b > most]
        if rises:
            return low + min((most - a) / (b - a) for a, b, most in rises) * (high - low)
    return total.places[-1]


def taken(total: Function, guarantee: Row, limits: Row) -> Function:
    """What comes of ``total`` over suggestions from 0 to 1."""
    start = total.values[0]
    floor = tuple(map(max, guarantee, start))
    cap = tuple(map(max, limits, start))
    found = {ZERO, ONE}
    for k in range(len(total.places) - 1):
        begin, end = total.behind[k], total.values[k + 1]
        for part in _bends(begin, end, floor, cap):
            point = between(begin, end, part)
            found.add(max(value - least for value, least in zip(point, floor, strict=True)))
    offers = (x for x in found if 0 <= x <= 1)
    return traced(lambda x: total.at(largest_fit(total, guarantee, limits, x)), offers)


def _bends(begin: Row, end: Row, floor: Row, cap: Row) -> set[Fraction]:
    """Where on the way some resource may come to need more than another, or than nothing, or meet its limit."""
    needs = [(a - low, b - low) for a, b, low in zip(begin, end, floor, strict=True)]
    over = [(a - most, b - most) for a, b, most in zip(begin, end, cap, strict=True)]
    lines = [*needs, *over, *((one[0] - other[0], one[1] - other[1]) for one, other in combinations(needs, 2))]
    return {ZERO, ONE} | {a / (a - b) for a, b in lines if a != b and 0 < a / (a - b) < 1}


def operation(usage: Row, demand: Row, limits: Row) -> Function:
    """First up to its usage, equally in all resources; then towards its demand."""
    most = max(usage)
    first = [(x, tuple(min(used, x) for used in usage)) for x in {ZERO, most, *usage}]
    vertices = [*sorted(first), (most + 1, demand)]
    values = [value for _, value in vertices]
    whole = Function([x for x, _ in vertices], values, values)
    return taken(whole, (ZERO,) * len(usage), limits)


def gang(demand: Row, limits: Row) -> Function:
    """All of its demand as soon as more is offered than that takes; nothing where it can't have it."""
    nothing = (ZERO,) * len(demand)
    place = max(demand)
    if not 0 < place < 1 or any(map(Fraction.__lt__, limits, demand)):
        return Function([ZERO, ONE], [nothing] * 2, [nothing] * 2)
    return Function([ZERO, place, ONE], [nothing, nothing, demand], [nothing, demand, demand])


@dataclass(frozen=True)
class Child:
    """``scale`` None: it is never offered anything. Else it is offered (fit - shift) / scale, between 0 and 1."""

    function: Function
    scale: Fraction | None
    shift: Fraction = ZERO

    def offered(self, fit: Fraction) -> Fraction:
        """Of the pool's fit factor."""
        return ZERO if self.scale is None else min(max((fit - self.shift) / self.scale, ZERO), ONE)


def together(children: Sequence[Child], end: Fraction, width: int) -> Function:
    """What the children of a pool take over its fit factor."""
    places = {ZERO, end}
    for child in children:
        if child.scale is not None:
            places |= {child.shift + child.scale * x for x in (*child.function.places, ONE)}
    return traced(
        lambda fit: plus((child.function.at(child.offered(fit)) for child in children), width),
        (x for x in places if 0 <= x <= end),
    )
