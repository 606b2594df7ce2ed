"""How well a flavor suits a request, and which of two flavors Kueue prefers.

A ``Suit`` ranks a flavor for one resource, and the worst over the resources of a group ranks the flavor. The worst
is taken with the same preference as the best of flavors (Kueue: isPreferred), which has a surprising side: with
PreemptionOverBorrowing a resource that fits at a higher level is worse than one that needs preemption at a lower
level, so a flavor can count as fitting although one of its resources does not.
"""

from enum import IntEnum
from typing import NamedTuple

from app.solver.model.kueue import FlavorFungibility


class Fit(IntEnum):
    """Ascending by preference. NO_CANDIDATES: quota would allow it, but the simulated preemption found nobody."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4


class Mode(IntEnum):
    """What an assignment comes to, for the outside."""

    NO_FIT = 0
    PREEMPT = 1
    FIT = 2


class Suit(NamedTuple):
    """``level``: how far up quota comes from (0: the queue itself)."""

    fit: Fit
    level: int


WORST = Suit(Fit.NO_FIT, 2**31)
BEST = Suit(Fit.FIT, 0)
DEFAULT_FUNGIBILITY = FlavorFungibility()


def mode_of(fit: Fit) -> Mode:
    """The outside view of one resource."""
    if fit is Fit.NO_FIT:
        return Mode.NO_FIT
    return Mode.FIT if fit is Fit.FIT else Mode.PREEMPT


def preferred(a: Suit, b: Suit, rules: FlavorFungibility) -> bool:
    """Whether ``a`` is strictly better than ``b``."""
    if a.fit is Fit.NO_FIT or b.fit is Fit.NO_FIT:
        return a.fit is not Fit.NO_FIT
    if (a.fit is Fit.NO_CANDIDATES) != (b.fit is Fit.NO_CANDIDATES):
        return b.fit is Fit.NO_CANDIDATES
    if rules.preference == "PreemptionOverBorrowing":
        return (-a.level, a.fit) > (-b.level, b.fit)
    return (a.fit, -a.level) > (b.fit, -b.level)


def stops_search(suit: Suit, rules: FlavorFungibility) -> bool:
    """Whether no later flavor is looked at (Kueue: shouldTryNextFlavor, negated)."""
    if suit.fit <= Fit.NO_CANDIDATES:
        return False
    if suit.fit in (Fit.PREEMPT, Fit.RECLAIM) and rules.when_can_preempt == "TryNextFlavor":
        return False
    return suit.level == 0 or rules.when_can_borrow != "TryNextFlavor"
