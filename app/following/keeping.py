"""What is stored at Arbiter of a cluster: its configuration and its snapshot, brought up to what was translated.

With Arbiter's interface, and what changed between two translations: as a delta, and in a sentence.
"""

import dataclasses
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec
import urllib3
from msgspec.structs import replace
from urllib3.exceptions import HTTPError

from app.answering.snapshots import SnapshotRequest, SnapshotStatus
from app.clusters.schemas import QueueUse, UseReport
from app.following.grouped import Translated, settled
from app.formats.objects import id_of, key_of
from app.solver.engine import facts_of
from app.solver.model import base
from app.solver.model.configuration import Configuration
from app.solver.model.kueue import QueueState as LocalQueueState
from app.solver.model.problems import MOST_CARRIED, Finding, few
from app.solver.model.state import (
    OVER,
    AskChanges,
    Delta,
    NodeChanges,
    QueueState,
    Reservation,
    ReservationChanges,
    ReservationName,
    Task,
    TaskChanges,
    TaskName,
    TaskOf,
    Workload,
    WorkloadChanges,
)

_CONNECT, _ANSWER = 5.0, 120.0
_SHOWN = 5


class ApiUnavailable(Exception):
    """The service can't be reached, or can't answer now."""


class ApiError(Exception):
    """The service does not do it. ``status``, ``code``: of the problem; the text says what is wrong; ``errors``: what
    of the body, by pointer."""

    def __init__(self, status: int, code: str, text: str, errors: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.errors = errors or {}


class Reply(NamedTuple):
    """A body, and the entity tag that came with it."""

    body: bytes
    etag: str | None


class Arbiter:
    """Arbiter's own interface, as the follower uses it: one connection that is kept, JSON both ways. The service is at
    ``url``; ``token`` goes along as a bearer token."""

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url.rstrip("/") + "/v1"
        self._headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._pool = urllib3.PoolManager(maxsize=2, retries=False)

    def ask(self, method: str, *path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        """``path``: segments below ``/v1``. Raises ApiUnavailable, ApiError."""
        address = "/".join([self._url, *(quote(part, safe="") for part in path)])
        content = None if body is None else msgspec.json.encode(body)
        try:
            answer = self._pool.request(
                method, address, body=content, headers=self._headers | (headers or {}),
                timeout=urllib3.Timeout(connect=_CONNECT, read=_ANSWER),
            )  # fmt: skip
        except HTTPError as error:
            raise ApiUnavailable(f"{self._url}: {error}") from None
        if answer.status < 300:
            return Reply(answer.data, answer.headers.get("ETag"))
        problem = _problem(answer.data)
        text = f"{method} {address}: {answer.status} {problem.get('detail') or problem.get('title') or ''}"
        errors: list[dict[str, Any]] = problem.get("errors") or []
        for error in errors[:_SHOWN]:
            text += f"; {error.get('pointer')}: {error.get('detail')}"
        if answer.status >= 500 or answer.status == 429:
            raise ApiUnavailable(text)
        said = {str(error.get("pointer")): str(error.get("detail")) for error in errors}
        raise ApiError(answer.status, str(problem.get("code") or ""), text[:1900], said)


def _problem(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}


T = TypeVar("T")
Cell = tuple[str, str]
"""A flavor, empty where there is none, and a resource. Amounts of it are in steps."""
_NOTHING_CONSUMED = QueueState(kueue=LocalQueueState())
_NAMED = 5


def delta(old: Translated, new: Translated, generation: int, versions: dict[str, str]) -> Delta:
    """From ``old``, which is what the snapshot has at ``generation``, to ``new``."""
    nodes = _changes(old.nodes, new.nodes)
    workloads = _changes(old.workloads, new.workloads)
    asks = _changes(old.asks, new.asks)
    tasks, whole = _tasks(old.workloads, workloads[1])
    return Delta(
        generation=generation,
        nodes=NodeChanges(add=nodes[0], change=nodes[1], remove=nodes[2]),
        workloads=WorkloadChanges(add=workloads[0], change=whole, remove=workloads[2]),
        tasks=tasks,
        asks=AskChanges(add=asks[0], change=asks[1], remove=asks[2]),
        queues=_consumed(old.queues, new.queues),
        reservations=_reservations(old.reservations, new.reservations),
        disruption_budgets=None if old.budgets == new.budgets else new.budgets,
        findings=None if old.of_state == new.of_state else new.of_state,
        resource_versions=versions,
    )


def _reservations(old: Mapping[str, Reservation], new: Mapping[str, Reservation]) -> ReservationChanges:
    """A claim that is not what it was is given up, and made anew."""
    added, changed, removed = _changes(old, new)
    gone = [old[name] for name in (*removed, *(held.ask.id for held in changed))]
    return ReservationChanges(
        add=[*added, *changed], remove=[ReservationName(node=held.node, ask=held.ask.id) for held in gone]
    )


def _consumed(old: Mapping[str, QueueState], new: Mapping[str, QueueState]) -> dict[str, QueueState]:
    """What LocalQueues say anew; of one that is gone nothing is known."""
    gone = {name: _NOTHING_CONSUMED for name, of in old.items() if name not in new and of != _NOTHING_CONSUMED}
    return gone | {name: of for name, of in new.items() if old.get(name) != of}


def _changes(old: Mapping[str, T], new: Mapping[str, T]) -> tuple[list[T], list[T], list[str]]:
    """Added, changed, removed."""
    added = [item for name, item in new.items() if name not in old]
    changed = [item for name, item in new.items() if name in old and old[name] is not item and old[name] != item]
    return added, changed, [name for name in old if name not in new]


def _tasks(old: Mapping[str, Workload], changed: list[Workload]) -> tuple[TaskChanges, list[Workload]]:
    """Where nothing but a few of a workload's tasks changed, those; the workloads that are told whole."""
    add: list[TaskOf] = []
    change: list[TaskOf] = []
    remove: list[TaskName] = []
    whole: list[Workload] = []
    for new in changed:
        was = old[new.id]
        before, now = {task.name: task for task in was.tasks}, {task.name: task for task in new.tasks}
        added, altered, removed = _changes(before, now)
        # Tasks keep their places, and new ones come last: what that does not give is told whole.
        order = [name for name in before if name in now] + [task.name for task in added]
        few = 2 * (len(added) + len(altered) + len(removed)) < len(new.tasks) and len(now) == len(new.tasks)
        if few and order == list(now) and replace(was, tasks=new.tasks) == new:
            add += [TaskOf(workload=new.id, task=task) for task in added]
            change += [TaskOf(workload=new.id, task=task) for task in altered]
            remove += [TaskName(workload=new.id, task=name) for name in removed]
        else:
            whole.append(new)
    return TaskChanges(add=add, change=change, remove=remove), whole


def use_of(translated: Translated, moment: datetime) -> UseReport:
    """What each queue uses with all below it. Work whose eviction has begun counts as gone, as it does for engines."""
    held, waiting = defaultdict[str, Counter[Cell]](Counter), defaultdict[str, Counter[Cell]](Counter)
    for workload in translated.workloads.values():
        if not workload.evicted:
            _add(held[workload.queue], workload.tasks)
    for ask in translated.asks.values():
        _add(waiting[ask.queue], ask.tasks)
    parents = {queue.name: queue.parent for queue in translated.configuration.queues}
    total = _use(sum(held.values(), Counter[Cell]()), sum(waiting.values(), Counter[Cell]()))
    for of in (held, waiting):
        for name, amounts in [(name, Counter(direct)) for name, direct in of.items()]:
            above = parents.get(name)
            while above is not None:
                of[above].update(amounts)
                above = parents.get(above)
    each = {name: _use(held[name], waiting[name]) for name in sorted({*held, *waiting})}
    return UseReport(
        at=moment, total=total, queues={name: use for name, use in each.items() if use.usage or use.waiting}
    )


def _add(into: Counter[Cell], tasks: Iterable[Task]) -> None:
    for task in tasks:
        if task.state not in OVER:
            flavors = task.flavors or {}
            for resource, amount in task.requests.items():
                with suppress(base.QuantityError):  # not every engine reads every amount
                    steps = base.parse_quantity(amount, base.scale_of(resource))
                    into[flavors.get(resource, ""), resource] += steps * task.count


def _use(held: Counter[Cell], waiting: Counter[Cell]) -> QueueUse:
    usage = defaultdict[str, dict[str, float]](dict)
    for (flavor, resource), steps in sorted(held.items()):
        if steps:
            usage[flavor][resource] = base.units(steps, resource)
    wanted = Counter[str]()
    for (_, resource), steps in waiting.items():
        wanted[resource] += steps
    return QueueUse(
        usage=dict(usage), waiting={of: base.units(steps, of) for of, steps in sorted(wanted.items()) if steps}
    )


def change_summary(old: Configuration | None, new: Configuration) -> str:
    """What changed, for the comment of a revision."""
    if old is None:
        return f"followed from the cluster: {len(new.queues)} queues"
    said = [
        *_said("queue", {q.name: q for q in old.queues}, {q.name: q for q in new.queues}),
        *_said("flavor", {f.name: f for f in old.flavors}, {f.name: f for f in new.flavors}),
    ]
    before, after = _objects(old), _objects(new)
    for kind in sorted({*before, *after}):
        said += _said(kind, before.get(kind, {}), after.get(kind, {}))
    if old.settings != new.settings:
        said.append(_settings_said(old, new))
    same = replace(new, findings=old.findings) == old
    return "followed from the cluster: " + ("; ".join(said) or ("its findings" if same else "the order of queues"))


def _settings_said(old: Configuration, new: Configuration) -> str:
    before, now = (None if of.engine is None else facts_of(of.engine).release(of) for of in (old, new))
    return "settings changed" if before == now else f"release {before} became {now}"


def _objects(configuration: Configuration) -> dict[str, dict[str, Any]]:
    """The objects that it keeps whole, by kind and name."""
    kinds = defaultdict[str, dict[str, Any]](dict)
    for document in configuration.native.objects if configuration.native is not None else ():
        kinds[str(document.get("kind"))][id_of(key_of(document))] = document
    return kinds


def _said(kind: str, old: Mapping[str, T], new: Mapping[str, T]) -> list[str]:
    added, changed, removed = _changes({n: (n, v) for n, v in old.items()}, {n: (n, v) for n, v in new.items()})
    names = {"added": [n for n, _ in added], "changed": [n for n, _ in changed], "removed": removed}
    return [f"{kind} {few([name[:100] for name in of], _NAMED)} {word}" for word, of in names.items() if of]


_STALE = "stale_generation"
_REFUSED = "refused"
_LEAVABLE = ("workloads", "asks", "reservations")
_TRIES = 5
"""Puts in which something is left out: the service may name of many things at fault only some at once."""
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
        self._document: Configuration | None = None
        self._last: Translated | None = None
        self._why = "start"  # the snapshot is to be put whole, while nothing is known to be there
        self._losses, self._lost_at, self._left_until = 0, 0.0, 0.0
        self._left_out: dict[tuple[str, str], tuple[Any, Finding]] = {}
        self.status: SnapshotStatus | None = None
        self.refused: list[Finding] = []
        self.puts: Counter[str] = Counter()

    def keep(self, translated: Translated, versions: dict[str, str], *, writer: bool) -> None:
        """Bring both up to ``translated``. Raises NotYet, ApiUnavailable, ApiError; then it can be done again."""
        reason = self._configure(translated, writer=writer)
        if self.refused:
            translated = self._within(translated)
        if self._last is None or self.status is None or reason is not None:
            self._put(translated, versions, reason or self._why)
            return
        accepted = self._without_refused(translated)
        change = delta(self._last, accepted, self.status.generation, versions)
        try:
            self._take(self._arbiter.ask("POST", "snapshots", self._snapshot, "deltas", body=change).body, accepted)
        except ApiError as refused:
            if refused.code == _STALE:
                self._lost()
                if (left := self.left()) is not None:
                    raise NotYet(left) from None
            lost = refused.status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
            self._put(translated, versions, refused.code if lost and refused.code else "refused")

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
        """Whether the snapshot is still what was written last; it is in use as long as it is asked for. Raises
        ApiUnavailable."""
        if self.status is None or self._last is None:
            return True
        try:
            status = msgspec.json.decode(
                self._arbiter.ask("GET", "snapshots", self._snapshot).body, type=SnapshotStatus
            )
        except ApiError as refused:
            self._why, self._last = refused.code or "refused", None
            return False
        if status.generation == self.status.generation:
            return True
        self._lost()
        return False

    def _configure(self, translated: Translated, *, writer: bool) -> str | None:
        """Have its configuration stored; why the snapshot must be put whole because of that, None where it need not."""
        wanted = translated.configuration
        if self._settled == wanted:
            return None
        stored, etag = self._stored()
        before = None if stored is None else stored.configuration
        document = wanted if before is None else replace(wanted, settings=settled(before.settings, translated))
        if before is None or not _same(before, document, findings=writer):
            if not writer:
                raise NotYet("the configuration is written by another follower, which has not yet")
            self._write(before, etag, document)
        else:
            self._document, self.refused = before, []
        self._settled = wanted
        return "configuration"

    def _stored(self) -> tuple[_Stored | None, str | None]:
        try:
            reply = self._arbiter.ask("GET", "configurations", self._configuration)
        except ApiError as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                return None, None
            raise
        return msgspec.json.decode(reply.body, type=_Stored), reply.etag

    def _write(self, before: Configuration | None, etag: str | None, document: Configuration) -> None:
        """A new revision; where it is refused, the last good one stays. Raises NotYet where there is none."""
        comment = change_summary(before, document).encode().decode("latin-1")
        headers = {"X-Comment": comment, **({"If-Match": etag} if etag else {"If-None-Match": "*"})}
        refused = self._refusal(document, headers)
        self._document, self.refused = document, []
        if refused is not None:
            self.refused = [Finding(rule=_REFUSED, severity="error", pointer="/configuration", detail=refused)]
            if before is None:
                raise NotYet(refused)
            self._document = before
            others = [finding for finding in before.findings if finding.rule != _REFUSED]
            known = replace(before, findings=[*self.refused, *others][:MOST_CARRIED])
            self._refusal(known, headers | {"X-Comment": "not what the cluster says any more: that is refused"})

    def _refusal(self, document: Configuration, headers: dict[str, str]) -> str | None:
        """Have ``document`` stored; why it may not be. Raises NotYet, ApiError, ApiUnavailable."""
        try:
            self._arbiter.ask("PUT", "configurations", self._configuration, body=document, headers=headers)
        except ApiError as refused:
            if refused.status == HTTPStatus.PRECONDITION_FAILED:
                raise NotYet("somebody else has just written the configuration") from None
            if refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            return str(refused)
        return None

    def content(self) -> Translated | None:
        """What the snapshot has; None: it is not known to have anything."""
        return self._last

    def _put(self, whole: Translated, versions: dict[str, str], reason: str) -> None:
        """Put all of it. Work that the service refuses is left out: what one tenant asks for does not keep the cluster
        from being followed. Raises ApiError where it is something else."""
        self._last, self._why = None, reason
        translated, tries = self._without_refused(whole), 0
        while (body := self._accepted(translated, versions, last=tries == _TRIES)) is None:
            translated, tries = self._without_refused(whole), tries + 1
        self.puts[reason] += 1
        self._take(body, translated)

    def _accepted(self, translated: Translated, versions: dict[str, str], *, last: bool) -> bytes | None:
        """What the service says to it; None: some of it is left out from now on. Raises ApiError, ApiUnavailable."""
        request = SnapshotRequest(
            engine=translated.configuration.engine, configuration=self._configuration, state=translated.state(),
            asks=list(translated.asks.values()), resource_versions=versions,
        )  # fmt: skip
        try:
            return self._arbiter.ask("PUT", "snapshots", self._snapshot, body=request).body
        except ApiError as refused:
            if last or not self._leave_out(translated, refused):
                raise
            return None

    def _leave_out(self, translated: Translated, refused: ApiError) -> bool:
        """Whether all that is refused is work, which from now on is left out as long as it stays as it is."""
        if refused.status != HTTPStatus.UNPROCESSABLE_ENTITY or not refused.errors:
            return False
        refusals: dict[tuple[str, str], tuple[Any, Finding]] = {}
        for pointer, detail in refused.errors.items():
            kind, _, rest = pointer.removeprefix("/state").removeprefix("/").partition("/")
            number = rest.partition("/")[0]
            works = list(getattr(translated, kind).items()) if kind in _LEAVABLE else []
            if not number.isdecimal() or int(number) >= len(works):
                return False
            name, work = works[int(number)]
            what = f"{name[:200]} is left out: {rest.partition('/')[2][:200]}: {detail[:500]}".replace("\0", "\ufffd")
            refusals[kind, name] = work, Finding(rule=_REFUSED, severity="error", pointer="", detail=what)
        self._left_out = self._left_out | refusals
        return True

    def _without_refused(self, translated: Translated) -> Translated:
        """What of ``translated`` was not refused as it is, with a finding for each that was."""
        self._left_out = {
            (kind, name): left
            for (kind, name), left in self._left_out.items()
            if getattr(translated, kind).get(name) == left[0]
        }
        if not self._left_out:
            return translated
        work_left: dict[str, Any] = {
            kind: {name: work for name, work in getattr(translated, kind).items() if (kind, name) not in self._left_out}
            for kind in _LEAVABLE
        }
        said = self.left_out()
        others = [finding for finding in translated.of_state if finding not in said]
        return dataclasses.replace(translated, **work_left, of_state=[*said, *others][:MOST_CARRIED])

    def left_out(self) -> list[Finding]:
        """What is not kept, and why."""
        return [finding for _, finding in self._left_out.values()]

    def _take(self, body: bytes, translated: Translated) -> None:
        self.status = msgspec.json.decode(body, type=SnapshotStatus)
        self._last = translated

    def _within(self, translated: Translated) -> Translated:
        """What of ``translated`` the last good configuration has a queue for."""
        queues = {queue.name for queue in self._document.queues} if self._document is not None else set[str]()
        return dataclasses.replace(
            translated,
            workloads={key: work for key, work in translated.workloads.items() if work.queue in queues},
            asks={key: ask for key, ask in translated.asks.items() if ask.queue in queues},
            reservations={key: held for key, held in translated.reservations.items() if held.ask.queue in queues},
            budgets=[budget for budget in translated.budgets if budget.queue in queues],
        )


def _same(stored: Configuration, document: Configuration, *, findings: bool) -> bool:
    """Whether they say the same of the cluster, with ``findings`` also of what could not be read."""
    return replace(document, findings=document.findings if findings else stored.findings) == stored
