"""Laws of KAI's minimum runtimes and fair shares, for any tree and any numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from app.solver.compiled import Tree
from app.solver.engines.kai.configuration import NODE_POOL, MinRuntimes, keeps_gang, protected
from app.solver.engines.kai.fair_share import KAI_UNLIMITED, Claims, Ranks, allocatable_share, fair_shares
from app.solver.engines.kai.rule_sets import RULE_SETS, RuleSet
from tests.support.profiles import examples

FAST = examples(200)


@st.composite
def trees(draw: st.DrawFn, most: int = 12) -> Tree:
    size = draw(st.integers(1, most))
    parent = [-1 if i == 0 else draw(st.integers(-1, i - 1)) for i in range(size)]
    return Tree([f"q{i}" for i in range(size)], parent)


@dataclass
class Case:
    tree: Tree
    total: float
    claims: Claims
    ranks: Ranks


@st.composite
def cases(draw: st.DrawFn) -> Case:
    tree = draw(trees())
    size = len(tree)
    amounts = st.integers(0, 40).map(float)
    own = draw(st.lists(amounts, min_size=size, max_size=size))
    request = own.copy()
    for q in reversed(tree.top_down):
        if tree.parent[q] >= 0:
            request[tree.parent[q]] += request[q]

    def each(values: st.SearchStrategy[float]) -> list[float]:
        return draw(st.lists(values, min_size=size, max_size=size))

    quota = st.one_of(st.just(KAI_UNLIMITED), amounts)
    claims = Claims(each(quota), each(quota), each(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.7])), request)
    priorities = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    created = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    return Case(tree, float(draw(st.integers(0, 120))), claims, Ranks(priorities, created, tree.names))


def divide(case: Case) -> list[float]:
    return fair_shares(case.tree, case.total, case.claims, case.ranks)


@FAST
@given(cases())
def test_nobody_gets_less_than_its_deserved_part_or_a_unit_more_than_it_may_ask_for(case: Case) -> None:
    share, claims = divide(case), case.claims
    for q in range(len(case.tree)):
        limit = claims.limit[q]
        wanted = claims.request[q] if limit == KAI_UNLIMITED else min(limit, claims.request[q])
        above = case.total if case.tree.parent[q] == -1 else share[case.tree.parent[q]]
        deserved = above if claims.deserved[q] == KAI_UNLIMITED else claims.deserved[q]
        assert min(deserved, wanted) <= share[q] < wanted + 1


@FAST
@given(cases())
def test_siblings_divide_no_more_than_there_is_unless_their_quotas_already_do(case: Case) -> None:
    share, claims, tree = divide(case), case.claims, case.tree
    for above, siblings in [(-1, tree.roots), *((q, tree.children[q]) for q in range(len(tree)))]:
        total = case.total if above == -1 else share[above]
        promised = sum(
            min(total if claims.deserved[q] == KAI_UNLIMITED else claims.deserved[q], _wanted(claims, q))
            for q in siblings
        )
        assert sum(share[q] for q in siblings) <= max(total, promised) + 1e-6


@FAST
@given(cases())
def test_nothing_is_left_while_someone_with_a_weight_still_wants_a_whole_unit(case: Case) -> None:
    share, claims, tree = divide(case), case.claims, case.tree
    left = case.total - sum(share[q] for q in tree.roots)
    hungry = [q for q in tree.roots if claims.weight[q] > 0 and _wanted(claims, q) >= share[q] + 1]
    assert left < 1 or not hungry


@FAST
@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_queues_in_the_document_does_not_matter_where_weights_are_exact(
    case: Case, random: Random
) -> None:
    tree, claims, ranks = case.tree, case.claims, case.ranks
    whole = Claims(claims.deserved, claims.limit, [1.0 if w else 0.0 for w in claims.weight], claims.request)
    order = list(range(len(tree)))
    random.shuffle(order)
    place = {q: i for i, q in enumerate(order)}
    moved = Tree([tree.names[q] for q in order], [-1 if tree.parent[q] == -1 else place[tree.parent[q]] for q in order])

    def pick(values: Sequence[float]) -> list[float]:
        return [values[q] for q in order]

    claims_moved = Claims(pick(whole.deserved), pick(whole.limit), pick(whole.weight), pick(whole.request))
    ranks_moved = Ranks([ranks.priority[q] for q in order], [ranks.created_at[q] for q in order], moved.names)
    first = fair_shares(tree, case.total, whole, ranks)
    second = fair_shares(moved, case.total, claims_moved, ranks_moved)
    assert [first[q] for q in order] == second


@FAST
@given(cases())
def test_the_allocatable_share_lies_between_what_is_deserved_and_the_limit(case: Case) -> None:
    share, claims = divide(case), case.claims
    for q in range(len(case.tree)):
        got, limit, deserved = (
            allocatable_share(claims.deserved[q], claims.limit[q], share[q]),
            claims.limit[q],
            claims.deserved[q],
        )
        assert limit == KAI_UNLIMITED or got <= limit
        assert deserved in (got, KAI_UNLIMITED) or got >= (deserved if limit == KAI_UNLIMITED else min(deserved, limit))


def _wanted(claims: Claims, q: int) -> float:
    return claims.request[q] if claims.limit[q] == KAI_UNLIMITED else min(claims.limit[q], claims.request[q])


@st.composite
def runtimes(draw: st.DrawFn) -> tuple[Tree, list[int | None], MinRuntimes, int, int]:
    tree = draw(trees())
    own = draw(st.lists(st.none() | st.integers(0, 5), min_size=len(tree), max_size=len(tree)))
    method = draw(st.sampled_from(["lca", "queue"]))
    at = st.integers(0, len(tree) - 1)
    built = MinRuntimes(tree, own, own, default_reclaim=9, default_preempt=8, method=method)
    return tree, own, built, draw(at), draw(at)


@FAST
@given(runtimes())
def test_a_minimum_runtime_comes_from_an_ancestor_of_the_victim_that_sets_it(
    case: tuple[Tree, list[int | None], MinRuntimes, int, int],
) -> None:
    tree, own, built, preemptor, victim = case
    for found, default in ((built.for_preempt(victim), 8), (built.for_reclaim(preemptor, victim), 9)):
        if found.set_by == NODE_POOL:
            assert found.micros == default
        else:
            assert own[found.set_by] == found.micros
            assert tree.is_ancestor(found.set_by, victim)


@FAST
@given(runtimes())
def test_a_value_below_the_branch_that_meets_the_preemptor_is_the_business_of_siblings_there(
    case: tuple[Tree, list[int | None], MinRuntimes, int, int],
) -> None:
    tree, own, _, preemptor, victim = case
    built = MinRuntimes(tree, own, own, default_reclaim=9, default_preempt=8, method="lca")
    found = built.for_reclaim(preemptor, victim)
    common = tree.lowest_common_ancestor(preemptor, victim)
    deeper = [q for q in tree.path(victim) if common == -1 or tree.depth[q] > tree.depth[common] + 1]
    if common != victim and found.set_by != NODE_POOL:
        assert found.set_by not in deeper or tree.parent[found.set_by] == -1


@FAST
@given(
    st.integers(-50, 50),
    st.none() | st.integers(-50, 50),
    st.integers(0, 50),
    st.sampled_from(list(RULE_SETS.values())),
)
def test_protection_ends_once_and_for_all(now: int, started: int | None, minimum: int, rules: RuleSet) -> None:
    if not protected(now, started, minimum, rules):
        assert not protected(now + 1, started, minimum, rules)
    if protected(now, started, minimum, rules):
        assert protected(now, started, minimum + 1, rules)
        assert started is not None
        assert now <= started + minimum


@FAST
@given(st.integers(0, 10), st.integers(0, 10), st.integers(0, 10))
def test_one_eviction_less_never_hurts_and_a_gang_loses_nothing(running: int, evicted: int, least: int) -> None:
    if keeps_gang(running=running, evicted=evicted + 1, min_available=least):
        assert keeps_gang(running=running, evicted=evicted, min_available=least)
    if least >= running and evicted:
        assert not keeps_gang(running=running, evicted=evicted, min_available=least)
