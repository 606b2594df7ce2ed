"""What ``arbiter mcp`` offers: each tool's arguments, how the service is asked, and a short answer with links to the
console's pages. It knows nothing of the protocol."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from app.answering.overrides import with_fields
from app.base.decoding import convert, decode, descriptions
from app.cli.live import evictions, exposures, followed, happened, named, planned_at, stopped_by
from app.cli.output import amount
from app.cli.remote import Service, commented, got, posted, segment
from app.cli.tool_arguments import (
    CarryOut,
    ChangeConfiguration,
    Compare,
    Find,
    Next,
    Place,
    Plan,
    Situation,
    SweepOf,
    Variant,
    WhatIf,
    Why,
)  # fmt: skip
from app.solver.model.base import Wire
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput, Problem, few
from app.studies.exposure_schemas import Exposures

_SHOWN = 10
"""Lines of a list; the page has the rest."""
_LONGEST_NAMES = 5
_TRIED = "/v1/decisions?purpose=what-if"
"""No scheduler asks this: the log tells it apart."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Whom a tool asks. ``pages``: where people open the console. ``go_on``: called while something is waited for, with
    how much of how much is done; raises where nobody waits any more."""

    service: Service
    pages: str
    go_on: Callable[[float, float], None]

    def link(self, path: str, **query: str) -> str:
        """The address of a page."""
        asked = {name: value for name, value in query.items() if value}
        return f"{self.pages}{path}{f'?{urlencode(asked)}' if asked else ''}"


Answered = Callable[[Asking, Any], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. ``answer`` raises InvalidInput, ApiError, Unreachable."""

    name: str
    title: str
    description: str
    shape: type[Wire]
    answer: Answered
    writes: bool = False

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        (root,), components = msgspec.json.schema_components([self.shape], ref_template="#/$defs/{name}")
        for shape in (self.shape, Variant):
            if shape.__name__ in components:
                for field, text in descriptions(shape).items():
                    components[shape.__name__]["properties"][field]["description"] = text
        schema = components.pop(root["$ref"].removeprefix("#/$defs/"))
        return schema | ({"$defs": components} if components else {})

    def call(self, asking: Asking, arguments: dict[str, Any]) -> str:
        """The answer to ``arguments``. Raises as ``answer``."""
        return "\n".join(self.answer(asking, decode(json.dumps(arguments).encode(), self.shape)))


def _find(asking: Asking, wanted: Find) -> Iterator[str]:
    reply = got(asking.service, f"/v1/find?{urlencode({'text': wanted.text, 'limit': 2 * _SHOWN})}")
    hits = reply["items"]
    if not hits:
        near = ", ".join(f"{hit['kind']} {hit['name']}" for hit in reply.get("nearest", ())[:_SHOWN])
        yield f"nothing is called so{f'; nearest: {near}' if near else ''}"
    for hit in hits:
        where = "".join(f", {kind} {hit[kind]}" for kind in ("id", "configuration", "snapshot") if hit.get(kind))
        yield f"{hit['kind']} {hit['name']}{where}"
    if reply.get("away"):
        yield "the database is away: only what is kept in memory was looked through"
    yield asking.link("/find", text=wanted.text)


def _why(asking: Asking, wanted: Why) -> Iterator[str]:
    service = asking.service
    if _is_id(wanted.name):
        yield from _why_decided(asking, UUID(wanted.name))
        return
    clusters = got(service, "/v1/clusters")["items"]
    if wanted.cluster is not None or len(clusters) == 1:
        lines = list(_why_there(asking, wanted, followed(service, wanted.cluster)))
        if lines:
            yield from lines
            return
    yield from _why_logged(asking, wanted, [known["name"] for known in clusters])


def _is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _why_decided(asking: Asking, decision: UUID) -> Iterator[str]:
    again = got(asking.service, f"/v1/decisions/{decision}/explanation?level=summary")
    yield from _decided(again["answer"]["decisions"])
    if not again["identical"]:
        yield "decided again it comes out otherwise: this service decides by newer code"
    yield asking.link(f"/decisions/{decision}")


def _why_there(asking: Asking, wanted: Why, cluster: dict[str, Any]) -> Iterator[str]:
    """Of a followed cluster; nothing where it knows nothing of that name."""
    service, address = asking.service, f"/v1/snapshots/{segment(cluster['snapshot'])}"
    state = {"snapshot": cluster["snapshot"]}
    known = wanted.name
    waiting = named(wanted.name, got(service, f"{address}/asks")["items"])
    if waiting is not None:
        known = waiting["id"]
        body = {"state": state, "asks": [waiting], "explain": "summary"}
        answer = json.loads(posted(service, _TRIED, body))
        yield from _warned(answer)
        yield f"{known} waits in {waiting['queue']}; asked now:"
        yield from _decided(answer["decisions"])
        yield asking.link(f"/decisions/{answer['id']}")
    elif (running := named(wanted.name, got(service, f"{address}/state").get("workloads", []))) is not None:
        known = running["id"]
        since = f" since {running['started_at']}" if "started_at" in running else ""
        yield f"{known} runs in {running['queue']}{since}, priority {running.get('priority', 0)}"
        answer = json.loads(posted(service, "/v1/preemptibility", {"state": state}))
        yield from _warned(answer)
        protection = answer["workloads"][known]
        standing = "may be preempted" if protection.get("preemptible") else "protected"
        yield f"{standing}: {protection.get('reason') or 'no reason'}"
    past = evictions(service, cluster["name"], known)
    for eviction in past:
        yield happened(eviction)
    if known != wanted.name or past:
        yield asking.link("/why", workload=known)


def _why_logged(asking: Asking, wanted: Why, clusters: list[str]) -> Iterator[str]:
    """What the log knows, and what any follower saw."""
    history = got(asking.service, f"/v1/workloads/{segment(wanted.name)}/history?limit={_SHOWN}")
    past = [line for name in clusters for line in map(happened, evictions(asking.service, name, wanted.name))]
    if not history["items"] and not past:
        hits = got(asking.service, f"/v1/find?{urlencode({'text': wanted.name, 'limit': _SHOWN})}")
        near = dict.fromkeys(hit["name"] for hit in (*hits["items"], *hits.get("nearest", ())))
        said = f"; nearest: {', '.join(near)}" if near else ""
        raise InvalidInput([Problem(pointer="/name", detail=f"nothing is known of {wanted.name!r}{said}")])
    yield f"{wanted.name}: {history['stopped']} decisions stop it, {history['asked']} are about an ask of it"
    yield from past
    for event in history["items"]:
        page = asking.link(f"/decisions/{event['decision']}")
        yield from (f"{event['created_at']} {line}: {page}" for line in _events(event))
    yield asking.link("/why", workload=wanted.name)


def _events(event: dict[str, Any]) -> Iterator[str]:
    """What a decision says of the workload, one line each."""
    for stop in event.get("stopped", ())[:_SHOWN]:
        by = f" for {stop['for_ask']}" if stop.get("for_ask") else ""
        yield f"decided to stop it{by}: {stop.get('message') or stop['reason']}"
    for ask in event.get("asked", ())[:_SHOWN]:
        said = ask.get("message") or ask.get("reason")
        yield f"asked as {ask['ask']}: {ask['outcome']}{f', {said}' if said else ''}"
    for spared in event.get("spared", ())[:_SHOWN]:
        yield f"spared: {spared['message']}"


def _what_if(asking: Asking, wanted: WhatIf) -> Iterator[str]:
    if wanted.decision is not None:
        _refuse({
            "/queue": "a recorded decision has its own asks" if wanted.queue is not None else "",
            "/set": "" if wanted.set else "what would be different? name fields of the configuration",
        })  # fmt: skip
        yield from _compared(asking, _recorded(asking, wanted), [{"name": "changed", "set": wanted.set}])
        yield asking.link(f"/decisions/{wanted.decision}")
        return
    _refuse({
        "/queue": "" if wanted.queue is not None else "which queue would the job go to?",
        "/requests": "" if wanted.requests else "what does each pod ask for?",
    })  # fmt: skip
    task = {"name": "main", "count": wanted.count, "requests": wanted.requests}
    task |= {"flavors": wanted.flavors} if wanted.flavors else {}
    ask = {"id": "my-job", "queue": wanted.queue, "priority": wanted.priority, "tasks": [task]}
    snapshot = _snapshot(asking, wanted)
    body: dict[str, Any] = {"state": {"snapshot": snapshot}, "asks": [ask], "explain": "summary"}
    if wanted.set:
        yield from _compared(asking, body, [{"name": "changed", "set": wanted.set}])
        return
    answer = json.loads(posted(asking.service, _TRIED, body))
    yield from _warned(answer)
    yield from _decided(answer["decisions"])
    yield asking.link(f"/decisions/{answer['id']}")


def _next(asking: Asking, wanted: Next) -> Iterator[str]:
    snapshot = _snapshot(asking, wanted)
    body = {"state": {"snapshot": snapshot}, "asks": "pending", "queue": wanted.queue, "workloads": wanted.workloads}

    def waits(job: Exposures) -> None:
        how_far = job.progress
        asking.go_on(*((0, 0) if how_far is None else (how_far.decisions, how_far.total)))

    job, outcome = exposures(asking.service, body, waits)
    yield from _warned(msgspec.to_builtins({"followed": job.followed, "findings": outcome.findings}))
    counts = Counter(exposure.standing for exposure in outcome.exposures)
    yield (
        f"{len(outcome.exposures)} run: {counts['now']} are stopped by what waits, {counts['next']} would be by an ask "
        f"that nobody has made, {counts['safe']} are safe by a rule; rules of {outcome.engine}"
    )
    for exposure in outcome.exposures[:_SHOWN]:
        whose = f"{exposure.workload} in {exposure.queue}, priority {exposure.priority}"
        yield f"{exposure.standing}: {whose}: {stopped_by(exposure)}"
    yield from _more(len(outcome.exposures))
    if outcome.order:
        yield f"{len(outcome.order)} wait, in the order in which they would go:"
    for start in outcome.order[:_SHOWN]:
        when = start.reason or "not in the rounds played" if start.round is None else f"round {start.round}"
        yield f"{start.ask} in {start.queue}: {when}{_stops(start.evicts)}"
    yield from _more(len(outcome.order))
    if not outcome.complete:
        yield "cut short by its bounds"
    yield asking.link(f"/next/{job.id}")


def _plan(asking: Asking, wanted: Plan) -> Iterator[str]:
    there = _situation(asking, wanted)
    body = {"manifest": wanted.manifest, "queue": wanted.queue, "namespace": wanted.namespace, "set": wanted.set}
    body |= there
    answer = json.loads(posted(asking.service, "/v1/plans", body))
    yield from _warned({"followed": answer.get("followed", {})})
    for work in answer["work"][:_SHOWN]:
        asks = ", ".join(f"{name} {value}" for name, value in work["requests"].items())
        before = len(work.get("behind", ()))
        yield (
            f"{work['object']} in {work['queue']}, priority {work['priority']}, {work['pods']} pods, {asks}: "
            f"{work['outcome']}{f'; {before} that wait already go before it' if before else ''}"
        )
    yield from _more(len(answer["work"]))
    yield from _decided(answer["decisions"])
    yield from _findings(answer.get("findings") or [])
    yield asking.link("/plan", snapshot=there["state"]["snapshot"])


def _compare(asking: Asking, wanted: Compare) -> Iterator[str]:
    if wanted.decision is not None:
        body = _recorded(asking, wanted)
        page = asking.link(f"/decisions/{wanted.decision}")
    else:
        snapshot = _snapshot(asking, wanted)
        other = any(variant.engine is not None for variant in wanted.variants)
        body = _written_out(asking.service, snapshot) if other else {"state": {"snapshot": snapshot}, "asks": "pending"}
        body |= {"mode": "cycle"}
        page = asking.link("/queues", snapshot=snapshot)
    yield from _compared(asking, body, [msgspec.to_builtins(added) for added in wanted.variants])
    yield page


def _written_out(service: Service, snapshot: str) -> dict[str, Any]:
    """A kept snapshot as a request has it: it is compiled for one engine, and another can't read it as it is kept."""
    address = f"/v1/snapshots/{segment(snapshot)}"
    used = got(service, address)["configuration"]
    if not used.get("name"):
        detail = "the snapshot's configuration is not a stored one: another engine can't be told of it"
        raise InvalidInput([Problem(pointer="/variants", detail=detail)])
    named_one = f"{used['name']}@{used['revision']}"
    return {
        "configuration": named_one,
        "state": got(service, f"{address}/state"),
        "asks": got(service, f"{address}/asks")["items"],
    }


def _compared(asking: Asking, body: dict[str, Any], variants: list[dict[str, Any]]) -> Iterator[str]:
    compared = body | {"variants": [{"name": "as it is"}, *variants]}
    comparison = json.loads(posted(asking.service, "/v1/comparisons", compared))
    for variant in comparison["variants"]:
        if "answer" not in variant:
            refusals = "; ".join(f"{p['pointer']}: {p['detail']}" for p in variant["problems"][:_SHOWN])
            yield f"{variant['name']}: refused: {refusals}"
            continue
        outcomes = [decision["outcome"] for decision in variant["answer"]["decisions"]]
        tally = ", ".join(f"{outcomes.count(kind)} {kind}" for kind in dict.fromkeys(outcomes)) or "no asks"
        yield f"{variant['name']}: {tally}; {len(variant['answer']['plan'].get('evictions', ()))} evictions"
        yield from _findings([*variant.get("findings", ()), *variant["answer"].get("findings", ())])
    differences = comparison["differences"]
    yield f"{len(differences)} differences" if differences else "no difference"
    for difference in differences[:_SHOWN]:
        values = "; ".join(f"{name}: {_value(value)}" for name, value in difference["values"].items())
        yield f"{difference.get('ask') or 'the plan'}, {difference['field']}: {values}"
    yield from _more(len(differences))


def _sweep(asking: Asking, wanted: SweepOf) -> Iterator[str]:
    address = f"/v1/sweeps/{wanted.sweep}"
    sweep = got(asking.service, address)
    points = [json.loads(line) for line in asking.service.get(f"{address}/points").body.splitlines()]
    yield f"trace {sweep['trace']['name']}: {sweep['status']}, {len(points)} of {sweep['points']} points played"
    for point in points[:_SHOWN]:
        settings = (f"{name} {json.dumps(value)}" for name, value in point.get("settings", {}).items())
        tried = [point["configuration"], f"seed {point['seed']}", *settings]
        yield f"{', '.join(tried)}: {_came_to(point['summary']['total']) if 'summary' in point else point['error']}"
    yield from _more(len(points))
    yield asking.link(f"/sweeps/{wanted.sweep}")


def _came_to(total: dict[str, Any]) -> str:
    return f"{total.get('finished', 0)} of {total['jobs']} jobs finished, {total.get('evictions', 0)} evictions"


def _value(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    return few([str(part) for part in cast(list[Any], value)], _LONGEST_NAMES) or "none"


def _change_configuration(asking: Asking, wanted: ChangeConfiguration) -> Iterator[str]:
    path = f"/v1/configurations/{segment(wanted.name)}"
    reply = asking.service.get(path).done()
    known = reply.json()
    if known["revision"] != wanted.revision:
        detail = f"the newest revision is {known['revision']}: nothing was changed"
        raise InvalidInput([Problem(pointer="/revision", detail=detail)])
    document = with_fields(convert(known["configuration"], Configuration), wanted.set)
    headers = {"If-Match": reply.etag or ""} | commented(wanted.comment)
    done = asking.service.put(path, msgspec.json.encode(document), headers).done().json()
    yield f"{wanted.name}: {'revision' if done['changed'] else 'unchanged at revision'} {done['revision']}"
    yield from _findings([*done.get("findings", ()), *known["configuration"].get("findings", ())])
    yield asking.link(f"/configurations/{segment(wanted.name)}")


def _carry_out(asking: Asking, wanted: CarryOut) -> Iterator[str]:
    body = {"decision": str(wanted.decision)} | ({} if wanted.ask is None else {"ask": wanted.ask})
    done = json.loads(posted(asking.service, f"/v1/snapshots/{segment(wanted.snapshot)}/apply", body))
    yield f"snapshot {wanted.snapshot} is at generation {done['generation']}: {done['counts']['workloads']} run there"
    yield from _findings(done.get("findings", []))
    yield asking.link("/queues", snapshot=wanted.snapshot)


def _situation(asking: Asking, wanted: Place) -> dict[str, Any]:
    """The state that is meant and what waits there, as a plan takes it."""
    if wanted.snapshot is not None:
        _refuse({"/cluster": "a cluster or a snapshot, not both" if wanted.cluster is not None else ""})
        return {"state": {"snapshot": wanted.snapshot}, "asks": "pending"}
    return planned_at(followed(asking.service, wanted.cluster))


def _snapshot(asking: Asking, wanted: Place) -> str:
    return _situation(asking, wanted)["state"]["snapshot"]


def _warned(answer: dict[str, Any]) -> Iterator[str]:
    """That an answer may be about a cluster that is no more, or is another than it was read as."""
    age: dict[str, Any] = answer.get("followed") or {}
    if "warning" in age:
        yield age["warning"]
    yield from _findings(answer.get("findings") or [])


def _findings(findings: list[dict[str, Any]]) -> Iterator[str]:
    for finding in findings[:_SHOWN]:
        yield f"{finding['severity']} {finding['pointer']}: {finding['detail']} [{finding['rule']}]"
    yield from _more(len(findings))


def _recorded(asking: Asking, wanted: Situation) -> dict[str, Any]:
    """The request of the recorded decision, with configuration, state and time as they were."""
    both = "a recorded decision has its own state"
    _refuse({
        "/cluster": both if wanted.cluster is not None else "",
        "/snapshot": both if wanted.snapshot is not None else "",
    })  # fmt: skip
    return got(asking.service, f"/v1/decisions/{wanted.decision}/request?resolved=true")


def _refuse(details: dict[str, str]) -> None:
    """Raises InvalidInput where a pointer has a detail."""
    problems = [Problem(pointer=pointer, detail=detail) for pointer, detail in details.items() if detail]
    if problems:
        raise InvalidInput(problems)


def _decided(decisions: list[dict[str, Any]]) -> Iterator[str]:
    for decision in decisions[:_SHOWN]:
        node = f" on {decision['node']}" if decision.get("node") else ""
        victims = decision.get("victims", ())
        yield f"{decision['ask']}: {decision['outcome']}{node}{_stops([victim['workload'] for victim in victims])}"
        explained: dict[str, Any] = decision.get("explanation") or {}
        said: list[str] = [
            explained.get("headline") or "",
            *dict.fromkeys(victim["message"] for victim in victims[:_SHOWN]),
        ]
        yield from (f"  {line}" for line in dict.fromkeys(said) if line)
        if explained.get("blocker"):
            yield f"  in the way: {explained['blocker']}"
        changes: list[dict[str, Any]] = explained.get("smallest_change") or []
        for change in changes[:_SHOWN]:
            now = "none" if change.get("current") is None else amount(change["current"])
            what = "would let it in" if explained.get("blocker") else "would keep a budget"
            yield (
                f"  {what}: {change['queue']}, {change['resource']} {change['field']} {now} -> "
                f"{amount(change['needed'])}"
            )
    yield from _more(len(decisions))


def _stops(workloads: list[str]) -> str:
    return f", stops {len(workloads)}: {few(workloads, _LONGEST_NAMES)}" if workloads else ""


def _more(count: int) -> Iterator[str]:
    if count > _SHOWN:
        yield f"and {count - _SHOWN} more"


TOOLS = (
    Tool(
        "find", "Find by name",
        "Workloads, asks, queues, nodes, configurations, snapshots, clusters and simulations by any part of their "
        "names; decisions, sweeps, forecasts and backtests by the beginning of their ids.",
        Find, _find,
    ),
    Tool(
        "why", "Why was it evicted, why does it wait?",
        "Of one workload, Job or pod: why it waits, what protects it while it runs, who evicted it and by which rule. "
        "Of a recorded decision: why it was decided so.",
        Why, _why,
    ),
    Tool(
        "what_if", "What if?",
        "Would a job that nobody has submitted run in this queue, and who would stop for it? With `set`: what differs "
        "if the configuration were so. With `decision` and `set`: what a recorded decision would have been.",
        WhatIf, _what_if,
    ),
    Tool(
        "who_is_next", "Who is next?",
        "Of running work what would evict it, most exposed first: what waits now, else the smallest ask that would, or "
        "the rule that keeps it; and the order in which what waits would go. May take minutes on a large cluster.",
        Next, _next,
    ),
    Tool(
        "plan", "Would this manifest run?",
        "Would this manifest run, who waits before it, who would stop for it, and which change of a quota would let it "
        "in?",
        Plan, _plan,
    ),
    Tool(
        "compare", "Compare rule books",
        "The same situation under other engines, configurations or settings: outcomes, and where they differ.",
        Compare, _compare,
    ),
    Tool(
        "sweep", "What did a sweep come to?",
        "How far a sweep is, and what each of its points (a configuration, a seed, settings) came to.",
        SweepOf, _sweep,
    ),
    Tool(
        "change_configuration", "Change a configuration",
        "Writes a new revision of a stored configuration, with these fields set. Where a follower keeps it, its next "
        "report takes it back.",
        ChangeConfiguration, _change_configuration, writes=True,
    ),
    Tool(
        "carry_out", "Carry a decision out in a snapshot",
        "Evicts and places in a kept snapshot what a recorded decision said, unless the snapshot has moved on since.",
        CarryOut, _carry_out, writes=True,
    ),
)  # fmt: skip
