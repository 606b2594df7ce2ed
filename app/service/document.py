"""What the OpenAPI document says of the service as a whole, beside its operations and their shapes."""

from collections.abc import Sequence
from typing import Any, get_args

from fastapi import FastAPI
from fastapi.routing import APIRoute

from app.auth.callers import Scope
from app.http.description import describe
from app.http.openapi import SCHEMA, reference
from app.solver.model import kai, kueue, ytsaurus
from app.solver.model.configuration import Configuration, EngineName, TaintEffect
from app.solver.model.decision import Outcome
from app.solver.model.request import Explain, Mode
from app.solver.model.state import TaskState

SUMMARY = "To run this, what must stop, and why?"
DESCRIPTION = """
Arbiter answers a scheduler's hardest question with the decisions of Kueue, YuniKorn, KAI Scheduler and YTsaurus.

Send a cluster's queues (inline, or stored as a configuration), what runs on it, and what waits. The answer says for
each ask whether it can start, which running work must stop for it, in which order, and by which rule. The same request
gives the same answer, byte for byte.

Every error is `application/problem+json`; `errors` names each field at fault by JSON pointer, unknown fields and query
parameters too. `HEAD` works wherever `GET` does.
"""
TAGS = [
    {"name": "decisions", "description": "Questions about a cluster"},
    {"name": "comparisons", "description": "The same question under several rule books"},
    {"name": "plans", "description": "Work that is not submitted yet"},
    {"name": "extenders", "description": "Schedulers that ask before they evict"},
    {"name": "decision log", "description": "What was answered, and answering it again"},
    {"name": "snapshots", "description": "States that stay: changed by deltas, named by decisions"},
    {"name": "clusters", "description": "Clusters that are followed live: how old, how much, by whom"},
    {"name": "shadow", "description": "Real preemptions beside what Arbiter says for the moment before"},
    {"name": "configurations", "description": "Stored settings, flavors and queue trees, with immutable revisions"},
    {"name": "simulations", "description": "Decisions over time: a trace of jobs, round by round"},
    {"name": "traces", "description": "Jobs and changes over time, to play on other configurations"},
    {"name": "access", "description": "Tokens, and the log of every write and of refusals"},
    {"name": "operations", "description": "Health, readiness and metrics"},
]

_CHOICES = {
    "EngineName": EngineName,
    "Explain": Explain,
    "Mode": Mode,
    "Outcome": Outcome,
    "Scope": Scope,
    "TaintEffect": TaintEffect,
    "TaskState": TaskState,
    "KueueFungibility": kueue.Fungibility,
    "KueueSorting": kueue.Sorting,
    "KueueStrategy": kueue.Strategy,
    "KaiAction": kai.Action,
    "Rules": ytsaurus.Rules,
    "YtsaurusMode": ytsaurus.Mode,
    "YtsaurusPreemptionMode": ytsaurus.PreemptionMode,
    "YtsaurusPriorityScope": ytsaurus.PriorityScope,
    "YtsaurusStarvation": ytsaurus.Starvation,
    "YtsaurusStatus": ytsaurus.Status,
}


def common() -> dict[str, dict[str, Any]]:
    """By name in the document."""
    quantity = {"$ref": SCHEMA.format(name="Quantity")}
    return {
        "Resources": {"type": "object", "additionalProperties": quantity},
        "ConfigurationOrName": {"anyOf": [{"type": "string"}, reference(Configuration)]},
        **{name: {"type": "string", "enum": list(get_args(of))} for name, of in _CHOICES.items()},
    }


def described(app: FastAPI, routes: Sequence[APIRoute], shapes: tuple[type, ...]) -> dict[str, Any]:
    """The OpenAPI document, as ``/openapi.json`` and openapi/openapi.json have it; ``shapes``: all structs that
    operations refer to."""
    return describe(app, routes, shapes, common())
