"""Small schemas of the OpenAPI document that no struct has: enumerations, and unions that come often."""

from typing import Any, get_args

from app.auth.scopes import Scope
from app.http.openapi import SCHEMA, reference
from app.solver.model import kai, kueue, ytsaurus
from app.solver.model.configuration import Configuration, EngineName, TaintEffect
from app.solver.model.decision import Outcome
from app.solver.model.request import Explain, Mode
from app.solver.model.state import TaskState

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
