"""The books of a session: whatever is undone leaves no trace, and what stays adds up."""

from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from app.solver.engines.kai.compile.configuration import compile_configuration
from app.solver.engines.kai.compile.jobs import PENDING, RELEASING
from app.solver.engines.kai.compile.state import compile_state
from app.solver.engines.kai.decide.order.victim_order import ACTIVE
from app.solver.engines.kai.decide.overlay import PLACE, Session
from app.solver.model.configuration import Configuration
from app.solver.model.instant import micros
from app.solver.model.request import DecisionRequest
from app.solver.model.state import State
from tests.kai_world import NOW, Shape, cluster

FAST = settings(derandomize=True, max_examples=150, deadline=None, database=None)


def open_session(seed: int, rules: str, *, shares: bool) -> Session:
    body = cluster(seed, Shape(rules=rules, shares_of_gpus=shares))
    request = msgspec.convert(body, DecisionRequest)
    assert isinstance(request.configuration, Configuration)
    assert isinstance(request.state, State)
    state = compile_state(compile_configuration(request.configuration), request.state)
    return Session(state, request.asks, micros(NOW))


def books(session: Session) -> dict[str, Any]:
    """Everything that a statement changes. Devices of GPUs may stay listed, empty."""
    return {
        "status": session.status.copy(), "node": session.node.copy(), "virtual": session.virtual.copy(),
        "ghost": session.ghost.copy(), "active": session.active.copy(), "used": session.used.copy(),
        "pending": session.pending.copy(), "miscounted": session.miscounted.copy(),
        "held": [c.copy() for c in session.held], "free": [c.copy() for c in session.free],
        "idle": [c.copy() for c in session.idle], "allocated": [c.copy() for c in session.allocated],
        "fixed": [c.copy() for c in session.fixed], "gpu_free": list(session.gpu_free()),
    }  # fmt: skip


def act(session: Session, random: Random) -> None:
    """One step that an action could take: no attempt evicts what it has placed itself."""
    t = random.randrange(len(session.status))
    n = random.randrange(len(session.node_names))
    status = session.status[t]
    evicted = status == RELEASING and session.virtual[t] == 1
    placed_now = any(op.task == t and op.kind == PLACE for op in session.ops)
    if (status in ACTIVE and not placed_now) or (evicted and random.random() < 0.3):
        session.evict(t)
    elif status == PENDING and session.fits_idle(t, n):
        session.allocate(t, n)
    elif (status == PENDING or evicted) and session.fits(t, n):
        session.pipeline(t, n)


@FAST
@given(st.integers(0, 2**32), st.sampled_from(["documented", "shipped"]), st.booleans())
def test_a_rollback_leaves_no_trace(seed: int, rules: str, shares: bool) -> None:
    session, random = open_session(seed, rules, shares=shares), Random(seed)
    for _ in range(3):
        marks = [(session.checkpoint(), books(session))]
        for _ in range(random.randint(1, 12)):
            act(session, random)
            if random.random() < 0.4:
                marks.append((session.checkpoint(), books(session)))
        for mark, before in reversed(marks):
            session.rollback(mark)
            assert books(session) == before
        for _ in range(random.randint(0, 4)):
            act(session, random)
        session.commit("reclaim", 0)


@FAST
@given(st.integers(0, 2**32))
def test_what_stays_adds_up(seed: int) -> None:
    """Under the documented rules queues and jobs hold what their pods hold, and nodes have what these leave."""
    session, random = open_session(seed, "documented", shares=False), Random(seed)
    for _ in range(random.randint(1, 3)):
        for _ in range(random.randint(1, 12)):
            act(session, random)
        session.commit("reclaim", 0)
    jobs, request = session.jobs, session.request
    for j, tasks in enumerate(jobs.tasks):
        assert session.active[j] == sum(session.status[t] in ACTIVE for t in tasks)
        assert session.pending[j] == sum(session.status[t] == PENDING for t in tasks)
    active = [t for t, status in enumerate(session.status) if status in ACTIVE]
    for q in range(len(session.paths)):
        below = [t for t in active if q in session.paths[jobs.queue[jobs.task_job[t]]]]
        fixed = [t for t in below if not jobs.preemptible[jobs.task_job[t]]]
        for r in range(3):
            assert session.allocated[r][q] == sum(request[t][r] for t in below)
            assert session.fixed[r][q] == sum(request[t][r] for t in fixed)
    for n, capacity in enumerate(session.state.capacity):
        for r in range(3):
            assert session.free[r][n] == capacity[r] - sum(request[t][r] for t in active if session.node[t] == n)
