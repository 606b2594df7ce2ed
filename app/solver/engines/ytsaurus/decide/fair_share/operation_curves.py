"""The curve of one operation in closed form: first up to its usage, then towards its demand."""

from dataclasses import dataclass

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Flags, Floats, Ints, any_of, least, most, quotients
from app.solver.engines.ytsaurus.decide.fair_share.curve_sums import TOLERANCE, Curves


@dataclass(frozen=True, slots=True)
class Demands:
    """What operations use and could use; shares, one row an operation."""

    usage: Floats
    demand: Floats
    limits: Floats

    @property
    def gap(self) -> Floats:
        """From usage to demand."""
        return self.demand - self.usage

    def take(self, rows: Ints) -> "Demands":
        """These rows only."""
        return Demands(self.usage[rows], self.demand[rows], self.limits[rows])

    def between(self, part: Floats) -> Floats:
        """The point ``part`` of the way from usage to demand; both ends exactly.

        The origin comes here by way of a fit factor between 1 and 2 (``InterpolateNormalized``, twice)."""
        each = (np.where(part < 0.5, 1.0 + part, 2.0 - (1.0 - part)) - 1.0)[:, None]
        return np.where(each < 0.5, self.usage + self.gap * each, self.demand - self.gap * (1 - each))


def _phases(of: Demands) -> tuple[Floats, Floats, Floats]:
    """Largest usage share, the limit that stops usage (inf: none), how far towards the demand limits let go."""
    usage, gap, limits = of.usage, of.gap, of.limits
    stop = least(np.where(limits < usage - TOLERANCE, limits, np.inf))
    reach = least(quotients(limits - usage, gap, gap > 0, 1.0))
    return most(usage), stop, np.clip(reach, 0.0, 1.0)


def operation_values(of: Demands, suggestion: Floats) -> Floats:
    """H of each operation at its suggestion.

    First up to the usage, equally in every resource; then towards the demand, in proportion, until some
    resource exhausts the suggestion or its limit.
    """
    usage, stop, reach = _phases(of)
    ramp = quotients(suggestion[:, None] - of.usage, of.gap, of.gap > 0, np.inf)
    part = np.minimum(least(ramp), reach)
    second = (suggestion > usage + TOLERANCE) & np.isinf(stop)
    within = np.minimum(of.usage, np.minimum(suggestion, stop)[:, None])
    return np.where(second[:, None], of.between(part), within)


def operation_curves(of: Demands) -> Curves:
    """H of every operation, all vertices."""
    n = len(of.usage)
    usage, stop, reach = _phases(of)
    positions: list[Floats] = [np.zeros(n)]
    values: list[Floats] = [np.zeros_like(of.usage)]
    for column in np.sort(of.usage, axis=1).T:
        position = np.minimum(column, stop)
        positions.append(position)
        values.append(np.minimum(of.usage, position[:, None]))
    _second_phase(of, usage, reach, np.isinf(stop), positions, values)
    position = np.stack(positions, axis=1)
    value = np.stack(values, axis=1)
    new = np.ones(position.shape, bool)
    new[:, 1:] = any_of(np.diff(value, axis=1) != 0)
    owner = np.broadcast_to(np.arange(n)[:, None], position.shape)
    return Curves(owner[new], position[new], value[new])


def _second_phase(
    of: Demands, used: Floats, reach: Floats, active: Flags, positions: list[Floats], values: list[Floats]
) -> None:
    """Append the vertices from usage to demand: the lower envelope of one ramp a resource, cut at ``reach``."""
    usage, gap = of.usage, of.gap
    everyone = np.arange(len(usage))
    ramp = quotients(used[:, None] - usage, gap, gap > 0, np.inf)
    lowest = least(ramp)
    # Of the ramps that are lowest together, the one that grows slowest stays lowest.
    line: Ints = np.argmax(np.where(ramp <= lowest[:, None] + TOLERANCE, gap, 0.0), axis=1)
    part = np.minimum(lowest, reach)
    here = used.copy()
    last_position, last_value = used, values[-1]
    alive = active
    while alive.any():  # at most once a resource and at the end: each line grows faster than the one before
        # A vertex needs what its largest share is: an operation has no guarantee.
        value = of.between(part)
        last_position = np.where(alive, np.maximum(most(value), last_position), last_position)
        last_value = np.where(alive[:, None], value, last_value)
        positions.append(last_position)
        values.append(last_value)
        alive = alive & (part < reach)
        own_usage, own_gap = usage[everyone, line], gap[everyone, line]
        slower = gap > own_gap[:, None]
        apart = own_usage[:, None] * gap - usage * own_gap[:, None]
        cross = np.maximum(quotients(apart, gap - own_gap[:, None], slower, np.inf), here[:, None])
        end = own_usage + reach * own_gap
        nearest = cross.argmin(axis=1)
        crossing = cross[everyone, nearest]
        ends = crossing >= end
        further = quotients(crossing - own_usage, own_gap, ~ends, 0.0)
        part = np.where(ends, reach, further)
        here = np.maximum(np.where(ends, end, crossing), here)
        line = np.where(ends, line, nearest)
