"""``arbiter starvation``: how statuses and starvation of YTsaurus' pools and operations move on over time."""

import json as documents
from datetime import datetime, timedelta
from typing import Annotated, Any

from cyclopts import Parameter

from app.answering.answers import shares
from app.answering.sources import nothing_stored
from app.base.errors import ArbiterError
from app.cli.offline import File, Json
from app.cli.output import BAD_INPUT, complain, problems, read, say, table
from app.cli.sources import as_json
from app.solver.engines.ytsaurus.answer import after_shares
from app.solver.model.duration import DurationError, parse
from app.solver.model.problems import InvalidInput

_MOST_STEPS = 10_000
_SAID = ("status", "starvation", "below_fair_share_since")


def starvation(
    file: File = "-",
    /,
    *,
    every: Annotated[str, Parameter(help="Time between two fair share updates, as in 1s or 1m30s.")] = "1s",
    times: Annotated[int, Parameter(help="How many updates, the first at the request's now.")] = 60,
    json: Json = False,
) -> int:
    """Update fair shares again and again, feeding each answer's starvation into the next request.

    Prints what changes and when; with --json the request as it stands in the end, to be decided.
    """
    try:
        request: dict[str, Any] = documents.loads(as_json(read(file)))
        step = timedelta(microseconds=parse(every))
        now = datetime.fromisoformat(request["now"])
        if not 1 <= times <= _MOST_STEPS:
            complain(f"--times: from 1 to {_MOST_STEPS}")
            return BAD_INPUT
        rows: list[list[str]] = []
        known: dict[tuple[str, str], tuple[Any, ...]] = {}
        for i in range(times):
            request = request | {"now": (now + i * step).isoformat().replace("+00:00", "Z")}
            answer = documents.loads(shares(documents.dumps(_question(request)).encode(), now, nothing_stored()))
            rows += _changes(request["now"], answer, known)
            request = request | {"state": after_shares(request["state"], answer)}
            request = request | {"options": _updated(request.get("options") or {}, request["now"])}
    except InvalidInput as invalid:
        problems(file, invalid.problems)
    except ArbiterError as refused:
        problems(file, refused.problems)
    except (OSError, DurationError, ValueError, KeyError, TypeError) as error:
        complain(f"{file}: {error if str(error) else type(error).__name__}")
    else:
        if json:
            say(documents.dumps(request))
        else:
            table(("at", "kind", "name", "status", "starvation", "below since"), rows)
        return 0
    return BAD_INPUT


def _question(request: dict[str, Any]) -> dict[str, Any]:
    """The part of a request that POST /v1/shares reads."""
    return {
        key: request[key] for key in ("engine", "now", "configuration", "state", "asks", "options") if key in request
    }


def _updated(options: dict[str, Any], now: str) -> dict[str, Any]:
    """``options`` of the next request: fair shares were updated ``now``."""
    return options | {"ytsaurus": (options.get("ytsaurus") or {}) | {"last_update_at": now}}


def _changes(now: str, answer: dict[str, Any], known: dict[tuple[str, str], tuple[Any, ...]]) -> list[list[str]]:
    """Rows for what differs from the last update; ``known`` is brought up to date."""
    rows: list[list[str]] = []
    for kind, of in (("pool", "queues"), ("operation", "workloads")):
        for name, element in answer.get(of, {}).items():
            said = tuple(element.get(key) for key in _SAID)
            if known.get((kind, name)) != said:
                known[(kind, name)] = said
                rows.append([now, kind, name, *(str(value or "") for value in said)])
    return rows
