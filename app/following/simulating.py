"""A recording of Kueue as a simulation: what was asked for, when, for how long it ran, and what changed of the quotas.

`arbiter simulate` runs it as it is, or with other quotas, another engine or another release.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import structs

from app.following.mirror import View
from app.following.objects import Item, Key, condition, instant, key_of, part
from app.following.replaying import Replay
from app.following.translating import translate
from app.solver.model.configuration import Configuration

_CONFIGURED = ("ClusterQueue", "Cohort", "ResourceFlavor", "LocalQueue", "ConfigMap", "AdmissionCheck")
_LEAST_SECONDS = 1.0


@dataclass(slots=True)
class _Life:
    """``asked``: as it was first seen, without what became of it; ``ran``: seconds of its last run; None: none yet."""

    key: Key
    asked: Item
    submitted: datetime
    began: datetime | None = None
    ran: float | None = None
    ended: datetime | None = None
    finished: bool = False


class Recorded:
    """What is told of a recording. ``left_out``: Workloads that are no jobs of the simulation, by why."""

    def __init__(self) -> None:
        self._replay = Replay("kueue")
        self._lives: dict[str, _Life] = {}
        self._settings: list[tuple[datetime, Configuration]] = []
        self.left_out: Counter[str] = Counter()

    def simulation(self, said: Iterator[dict[str, Any]]) -> dict[str, Any]:
        """The body of ``POST /v1/simulations``, of all its lines. Raises BadRequest, and LookupError where there is no
        Workload in it."""
        dirty = True
        for line in said:
            self._replay.hear(line)
            item = part(line, "object")
            kind = line.get("kind") or item.get("kind")
            dirty = dirty or (kind in _CONFIGURED and line.get("type") in ("ADDED", "MODIFIED", "DELETED"))
            if kind == "Workload" and line.get("type") in ("ITEM", "ADDED", "MODIFIED", "DELETED"):
                if dirty:
                    self._configured()
                    dirty = False
                self._heard(item, gone=line["type"] == "DELETED")
        if not self._settings:
            raise LookupError("no Workload is in the recording")
        first, *changes = self._settings
        jobs = sorted(self._jobs(), key=lambda job: (job["submitted_at"], job["ask"].id))
        later = [{"at": at.isoformat(), "configuration": made} for at, made in changes]
        return {"engine": "kueue", "configuration": first[1], "trace": {"jobs": jobs, "changes": later}}

    def _items(self) -> dict[str, dict[Key, Item]]:
        return {of.kind.name: of.items for of in self._replay.mirror.kinds() if of.kind.state}

    def _configured(self) -> None:
        """What the configuration is now, where it is another than before."""
        made = translate("kueue", View({**self._items(), "Workload": {}}, {}, None, None)).configuration
        if not self._settings or self._settings[-1][1] != made:
            self._settings.append((self._replay.now(), made))

    def _heard(self, item: Item, *, gone: bool) -> None:
        metadata, now = part(item, "metadata"), self._replay.now()
        uid = str(metadata.get("uid") or "/".join(key_of(item)))
        life = self._lives.get(uid)
        if life is None:
            asked = {name: value for name, value in item.items() if name != "status"}
            life = self._lives[uid] = _Life(key_of(item), asked, instant(metadata.get("creationTimestamp")) or now)
        reserved, finished = condition(item, "QuotaReserved"), condition(item, "Finished")
        if reserved is None:
            life.began = None
        elif life.began is None:
            life.began = instant(reserved.get("lastTransitionTime")) or now
        if finished is not None and not life.finished:
            life.finished, life.ended = True, instant(finished.get("lastTransitionTime")) or now
            life.ran = None if life.began is None else (life.ended - life.began).total_seconds()
        elif gone and not life.finished:
            life.ended = now

    def _jobs(self) -> Iterator[dict[str, Any]]:
        """Those that ran: how long others would have is not known."""
        names = Counter[Key]()
        for life in self._lives.values():
            ran = life.ran
            if ran is None and life.began is not None:
                ran = ((life.ended or self._replay.now()) - life.began).total_seconds()
                self.left_out["ran on, or was deleted while it ran: as long as it was seen"] += 1
            if ran is None:
                self.left_out["never ran to an end: left out"] += 1
                continue
            view = View({**self._items(), "Workload": {life.key: life.asked}}, {}, None, None)
            ask = next(iter(translate("kueue", view).asks.values()), None)
            if ask is None:
                self.left_out["in no queue: left out"] += 1
                continue
            names[life.key] += 1
            name = ask.id if names[life.key] == 1 else f"{ask.id}.{names[life.key]}"
            yield {
                "ask": structs.replace(ask, id=name), "submitted_at": life.submitted.isoformat(),
                "duration": max(ran, _LEAST_SECONDS),
            }  # fmt: skip
