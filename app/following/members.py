"""The pods of one group, kept in the orders that a translation of the group asks for."""

from bisect import bisect_left, insort
from dataclasses import dataclass, field

from app.following.mirror import Key
from app.formats.pods import SinglePod
from app.formats.yunikorn.pods import age


@dataclass(slots=True)
class Members:
    """``keys``: as a list has them; ``ages``: the oldest first; ``loose``: how many don't name the group themselves."""

    keys: list[Key] = field(default_factory=list[Key])
    ages: list[tuple[tuple[bool, float], Key]] = field(default_factory=list[tuple[tuple[bool, float], Key]])
    loose: int = 0

    def add(self, key: Key, pod: SinglePod, *, loose: bool) -> None:
        """One more."""
        insort(self.keys, key)
        insort(self.ages, (age(pod), key))
        self.loose += loose

    def drop(self, key: Key, pod: SinglePod, *, loose: bool) -> None:
        """One that is among them is no more."""
        del self.keys[bisect_left(self.keys, key)]
        del self.ages[bisect_left(self.ages, (age(pod), key))]
        self.loose -= loose

    def leading(self) -> set[Key]:
        """On which what is said of the whole group hangs: the first, the oldest, and the oldest that has an age."""
        dated = bisect_left(self.ages, ((True, float("-inf")), ("", "")))
        return {self.keys[0], self.ages[0][1], *(key for _, key in self.ages[dated : dated + 1])}
