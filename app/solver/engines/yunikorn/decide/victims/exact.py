"""The exact search on one node: the smallest lawful set that makes room."""

from collections.abc import Sequence

from app.solver.engines.yunikorn.decide.needs import Needs
from app.solver.engines.yunikorn.decide.victims.laws import Allowance
from app.solver.stopping import safe_point


class SmallestSet:
    """Sets by size, and of one size in the order of taking. ``steps``: how many more tasks may be tried."""

    def __init__(self, allowance: Allowance, needs: Needs, order: Sequence[int], steps: int) -> None:
        self.steps = steps
        self._allowance = allowance
        self._order = order
        self._missing = [need.amount for need in needs.of]
        self._helps = [needs.help_of(task) for task in order]
        rest = [[0] * len(needs.of)]
        for help_ in reversed(self._helps):
            rest.append([a + b for a, b in zip(rest[-1], help_, strict=True)])
        self._rest = rest[::-1]
        """By place in the order: what everybody from there on gives."""

    def find(self) -> list[int] | None:
        """The first set that covers everything missing; None when there is none, or the steps ran out."""
        for size, _ in enumerate(self._order, 1):
            chosen: list[int] = []
            if self._pick(0, size, self._missing, chosen):
                return chosen
        return None

    def _pick(self, start: int, size: int, missing: Sequence[int], chosen: list[int]) -> bool:
        """Extend ``chosen`` by ``size`` lawful tasks from ``start`` on that cover ``missing``."""
        if size == 0:
            return all(lack <= 0 for lack in missing)
        for i in range(start, len(self._order) - size + 1):
            safe_point()
            if self.steps == 0 or any(lack > left for lack, left in zip(missing, self._rest[i], strict=True)):
                return False
            self.steps -= 1
            task = self._order[i]
            if not self._allowance.lets(task):
                continue
            self._allowance.take(task)
            chosen.append(task)
            left = [lack - help_ for lack, help_ in zip(missing, self._helps[i], strict=True)]
            done = self._pick(i + 1, size - 1, left, chosen)
            self._allowance.give_back(task)
            if done:
                return True
            chosen.pop()
        return False
