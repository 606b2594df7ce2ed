from app.base import Lru


def test_what_was_not_used_for_longest_goes_first() -> None:
    kept = Lru[str, int](most=3, budget=100)
    for number, key in enumerate("abc"):
        kept.put(key, number, 1)
    assert kept.get("a") == 0
    kept.put("d", 3, 1)
    assert [key for key in "abcd" if key in kept] == ["a", "c", "d"]


def test_looking_whether_it_is_there_is_no_use() -> None:
    kept = Lru[str, int](most=2, budget=100)
    kept.put("a", 0, 1)
    kept.put("b", 1, 1)
    assert "a" in kept
    kept.put("c", 2, 1)
    assert "a" not in kept


def test_bytes_are_bounded_too() -> None:
    kept = Lru[str, int](most=10, budget=10)
    kept.put("a", 0, 4)
    kept.put("b", 1, 4)
    assert kept.has_room(2)
    assert not kept.has_room(3)
    kept.put("c", 2, 4)
    assert [key for key in "abc" if key in kept] == ["b", "c"]
    kept.put("b", 1, 1)
    assert kept.has_room(5)
    assert len(kept) == 2


def test_the_last_one_stays_whatever_its_size() -> None:
    kept = Lru[str, int](most=10, budget=10)
    kept.put("a", 0, 4)
    kept.put("large", 1, 1000)
    assert [key for key in ("a", "large") if key in kept] == ["large"]
    kept.put("b", 2, 1)
    assert [key for key in ("large", "b") if key in kept] == ["b"]


def test_what_is_not_there() -> None:
    assert Lru[str, int](most=1, budget=1).get("a") is None


def test_there_is_room_up_to_both_bounds() -> None:
    kept = Lru[str, int](most=2, budget=10)
    assert kept.has_room(10)
    assert not kept.has_room(11)
    kept.put("a", 0, 4)
    assert kept.has_room(6)
    kept.put("b", 1, 6)
    assert [key for key in "ab" if key in kept] == ["a", "b"], "as many and as much as there may be"
    assert not kept.has_room(0)
    assert kept.get("a") == 0
    kept.put("c", 2, 4)
    assert [key for key in "abc" if key in kept] == ["a", "c"]


def test_what_is_put_in_again_counts_once() -> None:
    kept = Lru[str, int](most=10, budget=10)
    for size in (8, 3, 5):
        kept.put("a", size, size)
    assert (kept.get("a"), len(kept)) == (5, 1)
    assert kept.has_room(5)
    assert not kept.has_room(6)
    kept.put("b", 0, 5)
    kept.put("a", 1, 6)
    assert [key for key in "ab" if key in kept] == ["a"], "which makes it the one used last"
    assert kept.has_room(4)
    assert not kept.has_room(5)
