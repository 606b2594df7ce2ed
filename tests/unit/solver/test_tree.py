import pytest

from app.solver.compiled import compile_tree
from app.solver.model.configuration import Queue
from app.solver.model.problems import InvalidInput


def queues(**parents: str | None) -> list[Queue]:
    return [Queue(name=name, parent=parent) for name, parent in parents.items()]


def test_paths_depths_and_common_ancestors() -> None:
    tree = compile_tree(queues(a="r", b="r", a1="a", r=None, other=None))
    at = tree.index
    assert [tree.names[i] for i in tree.path(at["a1"])] == ["a1", "a", "r"]
    assert tree.depth[at["a1"]] == 2
    assert tree.lowest_common_ancestor(at["a1"], at["b"]) == at["r"]
    assert tree.lowest_common_ancestor(at["a1"], at["a"]) == at["a"]
    assert tree.lowest_common_ancestor(at["a1"], at["other"]) == -1
    assert tree.root(at["a1"]) == at["r"]
    assert tree.is_ancestor(at["r"], at["a1"])
    assert not tree.is_ancestor(at["a1"], at["r"])
    assert {tree.names[i] for i in tree.under(at["a"])} == {"a", "a1"}
    order = [tree.names[i] for i in tree.top_down]
    assert order.index("r") < order.index("a") < order.index("a1")


def test_a_cycle_names_everybody_on_it() -> None:
    with pytest.raises(InvalidInput) as refused:
        compile_tree(queues(a="b", b="a", fine=None))
    assert [p.pointer for p in refused.value.problems] == [
        "/configuration/queues/0/parent",
        "/configuration/queues/1/parent",
    ]


def test_an_unknown_parent_is_an_error_unless_implied() -> None:
    with pytest.raises(InvalidInput):
        compile_tree(queues(a="ghost"))
    tree = compile_tree(queues(a="ghost"), implicit_parents=True)
    assert tree.names == ["a", "ghost"]
    assert tree.parent == [1, -1]
