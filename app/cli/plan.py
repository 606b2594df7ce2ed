"""``arbiter plan``: would this work run, if it were submitted to this cluster?"""

import json as documents
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
from cyclopts import Parameter

from app.answering.plan import plan as planned
from app.answering.plan_bodies import PlanAnswer, PlannedWork, QueueChange
from app.answering.sources import nothing_stored
from app.base.documents import Unreadable
from app.base.documents import read as parsed
from app.base.identifiers import NAME
from app.cli import output
from app.cli.configuration import OURS, Remote
from app.cli.live import planned_at, warned
from app.cli.manifests import stored_or_file
from app.cli.offline import Json
from app.cli.output import (
    BAD_INPUT,
    CANNOT,
    EVICTS,
    NOTHING,
    Fields,
    Joined,
    OfFiles,
    Source,
    amount,
    fields_of,
    gathered,
    joined,
    noticed,
    of_file,
    read,
    say,
    table,
)
from app.cli.remote import Service, guarded, posted, segment
from app.formats import is_native
from app.formats.ytsaurus.documents import is_yson, read_yson
from app.solver.model.base import Quantity
from app.solver.model.decision import Answer, Decision
from app.solver.model.problems import InvalidInput, Problem, few


def print_plan(answer: PlanAnswer) -> None:
    """A plan as people read it: each object with its outcome, and who goes before it; each ask with who stops for it
    and what would let it in, asks that fare alike told once; then queues before and after."""
    header = ("OBJECT", "QUEUE", "PRIORITY", "PODS", "ASKS FOR", "OUTCOME")
    table(header, (_work_row(work) for work in answer.work), indent="")
    outcomes = {decision.ask: decision.outcome for decision in answer.waiting}
    for work in answer.work:
        if work.behind:
            first = few([f"{ask} ({outcomes[ask]})" for ask in work.behind], _MOST_BEFORE)
            say(f"{work.object}: {len(work.behind)} that wait already go before it: {first}")
    say()
    shown: list[Decision] = []
    for work in answer.work:
        own, alike = _told_row(answer, work)
        shown += own
        if alike:
            say(f"{work.object}: {len(work.asks)} asks, {alike} of them fare like those below")
    output.answer(
        Answer(
            engine=answer.engine, release=answer.release, configuration=answer.configuration, state=answer.state,
            decisions=shown, plan=answer.plan,
        ),
        why=True,
    )  # fmt: skip
    if answer.queues:
        table(
            ("QUEUE", "RESOURCE", "GUARANTEED", "LIMIT", "USED", "THEN", "FAIR SHARE", "THEN", "SHARE", "THEN"),
            [row for change in answer.queues for row in _rows(change)],
            indent="",
        )


def _told_row(answer: PlanAnswer, work: PlannedWork) -> tuple[list[Decision], int]:
    """The decisions of an object that differ, without their steps, and how many are like those."""
    of = set(work.asks)
    seen: set[tuple[str, bool]] = set()
    shown: list[Decision] = []
    for decision in answer.decisions:
        kind = (decision.outcome, bool(decision.victims))
        if decision.ask in of and (decision.victims or kind not in seen):
            seen.add(kind)
            shown.append(_brief(decision))
    return shown, len(of) - len(shown)


def _brief(decision: Decision) -> Decision:
    why = decision.explanation
    brief = None if why is None else msgspec.structs.replace(why, steps=[], groups=None, candidates=None)
    return msgspec.structs.replace(decision, explanation=brief)


def _work_row(work: PlannedWork) -> tuple[str, ...]:
    asks = ", ".join(f"{name} {_shown(value)}" for name, value in work.requests.items())
    return work.object, work.queue, str(work.priority), str(work.pods), asks, work.outcome


def _rows(change: QueueChange) -> Iterator[tuple[str, ...]]:
    share = (_shown(change.share_before), _shown(change.share_after))
    for i, (name, of) in enumerate(change.resources.items()):
        numbers = (of.guaranteed, of.limit, of.used_before, of.used_after, of.fair_share_before, of.fair_share_after)
        yield change.queue if i == 0 else "", name, *map(_shown, numbers), *(share if i == 0 else ("", ""))


def _shown(value: Quantity | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    rounded = round(value, 4)
    return amount(int(rounded) if rounded == int(rounded) else rounded)


_MOST_BEFORE = 10
_EXIT = {"admit": NOTHING, "preempt": EVICTS, "wait": CANNOT, "infeasible": CANNOT}
_OF_A_REQUEST = ("engine", "now", "configuration", "state", "asks", "options")
_FILES = (".yaml", ".yml", ".json")
_OF_A_STATE = ("nodes", "workloads", "reservations")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Where:
    """The cluster that work is planned for."""

    cluster: Annotated[
        list[str] | None,
        Parameter(
            name=["--cluster", "-f"],
            env_var="ARBITER_CLUSTER",
            negative=(),
            help="The cluster: the body of a decision, a configuration, a state, or manifests as `kubectl get -o yaml` "
            "prints them. May be given several times. A name that is no file: a cluster that the service follows.",
        ),
    ] = None
    snapshot: Annotated[str | None, Parameter(help="The cluster is this snapshot of the service.")] = None
    configuration: Annotated[
        str | None,
        Parameter(
            help="A file, or the name of a configuration that the service has (name, name@revision, name@label)."
        ),
    ] = None
    release: Annotated[
        str | None, Parameter(help="Under the rules of this release, whatever the cluster runs: after an upgrade?")
    ] = None
    now: Annotated[
        str | None,
        Parameter(
            help="When, as 2026-03-02T09:30:00Z. Default: when the cluster's state was taken, else the host's clock."
        ),
    ] = None
    remote: Remote = OURS


_HERE = Where()


def plan(
    manifest: Annotated[str, Parameter(allow_leading_hyphen=True, help="The work; '-' reads standard input.")] = "-",
    /,
    *,
    where: Where = _HERE,
    queue: Annotated[str | None, Parameter(help="Where the work goes, whatever it says itself.")] = None,
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"], help="Of objects that name none.")] = "default",
    waited: Annotated[str, Parameter(help="For how long it is taken to have waited, as in 30s or 5m.")] = "0s",
    set: Fields = None,  # noqa: A002
    json: Json = False,
) -> int:
    """Would this work run, as what, who would stop for it, and what would let it in? MANIFEST is what you would submit.

    Exit code 0: it would run now, 1: once others have stopped, 2: it has to wait or can't run, 3: bad input, or a
    part of the manifest is left out.
    """

    files = _Blamed(manifest)

    def act() -> int:
        asked: dict[str, Any] = {"queue": queue, "namespace": namespace, "waited": waited}
        asked |= {"manifest": _work(read(manifest)), "set": fields_of(set or [])}
        asked |= {} if where.now is None else {"now": where.now}
        asked |= {} if where.release is None else {"release": where.release}
        service = where.remote.service
        if (name := _followed(where)) is not None:
            cluster = service.get(f"/v1/clusters/{segment(name)}").done(name).json()
            asked |= {} if where.configuration is None else {"configuration": where.configuration}
            return _sent(files, asked | planned_at(cluster), service, json)
        if where.snapshot is None:
            asked |= _cluster(where, files)
            try:
                answer = planned(documents.dumps(asked).encode(), datetime.now(UTC), nothing_stored())
            except InvalidInput as invalid:
                raise files.blamed(invalid.problems) from None
            return _printed(answer, files, json=json)
        asked |= {"state": {"snapshot": where.snapshot}, "configuration": where.configuration}
        return _sent(files, asked, service, json)

    return guarded(act, manifest)


class _Blamed:
    """The files that a request is made of, to name the one at fault. ``of``: the file of a part of the request, by
    pointer; ``joined``: the documents of its ``cluster``, where there are several files."""

    def __init__(self, manifest: str) -> None:
        self.of: dict[str, str] = {"/manifest": manifest}
        self.joined: Joined | None = None

    def place(self, pointer: str) -> tuple[str, str]:
        """The file that ``pointer`` into the request leads into, empty where it leads into none, and where there."""
        part, slash, rest = pointer.removeprefix("/").partition("/")
        if part == "cluster" and self.joined is not None:
            return self.joined.place(slash + rest)
        file = self.of.get(f"/{part}", "")
        return file, slash + rest if file and part in ("manifest", "cluster") else pointer

    def blamed(self, problems: Sequence[Problem]) -> OfFiles:
        """The same problems, each of its file."""
        placed = ((*self.place(problem.pointer), problem.detail) for problem in problems)
        return OfFiles(
            (file or self.of["/manifest"], Problem(pointer=place, detail=why)) for file, place, why in placed
        )


def _followed(where: Where) -> str | None:
    """The name of the followed cluster that is meant, where no file is."""
    if where.snapshot is not None or where.cluster is None or len(where.cluster) != 1:
        return None
    (given,) = where.cluster
    is_name = re.fullmatch(NAME, given) and not given.endswith(_FILES) and not Path(given).exists()
    return given if is_name else None


def _sent(files: _Blamed, asked: dict[str, Any], service: Service, json: bool) -> int:
    return _printed(posted(service, "/v1/plans", asked), files, json=json)


def _printed(body: bytes, files: _Blamed, *, json: bool) -> int:
    answer = msgspec.json.decode(body, type=PlanAnswer)
    noticed(answer.findings, files.place)
    warned(answer.followed)
    if json:
        say(body.decode())
    else:
        print_plan(answer)
    return BAD_INPUT if any(f.severity == "error" for f in answer.findings) else _EXIT[answer.outcome]


def _cluster(where: Where, blamed: _Blamed) -> dict[str, Any]:
    """The part of the request that says what the cluster is. Raises InvalidInput, OSError, Unreachable."""
    if not where.cluster:
        detail = "what cluster? name a file with -f, or a snapshot of the service with --snapshot"
        raise InvalidInput([Problem(pointer="", detail=detail)])
    cluster: dict[str, Any] = {}
    manifests: list[Source] = []
    sources = gathered(where.cluster[0], where.cluster[1:])
    if (given := where.configuration) is not None:
        sources += gathered(given, []) if Path(given).is_dir() else [stored_or_file(given, where.remote)]
    for source in sources:
        document = _said(source)
        if document is None:
            manifests.append(source)
        else:
            cluster |= document
            blamed.of |= {f"/{key}": source.name for key in document}
    if manifests:
        alone = len(manifests) == 1 and not is_yson(manifests[0].body)
        blamed.of["/cluster"] = manifests[0].name
        blamed.joined = None if alone else joined(manifests)
        cluster["cluster"] = _text(manifests[0].body if blamed.joined is None else blamed.joined.body)
    return cluster


def _said(source: Source) -> dict[str, Any] | None:
    """What a document of Arbiter says of a cluster; None for what is none. Raises OfFiles."""
    if is_native(source.body):
        return None
    with of_file(source.name):
        listed = parsed(source.body)
    if len(listed) != 1 or not isinstance(listed[0][1], dict):
        return None
    document = cast(dict[str, Any], listed[0][1])
    if "configuration" in document or "state" in document:
        return {key: document[key] for key in _OF_A_REQUEST if key in document}
    if isinstance(document.get("queues"), list):
        return {"configuration": document}
    return {"state": document} if any(key in document for key in _OF_A_STATE) else None


def _work(body: bytes) -> str | dict[str, Any]:
    """The manifest as a request has it: YSON is told as JSON."""
    if not is_yson(body):
        return _text(body)
    document = read_yson(body)[0][1]
    return cast(dict[str, Any], document) if isinstance(document, dict) else _text(body)


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 at byte {error.start}") from None
