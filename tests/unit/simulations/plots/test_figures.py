"""Where pictures lie on their page, and what is drawn in each: read from the figure, not from its paths."""

from datetime import UTC, datetime
from itertools import combinations
from typing import Any

import pytest
from matplotlib import dates

from app.simulations import drawing
from app.simulations.plots import Evictions, Panel, Usage, Waits
from tests.support.bounds import Bounded

AT = [0.0, 3600.0, 7200.0]
Box = tuple[float, float, float, float]
_dates: Any = dates


def boxes(figure: Any) -> list[Box]:
    """Left, bottom, right and top of each axes, in inches."""
    width, height = figure.get_size_inches()
    found = [axes.get_position() for axes in figure.axes]
    return [(box.x0 * width, box.y0 * height, box.x1 * width, box.y1 * height) for box in found]


def usage(count: int, resource: str = "cpu") -> Usage:
    return Usage(resource, AT, [Panel("" if i == 0 else f"q{i}", [1.0 + i, 2.0], [4.0, 3.0]) for i in range(count)])


WAITS = Waits({"all queues": [0.0, 3.0, 90.0, 4000.0], "team-a": [0.0, 90.0]}, never=2)
EVICTIONS = Evictions({"team-a": {"b": 100, "": 1}, "b": {"team-a": 36}})


def test_nothing_lies_on_anything_else_and_all_of_it_on_the_page(drawn: Any) -> None:
    empty = [Usage("cpu", [], []), Waits({}), Evictions({})]
    for pictures in ([usage(8), WAITS, EVICTIONS], [EVICTIONS, WAITS, usage(1)], empty, [WAITS]):
        figure = drawn(*pictures)
        width, height = figure.get_size_inches()
        found = boxes(figure)
        assert width == 9
        for left, bottom, right, top in found:
            assert 0.7 < left < right < width - 0.2
            assert 0 < bottom < top < height - 0.5
        for one, other in combinations(found, 2):
            apart = max(one[0] - other[2], other[0] - one[2]), max(one[1] - other[3], other[1] - one[3])
            assert max(apart) > 0.35, "room for what is said between them"
        tops = [round(top, 6) for _, _, _, top in found]
        assert tops == sorted(tops, reverse=True)
        assert min(bottom for _, bottom, _, _ in found) < 1.8, "and no more of the page than they need"
        said = [(text.get_text(), text.get_position()) for text in figure.texts]
        assert len(said) == 1 + len(pictures)
        heights = [y * height for _, (_, y) in said]
        assert heights == sorted(heights, reverse=True)
        assert 0 < height - heights[0] < 0.2
        assert all(0.1 < x * width < 0.2 for _, (x, _) in said)
        assert heights[1] < height - 0.4


def test_all_queues_lie_over_the_whole_width_and_the_others_three_in_a_row_below(drawn: Any) -> None:
    found = boxes(drawn(usage(6)))
    first, *others = found
    assert first[2] - first[0] > 7.5
    columns = sorted({round(box[0], 6) for box in others})
    assert len(columns) == 3
    assert (columns[0], round(others[2][2], 6)) == (round(first[0], 6), round(first[2], 6))
    assert len({round(box[2] - box[0], 6) for box in others}) == 1
    assert len({round(box[3] - box[1], 6) for box in found[1:]}) == 1
    assert len({round(box[1], 6) for box in others}) == 2
    assert first[1] > others[0][3] > others[3][3]
    assert boxes(drawn(usage(1)))[0][2] - boxes(drawn(usage(1)))[0][0] == pytest.approx(first[2] - first[0])


def test_usage_is_a_staircase_under_its_guarantee_in_units_that_are_read_easily(drawn: Any) -> None:
    whole, one, two = drawn(usage(3)).axes
    assert [axes.get_title(loc="left") for axes in (whole, one, two)] == ["all queues", "q1", "q2"]
    assert [axes.get_ylabel() for axes in (whole, one, two)] == ["cpu (cores)", "cpu (cores)", ""]
    filled, line, guarantee = (patch.get_data() for patch in one.patches)
    assert (list(filled.values), list(line.values), list(guarantee.values)) == ([2, 2], [2, 2], [4, 3])
    assert [patch.get_fill() for patch in one.patches] == [True, False, False]
    times = [_dates.date2num(datetime.fromtimestamp(at, UTC)) for at in AT]
    assert list(filled.edges) == times
    assert (one.get_xlim(), one.get_ylim()[0]) == ((times[0], times[-1]), 0)
    assert [text.get_text() for text in whole.get_legend().get_texts()] == ["usage", "capacity"]
    assert (one.get_legend(), one.patches[2].get_label()) == (None, "guarantee")
    for resource, largest, unit, shown in (
        ("memory", 2.0**31, "memory (GiB)", 2), ("memory", 1024.0, "memory (KiB)", 1),
        ("memory", 1023.0, "memory (B)", 1023),
        ("ephemeral-storage", 3 * 2.0**40, "ephemeral-storage (TiB)", 3), ("disk", 2.0**80, "disk (EiB)", 2.0**20),
        ("gpu", 2048.0, "gpu", 2048),
    ):  # fmt: skip
        (axes,) = drawn(Usage(resource, AT, [Panel("", [1.0, largest], [0.0, 0.0])])).axes
        assert axes.get_ylabel() == unit
        assert max(axes.patches[0].get_data().values) == shown


def test_panels_share_the_unit_of_the_largest_value(drawn: Any) -> None:
    whole, small = drawn(
        Usage("memory", AT, [Panel("", [2.0**30] * 2, [2.0**31] * 2), Panel("q", [1024.0] * 2, [0.0] * 2)])
    ).axes
    assert (whole.get_ylabel(), small.get_ylabel()) == ("memory (GiB)", "memory (GiB)")
    assert max(small.patches[0].get_data().values) == 2.0**-20


def test_waits_fall_from_all_that_started_to_nobody(drawn: Any) -> None:
    (axes,) = drawn(WAITS).axes
    first, second = axes.lines
    assert [list(first.get_xdata()), list(first.get_ydata())] == [[0.1, 0.5, 3, 90, 4000], [100, 75, 50, 25, 0]]
    assert [list(second.get_xdata()), list(second.get_ydata())] == [[0.1, 0.5, 90], [100, 50, 0]]
    assert [line.get_drawstyle() for line in axes.lines] == ["steps-post"] * 2
    assert first.get_linestyle() != second.get_linestyle()
    assert first.get_color() != second.get_color()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["all queues (4)", "team-a (2)"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    (left, right), (least, most) = axes.get_xlim(), axes.get_ylim()
    assert 0.5 < left < 1
    assert 4000 < right < 10_000
    assert 25 / 2 < least < 25
    assert 100 < most < 200
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1 s", "10 s", "1 min", "10 min", "1 h"]
    assert list(axes.get_xticks()) == [1, 10, 60, 600, 3600]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["100 %"]
    (many,) = drawn(Waits({"all queues": [float(i) for i in range(2000)]})).axes
    assert list(many.get_yticks()) == [100, 10, 1, 0.1]
    (more,) = drawn(Waits({"all queues": [float(i) for i in range(1, 4002)]})).axes
    assert len(more.lines[0].get_xdata()) == 1 + 1334 + 1, "every third, of two thousand at most, and both ends"
    (brief,) = drawn(Waits({"a": [0.0, 0.25], "b": [0.0], "none": []})).axes
    assert 2 < brief.get_xlim()[1] < 3
    assert len(brief.lines) == 2


def test_so_many_steps_are_drawn_and_the_last_is_always_there(bounded: Bounded) -> None:
    thinned = drawing._thinned  # pyright: ignore[reportPrivateUsage]
    values, shares = [float(i // 2) for i in range(40)], [float(40 - i) for i in range(40)]
    bounded(drawing, MOST_STEPS=20)
    assert thinned(values, shares) == ([float(i) for i in range(20)], [float(39 - 2 * i) for i in range(20)])
    bounded(drawing, MOST_STEPS=19)
    assert thinned(values, shares)[0] == [*range(0, 20, 2), 19]
    bounded(drawing, MOST_STEPS=5)
    assert thinned(values, shares) == ([0, 4, 8, 12, 16, 19], [39, 31, 23, 15, 7, 1])


def test_evictions_are_a_table_that_can_be_read(drawn: Any) -> None:
    (axes,) = drawn(EVICTIONS).axes
    assert axes.images[0].get_array().tolist() == [[10, 0, 1], [0, 6, 0]]
    assert axes.images[0].get_clim() == (0, 12.5), "the darkest is dark grey"
    told = {text.get_text(): (*text.get_position(), text.get_color()) for text in axes.texts}
    assert told == {"100": (0, 0, "white"), "1": (2, 0, "black"), "36": (1, 1, "black")}
    assert [text.get_text() for text in axes.get_xticklabels()] == ["b", "team-a", "nobody"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["team-a", "b"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("evicted for a job of", "job of")
    long = "research-and-development/vision-and-language"
    turned = {count: drawn(Evictions({long: {f"q{i}": 1000 for i in range(count)}})).axes[0] for count in (5, 6)}
    assert {count: {text.get_rotation() for text in axes.get_xticklabels()} for count, axes in turned.items()} == {
        5: {0}, 6: {40}
    }  # fmt: skip
    assert turned[5].get_yticklabels()[0].get_text() == long[:13] + "…" + long[-14:]
    for length, short in ((28, "x" * 28), (29, "x" * 13 + "…" + "x" * 14)):
        assert drawing._short("x" * length) == short  # pyright: ignore[reportPrivateUsage]
    (shades,) = drawn(Evictions({"a": {"b": 400, "c": 170, "d": 169}})).axes
    assert [text.get_color() for text in shades.texts] == ["white", "white", "black"]
    assert {text.get_text() for text in turned[6].texts} == {"1,000"}
    widths = [boxes(axes.figure)[0][2] - boxes(axes.figure)[0][0] for axes in turned.values()]
    assert widths[0] < widths[1] <= 9 - 2.3
