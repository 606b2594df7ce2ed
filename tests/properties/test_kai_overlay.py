"""The books of a overlay: whatever is undone leaves no trace, and what stays adds up."""

from random import Random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.solver.engines.kai.configuration import compile_configuration
from app.solver.engines.kai.jobs import ALLOCATED, GPU, PENDING, PIPELINED, RELEASING
from app.solver.engines.kai.overlay import ACTIVE, PLACE, Overlay
from app.solver.engines.kai.placing import FreeNodes
from app.solver.engines.kai.state import compile_state
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.request import DecisionRequest
from app.solver.model.state import State
from tests.support.kai_checks import check_books
from tests.support.kai_world import NOW, Shape, cluster
from tests.support.profiles import examples

FAST = examples(150)


def open_overlay(seed: int, rules: str, *, shares: bool) -> Overlay:
    body = cluster(seed, Shape(rules=rules, shares_of_gpus=shares))
    request = msgspec.convert(body, DecisionRequest)
    assert isinstance(request.configuration, Configuration)
    assert isinstance(request.state, State)
    state = compile_state(compile_configuration(request.configuration), request.state)
    return Overlay(state, request.asks, micros(NOW))


def books(overlay: Overlay) -> dict[str, Any]:
    """Everything that a statement changes, and that is then as it was. Devices of GPUs may stay listed, empty. Released
    0.17 takes steps back one by one where GPUs are shared: what is idle, and whole GPUs, need not be as they were."""
    found = {
        "status": overlay.status.copy(), "node": overlay.node.copy(), "virtual": overlay.virtual.copy(),
        "ghost": overlay.ghost.copy(), "active": overlay.active.copy(), "used": overlay.used.copy(),
        "pending": overlay.pending.copy(), "miscounted": overlay.counts.miscounted.copy(),
        "ops": overlay.ops.copy(), "undone": overlay.undone.copy(), "free": [c.copy() for c in overlay.free],
        "idle": [c.copy() for c in overlay.idle], "allocated": [c.copy() for c in overlay.allocated],
        "fixed": [c.copy() for c in overlay.fixed], "gpu_free": list(overlay.nodes.gpu_free()),
    }  # fmt: skip
    if overlay.by_steps:
        del found["ghost"], found["idle"], found["gpu_free"], found["free"][GPU]
    return found


def act(overlay: Overlay, random: Random) -> None:
    """One step that an action could take: no attempt evicts what it has placed itself."""
    t = random.randrange(len(overlay.status))
    n = random.randrange(len(overlay.node_names))
    status = overlay.status[t]
    evicted = status == RELEASING and overlay.virtual[t] == 1
    placed_now = any(op.task == t and op.kind == PLACE for op in overlay.ops)
    if (status in ACTIVE and not placed_now) or (evicted and random.random() < 0.3):
        overlay.evict(t)
    elif status == PENDING and overlay.fits_idle(t, n):
        overlay.allocate(t, n)
    elif (status == PENDING or evicted) and overlay.fits(t, n):
        overlay.pipeline(t, n)


@FAST
@given(st.integers(0, 2**32), st.sampled_from(["documented", "shipped"]), st.booleans())
def test_a_rollback_leaves_no_trace(seed: int, rules: str, shares: bool) -> None:
    overlay, random = open_overlay(seed, rules, shares=shares), Random(seed)
    for _ in range(3):
        marks = [(overlay.checkpoint(), books(overlay))]
        for _ in range(random.randint(1, 12)):
            act(overlay, random)
            if random.random() < 0.4:
                marks.append((overlay.checkpoint(), books(overlay)))
        for mark, before in reversed(marks):
            overlay.rollback(mark)
            assert books(overlay) == before
        for _ in range(random.randint(0, 4)):
            act(overlay, random)
        overlay.commit("reclaim", 0)


@FAST
@given(st.integers(0, 2**32), st.sampled_from(["documented", "shipped"]))
def test_a_cycle_goes_back_behind_statements_that_are_final(seed: int, rules: str) -> None:
    overlay, random = open_overlay(seed, rules, shares=False), Random(seed)
    bookmark, before, free = overlay.keep(), _cycle_books(overlay), FreeNodes(overlay, *_by_number(overlay))
    for _ in range(3):
        for _ in range(random.randint(1, 8)):
            act(overlay, random)
        free.refresh()
        overlay.journal.put_any(overlay.started, 0, overlay.now)
        overlay.commit("reclaim", 0)
        if random.random() < 0.3:
            overlay.go_back(bookmark)
            assert _cycle_books(overlay) == before
    seen = overlay.closed
    overlay.go_back(bookmark)
    assert _cycle_books(overlay) == before
    assert overlay.closed > seen, "what is known between two statements holds no more"
    free.refresh()
    fresh = FreeNodes(overlay, *_by_number(overlay))
    assert list(free.at_least(0, idle=False)) == list(fresh.at_least(0, idle=False))


def _cycle_books(overlay: Overlay) -> dict[str, Any]:
    return books(overlay) | {
        "evictions": overlay.evictions.copy(), "placed": list(overlay.placed), "version": overlay.version.copy(),
        "started": overlay.started.copy(), "evicted_at": overlay.evicted_at.copy(),
        "drift": overlay.counts.drift.copy(), "wanted": [overlay.wanted(j) for j in range(len(overlay.jobs.id))],
    }  # fmt: skip


def _by_number(overlay: Overlay) -> tuple[list[int], list[int]]:
    numbers = list(range(len(overlay.node_names)))
    return numbers, numbers


@FAST
@given(st.integers(0, 2**32))
def test_what_stays_adds_up(seed: int) -> None:
    """Under the documented rules queues and jobs hold what their pods hold, and nodes have what these leave."""
    overlay, random = open_overlay(seed, "documented", shares=False), Random(seed)
    for _ in range(random.randint(1, 3)):
        for _ in range(random.randint(1, 12)):
            act(overlay, random)
        overlay.commit("reclaim", 0)
    check_books(overlay)


@FAST
@given(st.integers(0, 2**32), st.sampled_from(["documented", "shipped"]))
def test_shares_of_gpus_add_up_too(seed: int, rules: str) -> None:
    overlay, random = open_overlay(seed, rules, shares=True), Random(seed)
    for _ in range(random.randint(1, 3)):
        marks = [overlay.checkpoint()]
        for _ in range(random.randint(1, 12)):
            for j in range(len(overlay.jobs.id)):
                overlay.wanted(j)
            act(overlay, random)
            check_books(overlay)
        if random.random() < 0.3:
            overlay.rollback(marks[0])
        overlay.commit("reclaim", 0)
        check_books(overlay)


@FAST
@given(st.integers(0, 2**32))
def test_a_gang_that_waits_gives_back_what_was_idle(seed: int) -> None:
    """Pods placed idle that wait after all keep their place and hold nothing now."""
    overlay, random = open_overlay(seed, "documented", shares=bool(seed % 2)), Random(seed)
    for _ in range(30):
        t, n = random.randrange(len(overlay.status)), random.randrange(len(overlay.node_names))
        if overlay.status[t] == PENDING and overlay.fits_idle(t, n):
            overlay.allocate(t, n)
    started = [t for t, status in enumerate(overlay.status) if status == ALLOCATED]
    overlay.make_pipelined()
    assert all(overlay.status[t] == PIPELINED for t in started)
    check_books(overlay)
