"""``decide`` and ``explain``: no server, no database, the same answers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, TypeVar

import msgspec
from cyclopts import Parameter

from app.answering.answers import answer
from app.answering.sources import nothing_stored
from app.cli import report
from app.cli.configuration import DEFAULT_URL, Token, Url
from app.cli.manifests import Situation as Asking
from app.cli.manifests import as_request, failed, with_mode
from app.cli.output import BAD_INPUT, CANNOT, EVICTS, NOTHING, say, tried
from app.cli.remote import Service, guarded, refused, segment
from app.cli.sources import Files, gathered
from app.solver.model.decision import Answer, planned
from app.solver.model.request import Explain, Mode

T = TypeVar("T")

Json = Annotated[bool, Parameter(negative=(), help="Print the answer as JSON, for machines.")]
File = Annotated[
    str,
    Parameter(
        allow_leading_hyphen=True,
        help="The body of a request with its configuration written out; '-' reads standard input.",
    ),
]
Situation = Annotated[
    str,
    Parameter(
        allow_leading_hyphen=True,
        help="The body of a request with its configuration written out, or a manifest of objects as `kubectl get -o "
        "json` prints them; '-' reads standard input.",
    ),
]
Queues = Annotated[
    str | None,
    Parameter(
        name="--configuration", help="The configuration for a manifest: a file of Arbiter's, or a manifest of its own."
    ),
]

AskedMode = Annotated[
    Mode | None,
    Parameter(
        help="cycle: one scheduling cycle over all asks; independent: each as if it were alone. Default: the request's "
        "own; without one, cycle for several asks."
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Logged:
    """A decision of a service, in place of files."""

    decision: Annotated[
        str | None, Parameter(help="The id of a logged decision of the service, in place of a file: why it was so.")
    ] = None
    url: Url = DEFAULT_URL
    token: Token = None


_FROM_FILES = Logged()


def decide(
    file: Situation = "-",
    /,
    *,
    files: Files = None,
    json: Json = False,
    configuration: Queues = None,
    mode: AskedMode = None,
) -> int:
    """Decide a request from a file: who would be evicted, and why.

    Exit code 0: nothing to evict, 1: somebody would be, 2: an ask can't run, 3: bad input, also where a manifest has an
    error and is answered without what is wrong.
    """
    return _situation(file, files, configuration, lambda found: _decided(found, mode, None, json=json))


def explain(
    file: Situation = "-",
    /,
    *,
    json: Json = False,
    files: Files = None,
    full: Annotated[bool, Parameter(negative=(), help="Every candidate and step, not only groups of them.")] = False,
    configuration: Queues = None,
    mode: AskedMode = None,
    logged: Logged = _FROM_FILES,
) -> int:
    """Decide a request from a file and say how: each step, what became of each candidate, by which rule."""
    level: Explain = "full" if full else "summary"
    if logged.decision is not None:
        service = Service(logged.url, logged.token)
        return _logged(logged.decision, service, lambda body: _decided(Asking(body, []), mode, level, json=json))
    return _situation(file, files, configuration, lambda found: _decided(found, mode, level, json=json))


def _logged(decision: str, service: Service, act: Callable[[bytes], int]) -> int:
    """``act`` on the request of a logged decision, with configuration, state and time as they were."""

    def asked() -> int:
        reply = service.get(f"/v1/decisions/{segment(decision)}/request?resolved=true")
        return act(reply.body) if reply.ok else refused(decision, reply)

    return guarded(asked, decision)


def _situation(file: str, files: list[str] | None, configuration: str | None, act: Callable[[Asking], int]) -> int:
    """``act`` on what the files say together."""
    return tried(file, lambda: act(as_request(gathered(file, files), configuration)))


def _decided(found: Asking, mode: Mode | None, level: Explain | None, *, json: bool) -> int:
    answered = answer(with_mode(found.body, mode), datetime.now(UTC), nothing_stored(), level)
    result = msgspec.json.decode(answered.body, type=Answer)
    if json:
        said = msgspec.json.encode({"findings": found.findings})[1:-1] + b"," if found.findings else b""
        say((b"{" + said + answered.body[1:]).decode())
    elif result.decisions or planned(result):
        report.answer(result, why=level is not None)
    else:
        say("nothing waits: there is no ask in it")
    if failed(found.findings):
        return BAD_INPUT
    if planned(result):
        return EVICTS
    return CANNOT if any(d.outcome in ("wait", "infeasible") for d in result.decisions) else NOTHING
