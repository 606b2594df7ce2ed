"""What an empty service on somebody's own machine begins with: something to look at on every page of the console."""

import json
from collections.abc import Callable
from typing import Any

from app.base.shipped import shipped
from app.simulations.examples import SIMULATION

NAME = "example"
_EXAMPLES = shipped("examples")
_DECISIONS = ("yunikorn-guarantee", "ytsaurus-starvation", "kai-reclaim")
Json = dict[str, Any]
Send = Callable[[str, str, bytes, str], None]
"""Sends a request: method, path, body, its media type. Raises what goes wrong."""
_JSON, _LINES = "application/json", "application/x-ndjson"


def fill(send: Send) -> None:
    """Decisions of every engine, one that waits, a snapshot with what waits beside it, a trace and two simulations.

    They are requests that anybody could send; nothing of them is special.
    """
    first = _example("kueue-classic")
    stored: Json = {**first, "configuration": NAME}
    waiting = json.loads(json.dumps(stored))
    waiting["asks"][0] |= {"id": "embeddings-large"}
    waiting["asks"][0]["tasks"][0]["count"] = 12
    for request in (*map(_example, _DECISIONS), stored, waiting):
        send("POST", "/v1/decisions", _json(request), _JSON)
    kept: Json = {"engine": first["engine"], "configuration": NAME, "state": first["state"], "asks": first["asks"]}
    send("PUT", f"/v1/snapshots/{NAME}", _json(kept), _JSON)
    send("PUT", f"/v1/traces/{NAME}?format=ndjson", b"\n".join(map(_json, SIMULATION["trace"]["jobs"])), _LINES)
    send("POST", "/v1/simulations", _json({**SIMULATION, "trace": NAME}), _JSON)
    send("POST", "/v1/simulations", _json(_example("loops/kueue-fair-sharing")), _JSON)


def _example(name: str) -> Json:
    return json.loads((_EXAMPLES / f"{name}.json").read_bytes())


def _json(document: Json) -> bytes:
    return json.dumps(document).encode()
