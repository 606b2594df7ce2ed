"""Where pods of one group go, written a second time from the rules alone, slow and plain: domains are label paths, and
what each holds is looked up by path. Nothing of the solver is used."""

from collections.abc import Callable
from dataclasses import dataclass, field

Path = tuple[str, ...]
Amounts = dict[str, int]
Assigned = dict[Path, int]


@dataclass
class Wish:
    """``level``, ``slice_level``: places among the levels; ``inner``: by level, in which multiples pods come there;
    ``leader``: what a leader takes, None without one."""

    pod: Amounts
    count: int
    level: int
    required: bool = False
    least_free: bool = False
    size: int = 1
    slice_level: int = -1
    inner: dict[int, int] = field(default_factory=dict[int, int])
    leader: Amounts | None = None


class _Misfit(Exception):
    pass


def placed(depth: int, free: dict[Path, Amounts], wish: Wish) -> tuple[Assigned, Assigned] | None:
    """Pods and leaders by leaf; ``free``: by leaf, ``depth`` label values each. None: they do not fit."""
    try:
        return _Placement(depth, free, wish).run()
    except _Misfit:
        return None


def _fits(pod: Amounts, left: Amounts) -> int:
    return min(max(0, left.get(name, 0)) // amount for name, amount in pod.items() if amount > 0)


class _Placement:
    def __init__(self, depth: int, free: dict[Path, Amounts], wish: Wish) -> None:
        self.depth, self.wish = depth, wish
        self.slice_level = depth - 1 if wish.slice_level < 0 else wish.slice_level
        self.domains = sorted({leaf[: n + 1] for leaf in free for n in range(depth)})
        self.pods: dict[Path, int] = {}
        self.pods_l: dict[Path, int] = {}
        self.slices: dict[Path, int] = {}
        self.slices_l: dict[Path, int] = {}
        self.leader: dict[Path, int] = {}
        for domain in sorted(self.domains, key=len, reverse=True):
            self._count(domain, free)

    def _below(self, domain: Path) -> list[Path]:
        return [of for of in self.domains if len(of) == len(domain) + 1 and of[:-1] == domain]

    def _count(self, domain: Path, free: dict[Path, Amounts]) -> None:
        wish, level = self.wish, len(domain) - 1
        if level == self.depth - 1:
            left = free[domain]
            self.pods[domain] = self.pods_l[domain] = _fits(wish.pod, left)
            self.leader[domain] = 0
            if wish.leader is not None and _fits(wish.leader, left) >= 1:
                self.leader[domain] = 1
                beside = {name: amount - wish.leader.get(name, 0) for name, amount in left.items()}
                self.pods_l[domain] = _fits(wish.pod, beside)
            self.slices[domain] = self.slices_l[domain] = 0
        else:
            below = self._below(domain)
            size = wish.inner.get(level + 1, 1)
            pods = {of: self.pods[of] // size * size for of in below}
            pods_l = {of: self.pods_l[of] // size * size for of in below}
            eligible = [of for of in below if wish.leader is None or self.leader[of] > 0]
            self.pods[domain], self.slices[domain] = sum(pods.values()), sum(self.slices[of] for of in below)
            self.leader[domain] = max((self.leader[of] for of in below), default=0)
            self.pods_l[domain] = self.slices_l[domain] = 0
            if eligible:
                self.pods_l[domain] = self.pods[domain] - min(pods[of] - pods_l[of] for of in eligible)
                least = min(self.slices[of] - self.slices_l[of] for of in eligible)
                self.slices_l[domain] = self.slices[domain] - least
        if level == self.slice_level:
            self.slices[domain] = self.pods[domain] // wish.size
            self.slices_l[domain] = self.pods_l[domain] // wish.size

    def _s(self, of: Path) -> tuple[int, int, Path]:
        return (1 if self.wish.least_free else -1) * self.slices[of], self.pods[of], of

    def _sl(self, of: Path) -> tuple[int, int, int, Path]:
        sign = 1 if self.wish.least_free else -1
        return -self.leader[of], sign * self.slices_l[of], self.pods_l[of], of

    def _best(self, of: list[Path], need: int, leaders: int, capacity: Callable[[Path], int]) -> Path:
        enough = [one for one in of if capacity(one) >= need and self.leader[one] >= leaders]
        return min(enough, key=lambda one: (capacity(one), of.index(one))) if enough else of[0]

    def _capacity(self, by_slices: bool, leaders: int) -> Callable[[Path], int]:
        table = (self.slices_l if leaders else self.slices) if by_slices else (self.pods_l if leaders else self.pods)
        return table.__getitem__

    def run(self) -> tuple[Assigned, Assigned]:
        wish = self.wish
        level, chosen = self._choose(wish.level, wish.count // wish.size, 0 if wish.leader is None else 1)
        leaders = 0 if wish.leader is None else 1
        chosen = self._minimise(chosen, wish.count, leaders, wish.size, by_slices=True)
        while level < self.slice_level:
            below = sorted((of for one in chosen for of in self._below(one)), key=self._s)
            chosen = self._minimise(below, wish.count, leaders, wish.size, by_slices=True)
            level += 1
        while level < self.depth - 1:
            size, found = wish.inner.get(level + 1, 1), list[Path]()
            for one in chosen:
                below = sorted(self._below(one), key=self._s)
                if size > 1:
                    for of in below:
                        self.slices[of], self.slices_l[of] = self.pods[of] // size, self.pods_l[of] // size
                found += self._minimise(below, self.pods[one], self.leader[one], size, by_slices=size > 1)
            chosen = found
            level += 1
        pods = {of: self.pods[of] for of in chosen if self.pods[of] > 0}
        return pods, {of: self.leader[of] for of in chosen if self.leader[of] > 0}

    def _choose(self, level: int, need: int, leaders: int) -> tuple[int, list[Path]]:
        best_fit, required = not self.wish.least_free, self.wish.required
        domains = sorted((of for of in self.domains if len(of) == level + 1), key=self._sl)
        if not domains:
            raise _Misfit

        def holds(of: Path) -> bool:
            return self.slices_l[of] >= need and self.leader[of] >= leaders

        top = domains[0]
        if best_fit and holds(top):
            top = self._best(domains, need, leaders, self._capacity(True, 1))
        if not best_fit:
            capacity = self._capacity(True, leaders)
            for of in domains:
                if capacity(of) >= need and self.leader[of] >= leaders:
                    return level, [of]
            if required:
                raise _Misfit
        if holds(top):
            return level, [top]
        if required:
            raise _Misfit
        if best_fit and level > 0:
            return self._choose(level - 1, need, leaders)
        domains = self._prioritise(domains, need, leaders, by_slices=True)
        taken, rest, at = list[Path](), need, 0
        while leaders > 0 and at < len(domains) and self.leader[domains[at]] > 0:
            of = domains[at]
            if best_fit and self.slices_l[of] >= rest:
                of = self._best(domains[at:], rest, leaders, self._capacity(True, leaders))
            taken.append(of)
            leaders, rest, at = leaders - self.leader[of], rest - self.slices_l[of], at + 1
        if leaders > 0:
            raise _Misfit
        others = sorted(domains[at:], key=self._s)
        for i, first in enumerate(others):
            if rest <= 0:
                break
            whole = best_fit and self.slices[first] >= rest
            of = self._best(others[i:], rest, 0, self._capacity(True, 0)) if whole else first
            taken.append(of)
            rest -= self.slices[of]
        if rest > 0:
            raise _Misfit
        return level, taken

    def _prioritise(self, domains: list[Path], need: int, leaders: int, *, by_slices: bool) -> list[Path]:
        if not leaders or len(domains) < 2:
            return domains
        alone, beside = self._capacity(by_slices, 0), self._capacity(by_slices, 1)
        total = sum(map(alone, domains))
        for of in domains:
            if self.leader[of] >= leaders and total - (alone(of) - beside(of)) >= need:
                return [of, *(one for one in domains if one != of)]
        return domains

    def _minimise(self, domains: list[Path], count: int, leaders: int, size: int, *, by_slices: bool) -> list[Path]:
        best_fit = not self.wish.least_free
        rest = count // size if by_slices else count
        domains = self._prioritise(domains, rest, leaders, by_slices=by_slices)
        taken = list[Path]()
        alone, beside = self._capacity(by_slices, 0), self._capacity(by_slices, 1)
        units = self.slices if by_slices else self.pods
        for i, first in enumerate(domains):
            of = first
            if leaders > 0:
                if best_fit and beside(of) >= rest and self.leader[of] >= leaders:
                    of = self._best(domains[i:], rest, leaders, beside)
                taken.append(of)
                if beside(of) >= rest and self.leader[of] >= leaders:
                    units[of], self.leader[of] = rest, leaders
                    self.pods[of] = rest * size if by_slices else rest
                    return taken
                gets, led = min(beside(of), rest), min(self.leader[of], leaders)
                (self.slices_l if by_slices else self.pods_l)[of] = gets
                units[of], self.leader[of] = gets, led
                leaders -= led
            else:
                self.leader[of] = 0
                if best_fit and alone(of) >= rest:
                    of = self._best(domains[i:], rest, 0, alone)
                    self.leader[of] = 0
                taken.append(of)
                gets = min(alone(of), rest)
                if alone(of) >= rest:
                    units[of] = rest
                    self.pods[of] = rest * size if by_slices else rest
                    return taken
                units[of] = gets
            self.pods[of] = gets * size if by_slices else gets
            rest -= gets
        return []
