"""How many examples a property is tried on: ``PROPERTIES`` is ``quick``, ``ci`` (what it is without) or ``nightly``."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeVar, cast

import pytest
from hypothesis import HealthCheck, settings

Profile = Literal["quick", "ci", "nightly"]
PROFILE = cast(Profile, os.environ.get("PROPERTIES", "ci"))
_OF_HUNDRED: dict[Profile, int] = {"quick": 10, "ci": 100, "nightly": 500}
"""Of a hundred examples that CI tries."""
_FEWEST = 5
settings.register_profile(
    "arbiter", deadline=None, database=None, derandomize=PROFILE != "nightly",
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.load_profile("arbiter")  # of every property, with settings of its own or without: no clock fails a test


def share(most: int) -> int:
    """Of so many inputs, recorded or of a fixed seed, that CI tries, those of this profile: at night those of CI."""
    return max(min(most, _FEWEST), most * min(_OF_HUNDRED[PROFILE], 100) // 100)


def examples(most: int, parent: settings | None = None, **more: Any) -> settings:
    """Settings of a property that CI tries on ``most`` examples, the same ones in every run but at night, when they are
    those of pytest's ``--hypothesis-seed``. Nothing is kept between runs, and no example is too slow."""
    count = max(min(most, _FEWEST), most * _OF_HUNDRED[PROFILE] // 100)
    own = {"derandomize": PROFILE != "nightly", "deadline": None, "database": None, "max_examples": count}
    return settings(parent, **(own | more)) if parent is not None else settings(**(own | more))


T = TypeVar("T")


class Met:
    """What the examples of each property had of what it is about: one that met none in all of them has said nothing.
    The few of the quick profile may."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(self, what: Iterable[T]) -> list[T]:
        """All of ``what``, counted for the test that runs."""
        things = list(what)
        self.counts[os.environ["PYTEST_CURRENT_TEST"].partition(" ")[0]] += len(things)
        return things


@pytest.fixture(scope="module")
def met() -> Iterator[Met]:
    of = Met()
    yield of
    idle = [test for test, count in of.counts.items() if not count and PROFILE != "quick"]
    assert idle == [], "met nothing of what they are about"
