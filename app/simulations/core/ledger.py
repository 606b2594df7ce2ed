"""The accounts of all queues, and of all of them together."""

from collections.abc import Mapping

from app.simulations.core.account import Account, Level
from app.simulations.core.amounts import Amounts
from app.simulations.core.holding import Areas
from app.simulations.schemas import Totals
from app.solver.stopping import safe_point


class Ledger:
    """``parents``: the queue above each queue; ``guarantees`` by queue, with all below it; ``capacity``: of all;
    ``level``: told what each queue holds, and all of them as the queue ``""``."""

    def __init__(
        self,
        now: int,
        parents: Mapping[str, str | None],
        guarantees: Mapping[str, Amounts],
        capacity: Amounts,
        level: Level | None = None,
    ) -> None:
        self.total = Account(now, capacity, "", level)
        self._level = level
        self._queues: dict[str, Account] = {}
        self._chains: dict[str, list[Account]] = {}
        self._parents: Mapping[str, str | None] = {}
        self.entitle(now, parents, guarantees, capacity)

    def entitle(
        self, now: int, parents: Mapping[str, str | None], guarantees: Mapping[str, Amounts], capacity: Amounts
    ) -> None:
        """Another configuration is in force from now on. Nothing may be held or waited for
        meanwhile: whoever calls takes all off before and puts it on again after, for queues may have moved."""
        self.total.entitle(now, capacity)
        for name in {**self._queues, **parents}:
            guarantee = guarantees.get(name, {})
            if name not in self._queues:
                self._queues[name] = Account(now, guarantee, name, self._level)
            else:
                self._queues[name].entitle(now, guarantee)
        self._parents, self._chains = parents, {}

    def chain(self, queue: str) -> list[Account]:
        """The account of a queue, those above it, and that of all."""
        found = self._chains.get(queue)
        if found is None:
            found = [self.total]
            above: str | None = queue
            while above is not None and above in self._queues:
                found.append(self._queues[above])
                above = self._parents.get(above)
            self._chains[queue] = found
        return found

    def want(self, now: int, queue: str, amounts: Amounts, sign: int) -> None:
        """``amounts`` are waited for from now on, or (``sign`` -1) no longer."""
        for account in self.chain(queue):
            account.want(now, amounts, sign)

    def hold(self, now: int, queue: str, amounts: Amounts, sign: int) -> None:
        """``amounts`` are held from now on, or (``sign`` -1) no longer."""
        for account in self.chain(queue):
            account.hold(now, amounts, sign)

    def ran(self, queue: str, amounts: Amounts, made: int, lost: int, overhead: int) -> None:
        """A run of something that held ``amounts`` is over, or is looked at."""
        for account in self.chain(queue):
            account.ran(amounts, made, lost, overhead)

    def spent(self, queue: str, done: Areas, lost: Areas, overhead: Areas) -> None:
        """The same of a gang, whose tasks came and went: areas of what it held."""
        for account in self.chain(queue):
            account.ran(done, 1, 0, 0)
            account.ran(lost, 0, 1, 0)
            account.ran(overhead, 0, 0, 1)

    def close(self, now: int) -> None:
        """The run ends: bring every account to this instant."""
        self.total.advance(now)
        for account in self._queues.values():
            account.advance(now)

    def totals(self) -> dict[str, Totals]:
        """By queue, in order of name; queues that no job ever named, nor named below them, are left out."""
        found: dict[str, Totals] = {}
        for name, account in sorted(self._queues.items()):
            safe_point()
            if account.jobs:
                found[name] = account.totals()
        return found
