"""What a gang held while it made progress, where tasks came and went meanwhile. Lengths in microseconds."""

from app.simulations.core.amounts import Amounts

Areas = dict[str, int]
"""Steps times microseconds, by resource."""


class Holding:
    """One run of a gang: what its tasks held since when. It begins anew with each start of the gang's clock."""

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        self._levels: list[tuple[int, Amounts]] = []

    def begin(self) -> None:
        """The clock starts."""
        self._levels = []

    def level(self, now: int, amounts: Amounts) -> None:
        """So much is held from now on."""
        self._levels.append((now, amounts))

    def split(self, now: int, spent: tuple[int, int, int]) -> tuple[Areas, Areas, Areas]:
        """What was held up to now while progress was made and kept, while what is thrown away was made, and while
        checkpoints were taken. ``spent``: how long each took. What is thrown away is the end of the run; of the rest
        checkpoints have their part by time."""
        made, lost, overhead = spent
        kept, thrown = Areas(), Areas()
        cut = now - lost
        ends = [since for since, _ in self._levels[1:]] + [now]
        for (since, amounts), until in zip(self._levels, ends, strict=True):
            before, after = max(0, min(until, cut) - since), max(0, until - max(since, cut))
            for resource, amount in amounts.items():
                kept[resource] = kept.get(resource, 0) + amount * before
                thrown[resource] = thrown.get(resource, 0) + amount * after
        share = {resource: area * overhead // max(1, made + overhead) for resource, area in kept.items()}
        done = {resource: area - share[resource] for resource, area in kept.items()}
        return done, thrown, share
