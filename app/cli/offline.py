"""``decide`` and ``explain``: no server, no database, the same answers."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, TypeVar

import msgspec
from cyclopts import Parameter

from app.answering.answers import answer
from app.answering.sources import nothing_stored
from app.cli import report
from app.cli.configuration import Remote
from app.cli.manifests import as_request, with_mode
from app.cli.output import BAD_INPUT, CANNOT, EVICTS, NOTHING, complain, problems, read, say
from app.cli.remote import Service, guarded, refused, segment
from app.errors import ArbiterError
from app.solver.model.decision import Answer, planned
from app.solver.model.problems import InvalidInput
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


def decide(
    file: Situation = "-", /, *, json: Json = False, configuration: Queues = None, mode: AskedMode = None
) -> int:
    """Decide a request from a file: who would be evicted, and why.

    Exit code 0: nothing to evict, 1: somebody would be, 2: an ask can't run, 3: bad input.
    """
    return on_file(file, lambda body: _decided(with_mode(as_request(body, configuration), mode), None, json=json))


def explain(
    file: Situation = "-",
    /,
    *,
    json: Json = False,
    full: Annotated[bool, Parameter(negative=(), help="Every candidate and step, not only groups of them.")] = False,
    configuration: Queues = None,
    mode: AskedMode = None,
    decision: Annotated[
        str | None, Parameter(help="The id of a logged decision of the service, in place of a file: why it was so.")
    ] = None,
    remote: Remote = Remote(),  # noqa: B008
) -> int:
    """Decide a request from a file and say how: each step, what became of each candidate, by which rule."""
    level: Explain = "full" if full else "summary"
    if decision is not None:
        return _logged(decision, Service(remote.url, remote.token), lambda body: _decided(body, level, json=json))
    return on_file(file, lambda body: _decided(with_mode(as_request(body, configuration), mode), level, json=json))


def _logged(decision: str, service: Service, act: Callable[[bytes], int]) -> int:
    """``act`` on the request of a logged decision, with configuration, state and time as they were."""

    def asked() -> int:
        reply = service.get(f"/v1/decisions/{segment(decision)}/request?resolved=true")
        return act(reply.body) if reply.ok else refused(decision, reply)

    return guarded(asked, decision)


def on_file(file: str, act: Callable[[bytes], int]) -> int:
    """``act`` on the bytes of ``file``, with everything that can be wrong about them said on standard error."""
    try:
        return act(read(file))
    except OSError as error:
        complain(f"{file}: {error.strerror or error}")
    except InvalidInput as invalid:
        problems(file, invalid.problems)
    except ArbiterError as refused:
        problems(file, refused.problems)
    return BAD_INPUT


def _decided(body: bytes, level: Explain | None, *, json: bool) -> int:
    answered = answer(body, datetime.now(UTC), nothing_stored(), level)
    result = msgspec.json.decode(answered.body, type=Answer)
    if json:
        say(answered.body.decode())
    else:
        report.answer(result, why=level is not None)
    if planned(result):
        return EVICTS
    return CANNOT if any(d.outcome in ("wait", "infeasible") for d in result.decisions) else NOTHING
