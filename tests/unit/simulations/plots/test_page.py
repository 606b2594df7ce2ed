"""What a reader of a picture sees: everything on the page and nothing on anything else, as it is drawn; letters and
strokes by what they are for; ticks that say what they stand at."""

from itertools import combinations
from typing import Any, NamedTuple

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from app.simulations.plots import Evictions, Panel, Picture, Usage, Waits

pytestmark = pytest.mark.slow

LONG = "research-and-development/vision-and-language/evaluation"
GI = 2.0**30


def usage(names: list[str], at: list[float]) -> Usage:
    return Usage("memory", at, [Panel(name, [GI, 2 * GI], [3 * GI, 4 * GI]) for name in names])


AT = [0.0, 3600.0, 7200.0]
YEARS = [0.0, 4e7, 8e7]
USAGE = usage(["", *(f"{LONG}-{i}" for i in range(7))], AT)
WAITS = Waits({f"{LONG}-{i}": [0.0] * 123_456 + [86_400.0] if i == 3 else [7.0] for i in range(8)}, never=7)
EVICTIONS = Evictions({f"{LONG}-{i}": {f"{LONG}-{j}": 10_000 for j in range(10)} for i in range(8)})
NOTHING = [Usage("cpu", [], []), Waits({}), Evictions({})]


class Box(NamedTuple):
    """In inches from the page's lower left corner."""

    left: float
    bottom: float
    right: float
    top: float


class Page:
    """A page as it is drawn: ``axes`` with all that belongs to them, from the top; ``heads``: what is said above."""

    def __init__(self, figure: Any) -> None:
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        renderer: Any = canvas.get_renderer()
        self.figure = figure
        self.width, self.height = figure.get_size_inches()

        def box(found: Any) -> Box:
            return Box(*(float(at) / figure.dpi for at in (found.x0, found.y0, found.x1, found.y1)))

        self.plain = [box(axes.get_window_extent(renderer)) for axes in figure.axes]
        self.axes = [box(axes.get_tightbbox(renderer)) for axes in figure.axes]
        self.heads = [box(text.get_window_extent(renderer)) for text in figure.texts]
        legends = [axes.get_legend() for axes in figure.axes]
        self.legends = [None if one is None else box(one.get_window_extent(renderer)) for one in legends]
        self.texts = [[box(text.get_window_extent(renderer)) for text in axes.texts] for axes in figure.axes]


@pytest.fixture
def page(drawn: Any) -> Any:
    """Draws pictures one below the other."""

    def draw(*pictures: Picture) -> Page:
        return Page(drawn(*pictures))

    return draw


PAGES: list[list[Picture]] = [
    [USAGE, WAITS, EVICTIONS, *NOTHING, USAGE], [usage([""], YEARS)], [usage(["", "a", "b"], YEARS)], [WAITS],
    [EVICTIONS], *([one] for one in NOTHING), [usage(["", *"abc"], AT)], [usage(["", *"abcd"], AT)],
]  # fmt: skip


@pytest.mark.parametrize("pictures", PAGES)
def test_all_of_it_is_on_the_page_and_nothing_on_anything_else(page: Any, pictures: list[Picture]) -> None:
    drawn: Page = page(*pictures)
    boxes = [*drawn.axes, *drawn.heads]
    for box in boxes:
        assert 0 <= box.left < box.right <= drawn.width
        assert 0 <= box.bottom < box.top <= drawn.height
    for one, other in combinations(boxes, 2):
        across = min(one.right, other.right) - max(one.left, other.left)
        along = min(one.top, other.top) - max(one.bottom, other.bottom)
        assert min(across, along) < 0.02, "they touch at most"
    lowest = drawn.height
    for box in sorted(boxes, key=lambda box: -box.top):
        assert lowest - box.top < 0.35, "and no room is wasted"
        lowest = min(lowest, box.bottom)
    assert lowest < 0.35
    assert all(0.1 < head.left < 0.2 for head in drawn.heads)
    assert max(box.right for box in drawn.axes) > drawn.width - 0.75


def test_a_few_evictions_have_cells_of_a_readable_size(page: Any) -> None:
    (few,) = page(Evictions({"a": {"a": 1, "b": 1}, "b": {"b": 1}})).plain
    (many,) = page(EVICTIONS).plain
    assert 0.6 < (few.right - few.left) / 2 < 0.9
    assert 0.25 < (few.top - few.bottom) / 2 < 0.35
    assert (many.top - many.bottom) / 8 == pytest.approx((few.top - few.bottom) / 2)
    assert many.right - many.left > (few.right - few.left) * 2


def test_counts_lie_in_the_middle_of_their_cells(page: Any) -> None:
    for evictions in (EVICTIONS, Evictions({"a": {"b": 1}})):
        drawn: Page = page(evictions)
        (whole,), (texts,) = drawn.plain, drawn.texts
        across, down = len(evictions.counts[next(iter(evictions.counts))]), len(evictions.counts)
        width, height = (whole.right - whole.left) / across, (whole.top - whole.bottom) / down
        assert len(texts) == across * down
        for i, text in enumerate(texts):
            row, column = divmod(i, across)
            assert (text.left + text.right) / 2 == pytest.approx(whole.left + (column + 0.5) * width, abs=0.02)
            assert (text.top + text.bottom) / 2 == pytest.approx(whole.top - (row + 0.5) * height, abs=0.03)
            assert text.right - text.left < width
    for nothing in NOTHING:
        drawn = page(nothing)
        ((said,),), (axes,) = drawn.texts, drawn.plain
        assert (said.left + said.right) / 2 == pytest.approx((axes.left + axes.right) / 2, abs=0.02)
        assert (said.top + said.bottom) / 2 == pytest.approx((axes.top + axes.bottom) / 2, abs=0.03)
        assert not drawn.figure.axes[0].axison


def test_legends_lie_beside_what_they_tell_of(page: Any) -> None:
    drawn: Page = page(USAGE, WAITS)
    first, *others, last = drawn.plain
    above, beside = drawn.legends[0], drawn.legends[-1]
    assert drawn.legends[1:-1] == [None] * len(others)
    assert above is not None
    assert above.right == pytest.approx(first.right, abs=0.02)
    assert 0 <= above.bottom - first.top < 0.02
    assert above.top - above.bottom < 0.3, "both in one line"
    assert beside is not None
    assert 0 < beside.left - last.right < 0.2
    assert (beside.top + beside.bottom) / 2 == pytest.approx((last.top + last.bottom) / 2, abs=0.02)
    assert last.right - last.left > 4.5
    assert not any(axes.get_legend().get_frame_on() for axes in (drawn.figure.axes[0], drawn.figure.axes[-1]))


def test_letters_are_of_a_size_by_what_they_are_for(page: Any) -> None:
    figure = page(USAGE, WAITS, EVICTIONS).figure
    title, *heads = ({text.get_fontsize()} for text in figure.texts)
    counts = {text.get_fontsize() for text in figure.axes[-1].texts}
    others = {
        text.get_fontsize() for axes in figure.axes for text in axes.findobj(Text)
        if text.get_text() and text not in axes.texts
    }  # fmt: skip
    assert [len(sizes) for sizes in (title, *heads, counts, others)] == [1] * 6
    sizes = [*counts, *others, *heads[0], *title]
    assert sizes == sorted(set(sizes))
    assert (sizes[0], sizes[-1]) == (7.5, 10), "points"
    assert heads == [heads[0]] * 3
    assert [text.get_fontweight() for text in figure.texts] == ["bold"] + ["normal"] * 3


def test_strokes_are_as_wide_as_what_they_draw_matters(page: Any) -> None:
    figure = page(usage(["", "a"], AT), WAITS, EVICTIONS).figure
    first, panel, waits, evictions = figure.axes
    for axes in (first, panel, waits):
        assert axes.get_axisbelow() is True, "the grid is behind"
        grid = [line for axis in (axes.xaxis, axes.yaxis) for line in axis.get_gridlines()]
        assert grid
        assert all(line.get_visible() for line in grid)
        assert [axes.spines[side].get_visible() for side in ("left", "bottom", "top", "right")] == [True] * 2 + [
            False
        ] * 2
    assert not any(line.get_visible() for line in evictions.xaxis.get_gridlines())
    _, outline, guarantee = panel.patches
    (line, *_) = waits.lines
    strokes = [
        *(one.get_linewidth() for one in (panel.xaxis.get_gridlines()[0], outline, panel.spines["left"], guarantee)),
        line.get_linewidth(),
    ]
    assert strokes == sorted(set(strokes))
    assert 0.4 < strokes[0] < strokes[-1] < 1.5
    assert guarantee.get_linestyle() != outline.get_linestyle()
    assert first.get_xlabel() == ""
    assert (waits.get_xlabel(), waits.get_ylabel()) == ("waited longer than", "jobs that started")
    assert waits.get_legend().get_title().get_text() == "jobs of"


UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}


def test_ticks_of_waits_say_what_they_stand_at(page: Any) -> None:
    for longest, last in ((8.4e7, "100 d"), (8_640_000 / 1.2, "100 d"), (8_639_999 / 1.2, "10 d"), (1.0, "1 s")):
        (waits,) = page(Waits({"a": [0.0, longest]})).figure.axes
        labels = [text.get_text() for text in waits.get_xticklabels()]
        assert labels[-1] == last
        told = [int(count) * UNITS[unit] for count, unit in (label.split() for label in labels)]
        assert list(waits.get_xticks()) == told
        assert not list(waits.xaxis.get_minorticklocs())
        assert waits.get_xlim()[1] == pytest.approx(1.2 * max(2.0, longest))
    for count, last in ((7, "10 %"), (70_000, "0.001 %"), (100, "1 %"), (71, "1 %"), (69, "10 %")):
        (waits,) = page(Waits({"a": [1.0] * (count - 1) + [2.0], "b": [1.0, 3.0]})).figure.axes
        labels = [text.get_text() for text in waits.get_yticklabels()]
        assert labels[-1] == last
        assert list(waits.get_yticks()) == [float(label.split()[0]) for label in labels]
        assert waits.get_ylim() == pytest.approx((70 / count, 130))


def test_axes_of_time_say_when(page: Any) -> None:
    """Three ticks at least, no more than there is room for."""
    figure = page(usage(["", "a"], AT), usage(["", "a"], YEARS)).figure
    labels = [[text.get_text() for text in axes.get_xticklabels()] for axes in figure.axes]
    assert (labels[0][0], labels[0][-1]) == ("00:00", "02:00")
    assert [axes.xaxis.get_offset_text().get_text() for axes in figure.axes[:2]] == ["1970-Jan-01"] * 2
    for axes, most in zip(figure.axes, (10, 6, 10, 6), strict=True):
        locator = axes.xaxis.get_major_locator()
        assert (locator.minticks, set(locator.maxticks.values())) == (3, {most})
        assert 3 <= len(axes.get_xticks()) <= most + 1
        assert axes.get_ylim()[0] == 0
    (unused,) = page(Usage("cpu", AT, [Panel("", [0.0, 0.0], [0.0, 0.0])])).figure.axes
    assert unused.get_ylim()[0] == 0


def test_nobody_waited_only_where_all_started_at_once(page: Any) -> None:
    for lines, said in (
        ({"a": [0.0, 1.0]}, None), ({"a": [0.0], "b": [0.0, 0.0, 1.0]}, None), ({"a": [0.0, 0.0]}, "nobody waited"),
        ({"a": []}, "no job started"), ({"a": [], "b": [0.0]}, "nobody waited"), ({"a": [0.0, 0.25]}, None),
    ):  # fmt: skip
        drawn: Page = page(Waits(lines))
        assert [text.get_text() for text in drawn.figure.axes[0].texts] == ([] if said is None else [said])
        assert (drawn.height > 3) == (said is None)
