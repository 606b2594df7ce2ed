"""The decision page: who stops, by which rule, what was spared, and what would let a waiting ask in."""

import pytest

from tests.console.conftest import NARROW, Site, Visiting


@pytest.mark.parametrize(
    "name", ["kueue-classic", "kai-reclaim", "yunikorn-guarantee", "ytsaurus-starvation", "waiting", "hostile", "many"]
)
def test_look(visit: Visiting, site: Site, name: str) -> None:
    with visit("admin") as somebody:
        somebody.go(f"/decisions/{site.decisions[name]}")
        somebody.picture(f"decision-{name}")
    if name in ("kueue-classic", "hostile"):
        with visit("read", width=NARROW, dark=True) as somebody:
            somebody.go(f"/decisions/{site.decisions[name]}")
            somebody.picture(f"decision-{name}-narrow-dark")
