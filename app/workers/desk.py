"""Every operation by name: the same table in a worker process and in a service without workers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from app.comparisons.answer import compare
from app.decisions.answer import Answered, Facts, Sources, answer, effective_settings, preemptibility, shares
from app.decisions.sources import Pinned, Used
from app.snapshots.keeper import Keeper, Resident
from app.snapshots.store import SnapshotStore

Plain = Callable[[bytes, datetime, Sources], bytes]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer's bytes; ``facts`` and ``seconds`` by stage where it is a decision."""

    body: bytes
    facts: Facts | None = None
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    def answered(self) -> Answered:
        """As the decision log takes it."""
        assert self.facts is not None
        return Answered(body=self.body, facts=self.facts, seconds=self.seconds)


class Desk:
    """One process's operations over its configurations and the snapshots it keeps."""

    def __init__(self, configurations: Sources, store: SnapshotStore) -> None:
        self.store = store
        self.sources = Resident(configurations, store)
        keeper = Keeper(store, self.sources)
        self._questions: dict[str, Plain] = {
            "comparisons": compare,
            "shares": shares,
            "preemptibility": preemptibility,
            "effective-settings": lambda body, _, sources: effective_settings(body, sources),
        }
        self._snapshots: dict[str, Callable[[str, bytes, datetime], bytes]] = {
            "snapshot-put": keeper.put,
            "snapshot-delta": keeper.delta,
            "snapshot-apply": keeper.apply,
            "snapshot-get": keeper.get,
            "snapshot-delete": keeper.delete,
            "snapshot-list": keeper.listing,
        }

    def run(self, kind: str, body: bytes, now: datetime, name: str = "", pinned: Used | None = None) -> Reply:
        """Run one operation. ``name``: of the snapshot, for the snapshot operations. ``pinned``: decide on the
        revision and generation of an earlier answer. Raises InvalidInput and the errors of ``app.errors``."""
        if kind == "decisions":
            answered = answer(body, now, self.sources if pinned is None else Pinned(self.sources, pinned))
            return Reply(answered.body, answered.facts, answered.seconds)
        if (question := self._questions.get(kind)) is not None:
            return Reply(question(body, now, self.sources))
        return Reply(self._snapshots[kind](name, body, now))
