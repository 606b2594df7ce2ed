"""Which of two flavors Kueue prefers, and when it stops looking."""

from itertools import product

import pytest

from app.solver.engines.kueue.nomination import BEST, WORST, Fit, Mode, Suit, mode_of, preferred, stops_search
from app.solver.model.kueue import FlavorFungibility

BORROW = FlavorFungibility(preference="BorrowingOverPreemption")
PREEMPT = FlavorFungibility(preference="PreemptionOverBorrowing")
SUITS = [Suit(fit, level) for fit, level in product(Fit, (0, 1, 3))]


@pytest.mark.parametrize("rules", [FlavorFungibility(), BORROW, PREEMPT])
def test_a_preference_is_a_strict_weak_order(rules: FlavorFungibility) -> None:
    for a, b, c in product(SUITS, repeat=3):
        assert not (preferred(a, b, rules) and preferred(b, a, rules))
        if preferred(a, b, rules) and preferred(b, c, rules):
            assert preferred(a, c, rules)


def test_fit_goes_before_level_unless_borrowing_is_to_be_avoided() -> None:
    far, near = Suit(Fit.FIT, 2), Suit(Fit.PREEMPT, 0)
    assert preferred(far, near, BORROW)
    assert preferred(far, near, FlavorFungibility())
    assert preferred(near, far, PREEMPT)


def test_without_candidates_is_below_anything_that_could_be_had() -> None:
    hopeless = Suit(Fit.NO_CANDIDATES, 0)
    for rules in (BORROW, PREEMPT):
        assert preferred(Suit(Fit.PREEMPT, 9), hopeless, rules)
        assert preferred(hopeless, WORST, rules)


def test_the_extremes() -> None:
    for suit in SUITS:
        assert not preferred(suit, BEST, BORROW)
        assert not preferred(WORST, suit, BORROW)


@pytest.mark.parametrize(
    ("suit", "borrow", "preempt", "stops"),
    [
        (Suit(Fit.FIT, 0), "TryNextFlavor", "TryNextFlavor", True),
        (Suit(Fit.FIT, 1), "TryNextFlavor", "TryNextFlavor", False),
        (Suit(Fit.FIT, 1), "MayStopSearch", "TryNextFlavor", True),
        (Suit(Fit.RECLAIM, 0), "TryNextFlavor", "TryNextFlavor", False),
        (Suit(Fit.RECLAIM, 0), "TryNextFlavor", "MayStopSearch", True),
        (Suit(Fit.PREEMPT, 1), "TryNextFlavor", "MayStopSearch", False),
        (Suit(Fit.NO_CANDIDATES, 0), "MayStopSearch", "MayStopSearch", False),
        (Suit(Fit.NO_FIT, 0), "MayStopSearch", "MayStopSearch", False),
    ],
)
def test_when_the_search_stops(suit: Suit, borrow: str, preempt: str, stops: bool) -> None:
    rules = FlavorFungibility(when_can_borrow=borrow, when_can_preempt=preempt)  # type: ignore[arg-type]
    assert stops_search(suit, rules) is stops


def test_from_outside_a_flavor_without_candidates_still_needs_preemption() -> None:
    assert [mode_of(fit) for fit in Fit] == [Mode.NO_FIT, Mode.PREEMPT, Mode.PREEMPT, Mode.PREEMPT, Mode.FIT]
