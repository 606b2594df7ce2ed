"""Differences by structure: whatever is said is so, and nothing is left unsaid."""

import copy
from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.configurations.revisions import ConfigurationDiff, ValueChange, difference
from tests.support.profiles import examples

AMOUNTS = st.dictionaries(st.sampled_from(["guaranteed", "limit", "a/b", "a~b"]), st.integers(0, 2), max_size=3)
QUOTAS = st.dictionaries(st.sampled_from(["cpu", "nvidia.com/gpu"]), AMOUNTS, max_size=2)
GROUPS = st.lists(
    st.fixed_dictionaries(
        {
            "resources": st.sampled_from([["cpu"], ["cpu", "memory"]]),
            "flavors": st.lists(
                st.fixed_dictionaries({"name": st.sampled_from("xyz"), "quota": QUOTAS}),
                max_size=2,
                unique_by=lambda flavor: flavor["name"],
            ),
        }
    ),
    max_size=2,
)


def elements(extra: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[list[dict[str, Any]]]:
    one = st.fixed_dictionaries({"name": st.sampled_from("abcde")}, optional=extra)
    return st.lists(one, max_size=4, unique_by=lambda element: element["name"])


DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "engine": st.sampled_from(["kueue", "kai"]),
        "settings": st.dictionaries(st.sampled_from(["kueue", "kai"]), QUOTAS, max_size=2),
        "flavors": elements({"node_labels": AMOUNTS}),
        "queues": elements({"quota": QUOTAS, "resource_groups": GROUPS, "weight": st.integers(0, 2)}),
    },
)


def found(document: Any, pointer: str) -> Any:
    """What ``pointer`` leads to; UNSET where it leads nowhere."""
    at = document
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        try:
            at = at[int(key)] if isinstance(at, list) else at[key]
        except (KeyError, IndexError):
            return msgspec.UNSET
    return at


def changes(diff: ConfigurationDiff) -> Iterator[ValueChange]:
    yield from diff.settings
    for kind in (diff.flavors, diff.queues):
        for element in kind.changed:
            yield from element.changes


@examples(200)
@given(DOCUMENTS, DOCUMENTS)
def test_every_change_is_where_it_is_said_to_be(old: dict[str, Any], new: dict[str, Any]) -> None:
    diff = difference("c", 1, copy.deepcopy(old), 2, copy.deepcopy(new))
    for change in changes(diff):
        assert change.old != change.new
        if change.new is not msgspec.UNSET:
            assert found(new, change.pointer) == change.new
    for kind in ("flavors", "queues"):
        part = getattr(diff, kind)
        for element in part.added:
            assert found(new, element.pointer) == element.value
        for element in part.removed:
            assert found(old, element.pointer) == element.value


@examples(200)
@given(DOCUMENTS, DOCUMENTS)
def test_nothing_said_is_nothing_changed(old: dict[str, Any], new: dict[str, Any]) -> None:
    diff = difference("c", 1, old, 2, new)
    silent = not any(True for _ in changes(diff)) and not diff.reordered
    silent = silent and not any((*diff.queues.added, *diff.queues.removed, *diff.flavors.added, *diff.flavors.removed))
    kinds = ("queues", "flavors")
    same = all(old.get(kind, []) == new.get(kind, []) for kind in kinds)
    same = same and {k: v for k, v in old.items() if k not in kinds} == {k: v for k, v in new.items() if k not in kinds}
    assert silent == same
    assert diff.identical == (old == new)


@examples(100)
@given(DOCUMENTS, DOCUMENTS)
def test_backwards_is_the_mirror_image(old: dict[str, Any], new: dict[str, Any]) -> None:
    there, back = difference("c", 1, old, 2, new), difference("c", 2, new, 1, old)
    assert sorted(e.name for e in there.queues.added) == sorted(e.name for e in back.queues.removed)
    assert sorted(e.name for e in there.queues.changed) == sorted(e.name for e in back.queues.changed)
    assert there.reordered == back.reordered
    swapped = sorted((repr(change.old), repr(change.new)) for change in changes(there))
    assert swapped == sorted((repr(change.new), repr(change.old)) for change in changes(back))


def test_what_stands_in_another_order_is_told_of_queues_and_of_flavors_alike() -> None:
    pairs = {kind: [{"name": name} for name in "ab"] for kind in ("queues", "flavors")}
    for kind in pairs:
        turned = {**pairs, kind: pairs[kind][::-1]}
        assert difference("prod", 1, pairs, 2, turned).reordered
    assert not difference("prod", 1, pairs, 2, pairs).reordered
