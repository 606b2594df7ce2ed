"""One instant for each key, the first of them at hand, whatever was set and dropped before."""

import random

from app.solver.rounds import Wakes


def test_the_first_comes_first_and_each_only_once() -> None:
    wakes = Wakes()
    assert (wakes.first(), wakes.passed(100)) == (None, [])
    for key, at in (("late", 9), ("soon", 3), ("next", 5), ("soon", 4)):
        wakes.set(key, at)
    assert wakes.first() == 4
    assert sorted(wakes.keys()) == ["late", "next", "soon"]
    assert wakes.passed(3) == []
    assert wakes.passed(5) == ["soon", "next"]
    assert wakes.passed(8) == []
    assert wakes.first() == 9
    wakes.set("late", None)
    wakes.set("nobody", None)
    assert (wakes.first(), wakes.passed(9)) == (None, [])


def test_the_same_instant_again_is_one_instant() -> None:
    wakes = Wakes()
    for _ in range(3):
        wakes.set("a", 7)
    assert wakes.passed(7) == ["a"]
    assert wakes.passed(7) == []
    wakes.set("a", 7)
    wakes.clear()
    assert wakes.first() is None


def test_any_order_of_setting_and_dropping() -> None:
    """Against a plain mapping; keys are set so often that what was replaced must be swept out."""
    rng, wakes, plain = random.Random(3), Wakes(), dict[str, int]()
    for step in range(2000):
        key, at = f"k{rng.randint(0, 9)}", step + rng.randint(0, 40)
        if rng.random() < 0.2:
            wakes.set(key, None)
            plain.pop(key, None)
        else:
            wakes.set(key, at)
            plain[key] = at
        assert wakes.first() == min(plain.values(), default=None)
        if rng.random() < 0.1:
            due = sorted((when, name) for name, when in plain.items() if when <= step)
            assert wakes.passed(step) == [name for _, name in due]
            for _, name in due:
                del plain[name]


def test_what_was_replaced_often_is_swept_out_and_the_others_stay_in_order() -> None:
    wakes = Wakes()
    for i in range(10):
        wakes.set(f"k{i}", 100 - i)
    for at in range(200, 400):
        wakes.set("k0", at)
    assert wakes.passed(400) == [f"k{i}" for i in range(9, -1, -1)]
