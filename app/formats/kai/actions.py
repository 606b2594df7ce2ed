"""The actions of a cycle, as a SchedulingShard says them: each on or off, in the order of falling priorities."""

from typing import Any

from app.formats.documents.reader import Reader
from app.solver.model.kai import Action

ACTIONS: tuple[Action, ...] = ("allocate", "consolidation", "reclaim", "preempt")
OTHER_ACTION = "stalegangeviction"


def shard_actions(actions: Reader) -> list[Action] | None:
    """Enabled actions by falling priority; KAI's default order is that of ACTIONS, a hundred apart from 500 down."""
    if not actions.value:
        return None
    ranked: list[tuple[float, int, Action]] = []
    for rank, action in enumerate(ACTIONS):
        one = actions.child(action)
        priority = one.integer("priority")
        if one.boolean("enabled") is not False:
            ranked.append((-(500 - 100 * rank if priority is None else priority), rank, action))
        one.close()
    other = actions.child(OTHER_ACTION)
    other.ignore("enabled", "priority")
    other.close()
    actions.close()
    return [action for _, _, action in sorted(ranked)]


def written_actions(actions: list[Action]) -> dict[str, Any]:
    """An order, each action once, as falling priorities; what is not listed is off."""
    shown: dict[str, Any] = {action: {"enabled": True, "priority": 1000 - i} for i, action in enumerate(actions)}
    return shown | {action: {"enabled": False} for action in ACTIONS if action not in shown}
