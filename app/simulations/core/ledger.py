"""The accounts of all queues, and of all of them together."""

from collections.abc import Mapping

from app.simulations.core.account import Account
from app.simulations.core.amounts import Amounts
from app.simulations.core.life import Life
from app.simulations.schemas import Totals


class Ledger:
    """``parents``: the queue above each queue; ``guarantees`` by queue, with all below it; ``capacity``: of all."""

    def __init__(
        self, now: int, parents: Mapping[str, str | None], guarantees: Mapping[str, Amounts], capacity: Amounts
    ) -> None:
        self.total = Account(now, capacity)
        self._queues: dict[str, Account] = {}
        self._chains: dict[str, list[Account]] = {}
        self._parents: Mapping[str, str | None] = {}
        self.entitle(now, parents, guarantees, capacity)

    def entitle(
        self, now: int, parents: Mapping[str, str | None], guarantees: Mapping[str, Amounts], capacity: Amounts
    ) -> None:
        """Another configuration is in force from now on. A job's account are its queue's and those above, as they were
        when it arrived there: a queue that moves takes what it holds along."""
        self.total.entitle(now, capacity)
        for name in {**self._queues, **parents}:
            guarantee = guarantees.get(name, {})
            if name not in self._queues:
                self._queues[name] = Account(now, guarantee)
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

    def submitted(self, now: int, life: Life) -> None:
        """A job waits for the first time."""
        for account in self.chain(life.ask.queue):
            account.jobs += 1
            account.want(now, life.amounts, 1)

    def waits(self, now: int, life: Life) -> None:
        """A job waits again."""
        for account in self.chain(life.ask.queue):
            account.want(now, life.amounts, 1)

    def gives_up(self, now: int, life: Life) -> None:
        """A job waits no longer, without having started."""
        for account in self.chain(life.ask.queue):
            account.want(now, life.amounts, -1)

    def starts(self, now: int, life: Life, wanted: Amounts) -> None:
        """A job that waited for ``wanted`` runs, and holds its amounts."""
        first = life.run == 1
        for account in self.chain(life.ask.queue):
            account.want(now, wanted, -1)
            account.hold(now, life.amounts, 1)
            if first:
                account.started(now - life.submitted)

    def releases(self, now: int, life: Life) -> None:
        """What a job held is free again."""
        for account in self.chain(life.ask.queue):
            account.hold(now, life.amounts, -1)

    def close(self, now: int) -> None:
        """The run ends: bring every account to this instant."""
        self.total.advance(now)
        for account in self._queues.values():
            account.advance(now)

    def totals(self) -> dict[str, Totals]:
        """By queue, in order of name; queues that no job ever named, nor named below them, are left out."""
        return {name: account.totals() for name, account in sorted(self._queues.items()) if account.jobs}
