"""What is stored at Arbiter of a cluster: its configuration and its snapshot, brought up to what was translated.

With Arbiter's interface, and with what is left out because the service refuses it: an object that can't be said there
is a finding, and all others are followed.
"""

import dataclasses
import random
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec
import urllib3
from msgspec.structs import replace
from urllib3.exceptions import HTTPError

from app.answering.snapshots import SnapshotRequest, SnapshotStatus
from app.following.grouped import (
    STATE_PARTS,
    Name,
    Part,
    Translated,
    budget_name,
    object_name,
    part_at,
    parts_of,
    sayable,
    settled,
)
from app.following.translator import change_summary, delta
from app.solver.check import MAX_BYTES, size_of
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.problems import MOST_CARRIED, Finding

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

_NEEDS = {
    "node": "nodes", "required_node": "nodes", "feasible_nodes": "nodes", "workload": "workloads", "queue": "queues",
}  # fmt: skip
"""Fields that name something else, without which what they are of is refused: of which kind that is."""


class _Left(NamedTuple):
    """What is left out: as it is, why, and what it needs that is not there, None: it is refused whatever else is."""

    part: Any
    finding: Finding
    needs: Name | None = None


class LeftOut:
    """What the service refuses of one cluster: left out as long as it stays as it is, with a finding each, so that what
    one tenant writes, or one object of an administrator's is, keeps nobody else from being followed."""

    def __init__(self) -> None:
        self._left: dict[Name, _Left] = {}
        self._beside: Any = None
        """What the configuration is made of where some is left out: it hangs together, as a queue and its parent do."""

    def take(self, refused: ApiError, body: Any, translated: Translated) -> bool:
        """Whether all that is refused of ``body`` can be left out of ``translated``; then it is from now on."""
        if refused.status != HTTPStatus.UNPROCESSABLE_ENTITY or not refused.errors:
            return False
        there = parts_of(translated)
        refusals: dict[Name, _Left] = {}
        for where, detail in refused.errors.items():
            inside = where.removeprefix("/configuration")
            place = part_at(body, inside)
            if place is None and not inside:
                refusals |= self._largest(translated.configuration, there["objects"])
                continue
            if place is None or place.name not in there[place.kind]:
                return False
            said = f"{place.what.format(place.name[:200])} is left out: {place.within[:200]}: {detail[:400]}"
            if place.kind == "queues":
                said += _lacks(place.name, translated.configuration.queues)
            needs = _needs(place) if place.kind in _WORK else None
            refusals[place.kind, place.name] = _Left(there[place.kind][place.name], _finding(said), needs)
        queues = {name for kind, name in (*refusals, *self._left) if kind == "queues"}
        if not refusals.keys() - self._left.keys() or (queues and queues >= there["queues"].keys()):
            return False  # it would be refused again, or nothing would be followed
        self._left |= refusals
        self._beside = _made_of(translated.configuration)
        return True

    def _largest(self, of: Configuration, objects: dict[str, Any]) -> dict[Name, _Left]:
        """The largest of the objects that a configuration keeps whole, so many that it keeps no more than it may:
        a tenant may write a quarter of a megabyte beside each LocalQueue."""
        sizes = {name: len(msgspec.json.encode(item)) for name, item in objects.items()}
        over, refusals = size_of(of) - MAX_BYTES, dict[Name, _Left]()
        for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
            if over <= 0:
                break
            said = f"{name[:200]} is left out of what is kept whole: of its {sizes[name]} bytes there are too many"
            refusals["objects", name] = _Left(objects[name], _finding(said))
            over -= sizes[name]
        return refusals

    def findings(self, lost: Mapping[str, int]) -> list[Finding]:
        """What is not kept, and why. ``lost``: how many workloads are left out with each queue that is not there."""
        findings = [
            sayable(replace(left.finding, detail=f"{left.finding.detail}; {lost[of]} workloads are left out with it"))
            if kind == "queues" and of in lost else left.finding
            for (kind, of), left in self._left.items()
        ]  # fmt: skip
        others = Counter({queue: count for queue, count in lost.items() if ("queues", queue) not in self._left})
        if others:
            named = ", ".join(f"{queue[:100]} ({count})" for queue, count in others.most_common(_SHOWN))
            more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
            said = f"{others.total()} workloads of queues that the stored configuration lacks are left out"
            findings.append(_finding(f"{said}: {named}{more}"))
        return findings

    def without(self, translated: Translated) -> Translated:
        """What of ``translated`` was not refused as it is, with findings in the documents that they are about."""
        if self._left:
            there, is_other = parts_of(translated), self._beside != _made_of(translated.configuration)
            same = {
                (kind, name): left
                for (kind, name), left in self._left.items()
                if there[kind].get(name) == left.part and not (is_other and kind not in STATE_PARTS)
            }
            self._left = {
                of: left for of, left in same.items()
                if (needs := left.needs) is None or needs in same or needs[1] not in there[needs[0]]
            }  # fmt: skip
        if not self._left:
            return translated
        nodes = {name for kind, name in self._left if kind == "nodes"}
        running, held = (self._rest(kind, getattr(translated, kind)) for kind in ("workloads", "reservations"))
        if nodes:
            running = {
                name: item for name, item in running.items() if not any(task.node in nodes for task in item.tasks)
            }
            held = {name: item for name, item in held.items() if item.node not in nodes}
        return dataclasses.replace(
            translated, configuration=self._configuration(translated.configuration), workloads=running,
            asks=self._rest("asks", translated.asks), reservations=held, nodes=self._rest("nodes", translated.nodes),
            budgets=[item for item in translated.budgets if ("budgets", budget_name(item)) not in self._left],
            queues=self._rest("consumed", translated.queues), of_state=self._said(translated.of_state, of_state=True),
        )  # fmt: skip

    def _configuration(self, of: Configuration) -> Configuration:
        if all(kind in STATE_PARTS for kind, _ in self._left):
            return of
        native = of.native
        if native is not None:
            objects = [item for item in native.objects if ("objects", object_name(item)) not in self._left]
            native = replace(native, objects=objects)
        return replace(
            of, native=native, findings=self._said(of.findings, of_state=False),
            queues=[item for item in of.queues if ("queues", item.name) not in self._left],
            flavors=[item for item in of.flavors if ("flavors", item.name) not in self._left],
            topologies=[item for item in of.topologies if ("topologies", item.name) not in self._left],
        )  # fmt: skip

    def _rest(self, kind: str, of: dict[str, T]) -> dict[str, T]:
        return {name: item for name, item in of.items() if (kind, name) not in self._left}

    def _said(self, findings: list[Finding], *, of_state: bool) -> list[Finding]:
        said = [finding for (kind, _), (_, finding, _) in self._left.items() if (kind in STATE_PARTS) == of_state]
        return [*said, *(finding for finding in findings if finding not in said)][:MOST_CARRIED]


def _made_of(of: Configuration) -> Any:
    return of.queues, of.flavors, of.topologies, of.native


def _needs(place: Part) -> Name | None:
    """What of another kind it names at the place that is refused."""
    field = next((part for part in reversed(place.within.split("/")) if not part.isdecimal()), "")
    return (_NEEDS[field], place.value) if field in _NEEDS and isinstance(place.value, str) else None


def _lacks(name: str, queues: list[Queue]) -> str:
    """To whom a queue that is left out is missing."""
    above, below = next((of.parent for of in queues if of.name == name), None), sum(of.parent == name for of in queues)
    said = f"; {above[:200]!r} lacks its quota" if above else ""
    return f"{said}; {below} queues lack what is above them" if below else said


def _finding(said: str, pointer: str = "") -> Finding:
    return sayable(Finding(rule=_REFUSED, severity="error", pointer=pointer, detail=said))


_STALE = "stale_generation"
_REFUSED = "refused"
_WHOLE = "/configuration"
"""Where the finding points that none of a configuration is stored."""
_WORK = ("workloads", "asks", "reservations")
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
        self._left_out = LeftOut()
        self._lost_work: Counter[str] = Counter()
        self.held_since: datetime | None = None
        """Since when the configuration is not what the cluster says, because that is refused; None: it is."""
        self.status: SnapshotStatus | None = None
        self.refused: list[Finding] = []
        self.puts: Counter[str] = Counter()

    def keep(self, translated: Translated, versions: dict[str, str], *, writer: bool) -> None:
        """Bring both up to ``translated``. Raises NotYet, ApiUnavailable, ApiError; then it can be done again."""
        reason = self._configure(translated, writer=writer)
        if self._last is None or self.status is None or reason is not None:
            self._put(translated, versions, reason or self._why)
            return
        refused: ApiError | None = None
        for _ in range(_TRIES):
            accepted = self._accepted(translated)
            change = delta(self._last, accepted, self.status.generation, versions)
            try:
                reply = self._arbiter.ask("POST", "snapshots", self._snapshot, "deltas", body=change)
            except ApiError as error:
                refused = error
                if not self._left_out.take(error, change, translated):
                    break
            else:
                self._take(reply.body, accepted)
                return
        if refused is not None and refused.code == _STALE:
            self._lost()
            if (left := self.left()) is not None:
                raise NotYet(left) from None
        lost = refused is not None and refused.status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
        self._put(translated, versions, refused.code if lost and refused is not None and refused.code else "refused")

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
        whole = dataclasses.replace(translated, configuration=document)
        document = self._left_out.without(whole).configuration
        if before is None or not _same(before, document, findings=writer):
            if not writer:
                return self._follow(before)
            self._write(before, etag, whole)
        else:
            self._go_on_with(before, [])
        self._settled = wanted
        return "configuration"

    def _follow(self, stored: Configuration | None) -> str | None:
        """Go on with what the writer has stored, where it says that it stored what it could: it is looked at again each
        time. Raises NotYet where it has not yet."""
        said = [] if stored is None else [finding for finding in stored.findings if finding.rule == _REFUSED]
        if not said:
            raise NotYet("the configuration is written by another follower, which has not yet")
        is_new = self._document != stored
        self._go_on_with(stored, said)
        return "configuration" if is_new else None

    def _go_on_with(self, document: Configuration | None, refused: list[Finding]) -> None:
        """The configuration is ``document``, but for what is ``refused``."""
        self._document, self.refused = document, refused
        held = any(finding.pointer == _WHOLE for finding in refused)
        self.held_since = (self.held_since or datetime.now(UTC)) if held else None

    def _stored(self) -> tuple[_Stored | None, str | None]:
        try:
            reply = self._arbiter.ask("GET", "configurations", self._configuration)
        except ApiError as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                return None, None
            raise
        return msgspec.json.decode(reply.body, type=_Stored), reply.etag

    def _write(self, before: Configuration | None, etag: str | None, whole: Translated) -> None:
        """A new revision, without what is refused of it; where it is refused all the same, the last good one stays.
        Raises NotYet where there is none."""
        match = {"If-Match": etag} if etag else {"If-None-Match": "*"}
        refused, tries = None, 0
        while True:
            document = self._left_out.without(whole).configuration
            refused = self._refusal(document, match | {"X-Comment": _comment(change_summary(before, document))})
            tries += 1
            if refused is None or tries > _TRIES or not self._left_out.take(refused, document, whole):
                break
        self._go_on_with(document, [] if refused is None else [_finding(str(refused), _WHOLE)])
        if refused is not None:
            if before is None:
                raise NotYet(str(refused))
            self._document = before
            others = [finding for finding in before.findings if finding.rule != _REFUSED]
            known = replace(before, findings=[*self.refused, *others][:MOST_CARRIED])
            self._refusal(known, match | {"X-Comment": "not what the cluster says any more: that is refused"})

    def _refusal(self, document: Configuration, headers: dict[str, str]) -> ApiError | None:
        """Have ``document`` stored; why it may not be. Raises NotYet, ApiError, ApiUnavailable."""
        try:
            self._arbiter.ask("PUT", "configurations", self._configuration, body=document, headers=headers)
        except ApiError as refused:
            if refused.status == HTTPStatus.PRECONDITION_FAILED:
                raise NotYet("somebody else has just written the configuration") from None
            if refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            return refused
        return None

    def content(self) -> Translated | None:
        """What the snapshot has; None: it is not known to have anything."""
        return self._last

    def _put(self, whole: Translated, versions: dict[str, str], reason: str) -> None:
        """Put all of it but what the service refuses. Raises ApiError where that is nothing that can be left out."""
        self._last, self._why = None, reason
        tries = 0
        while True:
            translated = self._accepted(whole)
            request = SnapshotRequest(
                engine=translated.configuration.engine, configuration=self._configuration, state=translated.state(),
                asks=list(translated.asks.values()), resource_versions=versions,
            )  # fmt: skip
            try:
                body = self._arbiter.ask("PUT", "snapshots", self._snapshot, body=request).body
                break
            except ApiError as refused:
                tries += 1
                if tries > _TRIES or not self._left_out.take(refused, request, whole):
                    raise
        self.puts[reason] += 1
        self._take(body, translated)

    def left_out(self) -> list[Finding]:
        """What is not kept, and why."""
        return self._left_out.findings(self._lost_work)

    def _take(self, body: bytes, translated: Translated) -> None:
        self.status = msgspec.json.decode(body, type=SnapshotStatus)
        self._last = translated

    def _accepted(self, translated: Translated) -> Translated:
        """What of ``translated`` was not refused, and has a queue in the configuration that is stored."""
        accepted = self._left_out.without(translated)
        self._lost_work = Counter()
        if accepted.configuration is translated.configuration and not self.refused:
            return accepted
        queues = {queue.name for queue in self._document.queues} if self._document is not None else set[str]()
        self._lost_work.update(work.queue for work in accepted.workloads.values() if work.queue not in queues)
        self._lost_work.update(ask.queue for ask in accepted.asks.values() if ask.queue not in queues)
        return dataclasses.replace(
            accepted,
            workloads={key: work for key, work in accepted.workloads.items() if work.queue in queues},
            asks={key: ask for key, ask in accepted.asks.items() if ask.queue in queues},
            reservations={key: held for key, held in accepted.reservations.items() if held.ask.queue in queues},
            budgets=[budget for budget in accepted.budgets if budget.queue in queues],
        )


_MOST_COMMENT = 1000
"""Characters."""


def _comment(said: str) -> str:
    """As a header that is read as UTF-8. Names come from tenants: they are of any letters and any length."""
    plain = "".join(letter if letter.isprintable() else "\ufffd" for letter in said[:_MOST_COMMENT])
    return plain.encode().decode("latin-1")


def _same(stored: Configuration, document: Configuration, *, findings: bool) -> bool:
    """Whether they say the same of the cluster, with ``findings`` also of what could not be read."""
    return replace(document, findings=document.findings if findings else stored.findings) == stored
