"""What spares simulations changes no decision: each shortcut against the search without it."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.solver.engines.kai import chance, search, solver
from app.solver.engines.kai.actions import Cycle
from app.solver.engines.kai.chance import Chance
from app.solver.engines.kai.job_order import Clocks, VictimTable
from app.solver.engines.kai.jobs import PENDING, RELEASING, Share, total
from app.solver.engines.kai.overlay import Overlay
from app.solver.engines.kai.queue_order import NOTHING, QueueOrder, Standing
from app.solver.engines.kai.scenario import Headroom, Scenario
from app.solver.engines.kai.solver import Solver
from app.solver.engines.kai.state import Victim
from app.solver.engines.kai.validators import Protection
from tests.support.kai_world import ALL_ACTIONS, Json, Shape, cluster, crowded, decide
from tests.support.profiles import Met, examples

FAST = examples(120)


def _none(*_: object) -> None:
    return None


def _yes(*_: object) -> bool:
    return True


def _no(*_: object) -> bool:
    return False


def _step_by_step(standing: Standing, a: int, b: int, taken_a: Share, taken_b: Share) -> bool:
    order: QueueOrder = standing._order  # pyright: ignore[reportPrivateUsage]
    return order.first(a, b, NOTHING, NOTHING, taken_a, taken_b)


def _unknown(clocks: Clocks, overlay: Overlay, _job: int, queue: int, _passes: object) -> tuple[list[int], list[int]]:
    return [], clocks.preemptible(overlay)[queue]


def _look_again(_cycle: Cycle, _key: object, look: Callable[[], object]) -> object:
    return look()


def _everybody(overlay: Overlay, _mark: int) -> set[int]:
    return set(range(len(overlay.jobs.id)))


def _looked_at_anew(table: VictimTable, job: int) -> Victim:
    overlay: Overlay = table._overlay  # pyright: ignore[reportPrivateUsage]
    return table._look(job, overlay.in_order(job), len(overlay.jobs.tasks[job]))  # pyright: ignore[reportPrivateUsage]


def _wanted_of_all(overlay: Overlay, job: int) -> tuple[list[int], Share]:
    status, virtual, gang = overlay.status, overlay.virtual, overlay.jobs.gang[job]
    able = [t for t in overlay.in_order(job) if status[t] == PENDING or (status[t] == RELEASING and virtual[t])]
    if gang is None:
        tasks = able[: overlay.lacks(job)]
    else:
        tasks = gang.next_pods(overlay.active_pods(job), overlay.jobs.by_pod_set(able))
    return tasks, total(overlay.wants, tasks)


SHORTCUTS: list[tuple[Any, str, Callable[..., object]]] = [
    (Protection, "foregone", _none),
    (Headroom, "enough", _yes),
    (Scenario, "go_on", _no),
    (Solver, "_room_left", _yes),
    (Standing, "first", _step_by_step),
    (Clocks, "of", _unknown),
    (Cycle, "still", _look_again),
    (Overlay, "settled_since", _everybody),
    (Overlay, "wanted", _wanted_of_all),
    (VictimTable, "of", _looked_at_anew),
    (solver, "leaves_out", _no),
    (search, "leaves_out", _no),
]
"""Class or module, what it calls, and what stands for it where nothing is spared."""


@FAST
@example(seed=22602, rules="shipped", constraints=True, actions=["reclaim"], shares=True)  # traces in the books of 0.13
@example(seed=2609703, rules="shipped", constraints=True, actions=ALL_ACTIONS, shares=False)  # steps of draws
@given(
    seed=st.integers(0, 2**32), rules=st.sampled_from(["shipped", "documented"]), constraints=st.booleans(),
    actions=st.sampled_from([ALL_ACTIONS, ["reclaim"], ["preempt", "reclaim"], ["reclaim", "allocate", "reclaim"]]),
    shares=st.booleans(),
)  # fmt: skip
def test_a_shortcut_changes_no_decision(
    seed: int, rules: str, constraints: bool, actions: list[str], shares: bool
) -> None:
    shape = Shape(
        queues=4 + seed % 6, nodes=1 + seed % 5, workloads=6 + seed % 9, rules=rules, constraints=constraints,
        actions=actions, shares_of_gpus=shares,
    )  # fmt: skip
    body = cluster(seed, shape)
    plain = _decided(decide(body))
    for shortcut in SHORTCUTS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(*shortcut)
            assert plain == _decided(decide(body)), shortcut[1]


@examples(30)
@given(seed=st.integers(0, 2**32), large=st.booleans(), first=st.sampled_from(["allocate", "stalegangeviction"]))
def test_draws_that_begin_where_the_first_choice_is_come_to_the_same(
    met: Met, seed: int, large: bool, first: str
) -> None:
    """Each draw against a cycle of its own, in which every move is simulated. ``large``: jobs of large clusters enter
    heaps in one order, so that nothing is drawn before the cap on consolidation."""
    body = crowded(seed)
    body["configuration"]["settings"]["kai"] |= {
        "release": "0.17", "rules": "shipped", "actions": [first, "consolidation", "reclaim"],
        "max_consolidation_preemptees": 1,
    }  # fmt: skip
    for ask in body["asks"]:
        ask |= {"tasks": ask["tasks"][: 1 + seed % 2], "min_available": 1}
    with pytest.MonkeyPatch.context() as patch:
        if large:
            patch.setattr(chance, "_TABLE", 0)
        shared = decide(body)
        patch.setattr(Chance, "untouched", property(_no))
        patch.setattr(search, "all_fit", _yes)
        alone = decide(body)
    met([shared["plan"]["chance"]] if "chance" in shared["plan"] else [])
    assert {key: shared[key] for key in ("plan", "decisions")} == {key: alone[key] for key in ("plan", "decisions")}


def _decided(answer: Json) -> Json:
    """Everything but the sentences about those that wait, which may name another of several failures."""
    return {
        "plan": answer["plan"], "order": answer["order"],
        "decisions": [{k: v for k, v in d.items() if k != "conditions"} for d in answer["decisions"]],
    }  # fmt: skip
