"""The parts of a gang: each begins where the attempt began, and lists every victim once."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from app.solver.engines.kai.job_order import VictimOrder, VictimTable, sort_victims
from app.solver.engines.kai.overlay import Overlay
from app.solver.engines.kai.queue_order import QueueOrder, Standing
from app.solver.engines.kai.scenario import Group, Scenario
from app.solver.engines.kai.state import Key, Victim
from tests.support.kai_checks import check_listing, listing, watched
from tests.support.kai_parts import open_overlay
from tests.support.kai_world import Shape, cluster, crowded, decide
from tests.support.profiles import examples

FAST = examples(300)
SEEDS = st.integers(0, 2**32)


@FAST
@given(SEEDS)
def test_every_statement_keeps_the_books(seed: int) -> None:
    with watched():
        decide(crowded(seed))


@examples(150, FAST)
@given(SEEDS, st.sampled_from(["documented", "shipped"]), st.booleans())
def test_every_statement_of_a_whole_cycle_keeps_the_books(seed: int, rules: str, shares: bool) -> None:
    with watched():
        decide(cluster(seed, Shape(nodes=3, workloads=12, rules=rules, gangs=(1, 2, 3, 4), shares_of_gpus=shares)))


def test_parts_that_put_victims_back_are_among_those_played() -> None:
    """Otherwise the tests above look at nothing."""
    with watched() as seen:
        for seed in range(0, 600, 2):  # 0.13
            decide(crowded(seed))
    assert seen["put back"] > 10
    assert seen["gone on"] > 100


@FAST
@given(SEEDS)
def test_going_on_is_walking_again(seed: int) -> None:
    """Whatever of a part's listing is recorded for the next one: its scenario is that which walks as far afresh."""
    random = Random(seed)
    body = crowded(seed) if seed % 2 else cluster(seed, Shape(asks=1, gangs=(3,)))
    overlay = open_overlay(body)
    job = overlay.jobs.of_ask[0]
    part = overlay.jobs.tasks[job]
    standing = Standing(QueueOrder(overlay).frozen())
    table = VictimTable(overlay)
    running = [j for j in range(len(overlay.jobs.id)) if overlay.active[j] and overlay.leaf[j]]
    victims = sort_victims(overlay, map(table.of, running))
    order, scenario, walked = VictimOrder(overlay, standing, victims), Scenario(overlay, job), 0
    scenario.start(part, [])
    for _ in range(6):
        for _ in range(random.randint(0, 4)):
            scenario.grow(order)
            walked += 1
            check_listing(scenario)
        chunks = [group for groups in scenario.groups.values() for group in groups]
        recorded = random.sample(chunks, random.randint(0, min(3, len(chunks))))
        if random.random() < 0.3 or not scenario.go_on(part, recorded):
            order, walked = VictimOrder(overlay, standing, victims), 0
            scenario.start(part, recorded)
        assert listing(scenario) == listing(_from_scratch(overlay, job, recorded, standing, victims, walked))


def _from_scratch(
    overlay: Overlay,
    job: int,
    recorded: list[Group],
    standing: Standing,
    victims: dict[int, list[tuple[Key, Victim]]],
    walked: int,
) -> Scenario:
    order, scenario = VictimOrder(overlay, standing, victims), Scenario(overlay, job)
    scenario.start(overlay.jobs.tasks[job], recorded)
    for _ in range(walked):
        scenario.grow(order)
    return scenario
