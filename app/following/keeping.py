"""What is stored at Arbiter of a cluster: its configuration and its snapshot, brought up to what was translated."""

import random
import time
from collections import Counter
from http import HTTPStatus
from typing import Any

import msgspec

from app.answering.snapshot_bodies import SnapshotRequest, SnapshotStatus
from app.following.arbiter import Arbiter, Refused
from app.following.differing import delta, told
from app.following.translating import Translated
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding
from app.solver.model.state import State

_STALE = "stale_generation"
_FIRST, _LONGEST = 10.0, 300.0
"""Seconds for which a snapshot is left to whoever else writes it: the second time, and at most."""
_CALM = 900.0
"""Seconds after which a loss counts as the first again."""


class NotYet(Exception):
    """The configuration is another follower's to write, and it has not yet; or there is none that is valid."""


class _Stored(msgspec.Struct, frozen=True):
    configuration: Configuration


class Keeper:
    """Keeps one configuration and one snapshot. ``puts`` counts snapshots put whole, by reason."""

    def __init__(self, arbiter: Arbiter, configuration: str, snapshot: str) -> None:
        self._arbiter = arbiter
        self._configuration = configuration
        self._snapshot = snapshot
        self._settled: Configuration | None = None
        self._kept: Configuration | None = None
        self._last: Translated | None = None
        self._why = "start"  # the snapshot is to be put whole, while nothing is known to be there
        self._losses, self._lost_at, self._left_until = 0, 0.0, 0.0
        self.status: SnapshotStatus | None = None
        self.refused: list[Finding] = []
        self.puts: Counter[str] = Counter()

    def keep(self, found: Translated, versions: dict[str, str], *, writer: bool) -> None:
        """Bring both up to ``found``. Raises NotYet, Away, Refused; then it can be done again."""
        reason = self._configure(found.configuration, writer=writer)
        if self.refused:
            found = self._within(found)
        if self._last is None or self.status is None or reason is not None:
            self._put(found, versions, reason or self._why)
            return
        change = delta(self._last, found, self.status.generation, versions)
        try:
            self._take(self._arbiter.ask("POST", "snapshots", self._snapshot, "deltas", body=change).body, found)
        except Refused as refused:
            if refused.code == _STALE:
                self._lost()
                if (left := self.left()) is not None:
                    raise NotYet(left) from None
            lost = refused.status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
            self._put(found, versions, refused.code if lost and refused.code else "refused")

    def left(self) -> str | None:
        """Why the snapshot is left to somebody else for now; None: it is this follower's to write."""
        if time.monotonic() >= self._left_until:
            return None
        return (
            f"snapshot {self._snapshot!r} is written by somebody else too, and is left to them for a while: "
            "one follower is enough for a snapshot of one replica"
        )

    def _lost(self) -> None:
        """Somebody else has written the snapshot. It is taken back at once the first time, since an administrator or a
        follower that ends may have been it, and later after ever longer."""
        now = time.monotonic()
        self._losses = 1 if now - self._lost_at > _CALM else self._losses + 1
        self._lost_at, self._last, self._why = now, None, _STALE
        if self._losses > 1:
            longest = min(_LONGEST, _FIRST * 2.0 ** min(self._losses - 2, 10))
            self._left_until = now + random.uniform(longest / 2, longest)

    def check(self) -> bool:
        """Whether the snapshot is still what was written last; it is in use as long as it is asked for. Raises Away."""
        if self.status is None or self._last is None:
            return True
        try:
            found = msgspec.json.decode(self._arbiter.ask("GET", "snapshots", self._snapshot).body, type=SnapshotStatus)
        except Refused as refused:
            self._why, self._last = refused.code or "refused", None
            return False
        if found.generation == self.status.generation:
            return True
        self._lost()
        return False

    def _configure(self, wanted: Configuration, *, writer: bool) -> str | None:
        """Have ``wanted`` stored; why the snapshot must be put whole because of that, None where it need not."""
        if self._settled == wanted:
            return None
        stored, etag = self._stored()
        if stored is None or not _same(stored.configuration, wanted):
            if not writer:
                raise NotYet("the configuration is written by another follower, which has not yet")
            self._write(stored, etag, wanted)
        else:
            self._kept, self.refused = stored.configuration, []
        self._settled = wanted
        return "configuration"

    def _stored(self) -> tuple[_Stored | None, str | None]:
        try:
            reply = self._arbiter.ask("GET", "configurations", self._configuration)
        except Refused as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                return None, None
            raise
        return msgspec.json.decode(reply.body, type=_Stored), reply.etag

    def _write(self, stored: _Stored | None, etag: str | None, wanted: Configuration) -> None:
        """A new revision; where it is refused, the last good one stays. Raises NotYet where there is none."""
        before = None if stored is None else stored.configuration
        document = wanted if before is None else msgspec.structs.replace(wanted, settings=before.settings)
        comment = told(before, document).encode().decode("latin-1")
        headers = {"X-Comment": comment, **({"If-Match": etag} if etag else {"If-None-Match": "*"})}
        try:
            self._arbiter.ask("PUT", "configurations", self._configuration, body=document, headers=headers)
        except Refused as refused:
            if refused.status == HTTPStatus.PRECONDITION_FAILED:
                raise NotYet("somebody else has just written the configuration") from None
            if refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            self.refused = [Finding(rule="refused", severity="error", pointer="/configuration", detail=str(refused))]
            if before is None:
                raise NotYet(str(refused)) from None
            self._kept = before
        else:
            self._kept, self.refused = document, []

    def _put(self, found: Translated, versions: dict[str, str], reason: str) -> None:
        state = State(nodes=list(found.nodes.values()), workloads=list(found.workloads.values()))
        request = SnapshotRequest(
            engine=found.configuration.engine, configuration=self._configuration, state=state,
            asks=list(found.asks.values()), resource_versions=versions,
        )  # fmt: skip
        self._last, self._why = None, reason
        body = self._arbiter.ask("PUT", "snapshots", self._snapshot, body=request).body
        self.puts[reason] += 1
        self._take(body, found)

    def _take(self, body: bytes, found: Translated) -> None:
        self.status = msgspec.json.decode(body, type=SnapshotStatus)
        self._last = found

    def _within(self, found: Translated) -> Translated:
        """What of ``found`` the last good configuration has a queue for."""
        queues = {queue.name for queue in self._kept.queues} if self._kept is not None else set[str]()
        fields: dict[str, Any] = {name: getattr(found, name) for name in found.__dataclass_fields__}
        for name in ("workloads", "asks"):
            fields[name] = {key: one for key, one in fields[name].items() if one.queue in queues}
        return Translated(**fields)


def _same(stored: Configuration, wanted: Configuration) -> bool:
    """Whether they say the same of the cluster. Settings of the engine are the operator's: no object holds them."""
    return msgspec.structs.replace(wanted, settings=stored.settings) == stored
