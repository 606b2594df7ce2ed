"""What a state carries of each pool: starvation, and the volume of an integral guarantee."""

import math
from typing import TypedDict

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Floats, Ints
from app.solver.engines.ytsaurus.compile.configuration import CompiledConfiguration
from app.solver.engines.ytsaurus.compile.operations import NEVER, STARVATION_CODE, Levels
from app.solver.engines.ytsaurus.compile.reading import Reader
from app.solver.model.instant import micros
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.state import State
from app.solver.model.ytsaurus import PoolState


class PoolStates(TypedDict):
    """Columns of a cluster, by pool; ``pool_ratios`` with the root last."""

    pool_starvation: Levels
    pool_since: Ints
    pool_volumes: list[dict[str, float]]
    pool_ratios: Floats


def pool_states(config: CompiledConfiguration, state: State) -> PoolStates:
    """Raises InvalidInput."""
    starvation = np.zeros(len(config.tree), np.int8)
    since = np.full(len(config.tree), NEVER, np.int64)
    volumes: list[dict[str, float]] = [{} for _ in config.pools]
    ratios = np.zeros(len(config.tree) + 1)
    problems: list[Problem] = []
    for name, queue in state.queues.items():
        own = queue.ytsaurus
        if own is None:
            continue
        i = config.tree.index[name]
        starvation[i] = STARVATION_CODE[own.starvation]
        if own.below_fair_share_since is not None:
            since[i] = micros(own.below_fair_share_since)
        _check(own, Reader(("state", "queues", name, "ytsaurus"), problems))
        volumes[i] = own.accumulated_volume or {}
        ratios[i] = own.last_share_ratio or 0.0
    if problems:
        raise InvalidInput(problems)
    return PoolStates(pool_starvation=starvation, pool_since=since, pool_volumes=volumes, pool_ratios=ratios)


def _check(own: PoolState, read: Reader) -> None:
    read.number("last_share_ratio", own.last_share_ratio, 0.0)
    below = read.below("accumulated_volume")
    for resource, volume in (own.accumulated_volume or {}).items():
        below.number(resource, volume, 0.0)
        if volume == math.inf:
            below.refuse(resource, "not a finite number")
