"""Keep YTsaurus' state over a series of requests: what an answer said goes into the next request's state.

Arbiter keeps nothing between requests, so whoever asks does: starvation, since when an element is below its fair
share, and the volumes of integral guarantees come from ``POST /v1/shares``, a node's last preemptive scheduling and
its overcommit from a decision's notes.
Documents are JSON as sent and received; nothing is changed in place.
"""

from typing import Any

Json = dict[str, Any]

_CARRIED = ("starvation", "below_fair_share_since")
_VOLUME = ("accumulated_volume", "last_share_ratio")


def after_shares(state: Json, shares: Json) -> Json:
    """``state`` for the next request, given the answer of ``POST /v1/shares`` to this one."""
    operations: dict[str, Json] = shares.get("workloads") or {}
    pools: dict[str, Json] = shares.get("queues") or {}
    queues: dict[str, Json] = state.get("queues") or {}
    return state | {
        "workloads": [_with(one, operations.get(one["id"], {})) for one in state.get("workloads", [])],
        "queues": queues | {name: _with(queues.get(name, {}), element) for name, element in pools.items()},
    }


def after_heartbeats(state: Json, answer: Json) -> Json:
    """``state`` for the next request, given the answer of ``POST /v1/decisions`` in mode cycle to this one.

    Evictions and placements are the caller's to carry out and report; this keeps what only the scheduler knows.
    """
    said: Json = answer.get("notes") or {}
    notes: dict[str, Json] = said.get("nodes") or {}
    return state | {"nodes": [_noted(node, notes.get(node["name"])) for node in state.get("nodes", [])]}


def _with(element: Json, said: Json) -> Json:
    """An element with its starvation replaced: what is null now must not linger."""
    if not said:
        return element
    old: Json = element.get("ytsaurus") or {}
    block = {key: value for key, value in old.items() if key not in _CARRIED}
    integral: Json = said.get("integral_guarantees") or {}
    block |= {key: integral[key] for key in _VOLUME if key in integral}
    return element | {"ytsaurus": block | {key: said[key] for key in _CARRIED if said.get(key) is not None}}


def _noted(node: Json, notes: Json | None) -> Json:
    if notes is None:
        return node
    return node | {"ytsaurus": {key: value for key, value in notes.items() if value is not None}}
