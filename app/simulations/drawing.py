"""Numbers to SVG, by matplotlib: a drawing as JSON on standard input, SVG on standard output.

The same numbers give the same bytes: nothing of the machine's settings is used.
"""

import os
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import matplotlib
import msgspec
from matplotlib import dates
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from app.simulations.plots import Drawing, Evictions, Free, Panel, Picture, Usage, Waits

_mpl: Any = matplotlib  # its types are partial
_dates: Any = dates
_INCHES = 9.0
MOST_STEPS = 2000
_TITLE = 0.4
_LEFT, _RIGHT = 0.8, 0.25
_PANEL = 1.5
_ROW = 0.3
_COLUMNS = 3
_DARK, _FILL = "#22303c", "#9db8d2"
_STYLES = ("-", "--", ":", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (3, 1)))
"""Lines are told apart by these where there is no colour."""
_DASHES = (0, (4, 2))
_COLOURS = ("#22303c", "#1f77b4", "#d95f02", "#4d8a3a", "#8a4d9e", "#8c6d31", "#5f5f5f", "#c2185b")
_TICKS = {1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 36_000: "10 h", 86_400: "1 d", 864_000: "10 d",
          8_640_000: "100 d"}  # fmt: skip
_BLANKS = re.compile(rb"[ \t]+\n")
"""At the ends of lines: nothing is lost with them."""
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SETTINGS: dict[str, Any] = {
    "svg.hashsalt": "arbiter", "svg.fonttype": "path", "font.size": 8.5, "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.7, "axes.edgecolor": "#555555",
    "axes.grid": True, "grid.color": "#dddddd", "grid.linewidth": 0.5, "axes.axisbelow": True, "xtick.color": "#333333",
    "ytick.color": "#333333", "legend.frameon": False, "figure.facecolor": "white", "date.epoch": "1970-01-01T00:00:00",
    "timezone": "UTC",
}  # fmt: skip


class _Page:
    """A figure that is filled from the top: places are in inches, so that the same numbers give the same bytes. What a
    layout engine solves for is not the same twice in its last bits."""

    def __init__(self, figure: Any, height: float) -> None:
        self._figure = figure
        self._height = height
        self.top = 0.0

    def axes(self, left: float, down: float, width: float, height: float) -> Any:
        """A place of this size, ``down`` from the top of the present picture."""
        bottom = self._height - self.top - down - height
        return self._figure.add_axes(
            (left / _INCHES, bottom / self._height, width / _INCHES, height / self._height)
        )  # fmt: skip

    def text(self, down: float, said: str, **how: Any) -> None:
        """A line over the whole width."""
        height = 1 - (self.top + down) / self._height
        self._figure.text(0.15 / _INCHES, height, said, ha="left", va="top", **how)


def svg(drawing: Drawing) -> bytes:
    """The picture, as a document of its own."""
    with _mpl.rc_context():
        _mpl.rcParams.update(_mpl.rcParamsDefault)
        _mpl.rcParams.update(_SETTINGS)
        height = _TITLE + sum(map(_height, drawing.pictures))
        figure: Any = Figure(figsize=(_INCHES, height))
        FigureCanvasSVG(figure)
        page = _Page(figure, height)
        page.text(0.1, drawing.title, fontsize=10, fontweight="bold")
        page.top = _TITLE
        for picture in drawing.pictures:
            _draw(page, picture)
            page.top += _height(picture)
        out = BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": "Arbiter"})
    return _BLANKS.sub(b"\n", out.getvalue())


def _height(picture: Picture) -> float:
    """In inches."""
    match picture:
        case Usage() | Free():
            below = -(-max(0, len(picture.panels) - 1) // _COLUMNS)
            return 0.9 if not picture.panels else 2.6 + _PANEL * below
        case Waits():
            return 3.4 if any(values and values[-1] for values in picture.lines.values()) else 0.9
        case Evictions():
            return 2.1 + _ROW * len(picture.counts) if picture.counts else 0.9


def _draw(page: _Page, picture: Picture) -> None:
    match picture:
        case Usage():
            left_out = f"; {picture.left_out} queues with less are not drawn" if picture.left_out else ""
            page.text(0.05, f"Usage of {picture.resource} over time{left_out}", fontsize=9)
            _over_time(page, picture, "nothing was used", ("usage", "guarantee"))
        case Free():
            left_out = f"; {picture.left_out} more are not drawn" if picture.left_out else ""
            said = f"Free {picture.resource} over time: at most in one domain, and in all of a level{left_out}"
            page.text(0.05, said, fontsize=9)
            _over_time(page, picture, "no flavor has a topology, or nothing was free", ("in one domain", "in all"))
        case Waits():
            _waits(page, picture)
        case Evictions():
            _evictions(page, picture)


def _over_time(page: _Page, picture: Usage | Free, nothing: str, labels: tuple[str, str]) -> None:
    """The first panel over the whole width, with ``labels`` of what is filled and what is dashed; the others below it,
    all over the same time."""
    if not picture.panels:
        _nothing(page, nothing)
        return
    unit, scale = _unit(picture)
    times = [datetime.fromtimestamp(moment, UTC) for moment in picture.at]
    whole = _INCHES - _LEFT - _RIGHT
    first = page.axes(_LEFT, 0.55, whole, 1.6)
    _panel(first, picture.panels[0], times, scale, labels)
    first.set_ylabel(unit)
    first.legend(loc="lower right", ncols=2, bbox_to_anchor=(1, 1), borderaxespad=0)
    gap = 0.55
    width = (whole - gap * (_COLUMNS - 1)) / _COLUMNS
    for number, panel in enumerate(picture.panels[1:]):
        row, column = divmod(number, _COLUMNS)
        axes = page.axes(_LEFT + column * (width + gap), 2.75 + row * _PANEL, width, _PANEL - 0.55)
        _panel(axes, panel, times, scale, labels)
        if column == 0:
            axes.set_ylabel(unit)


def _panel(axes: Any, panel: Panel, times: list[datetime], scale: float, labels: tuple[str, str]) -> None:
    usage, guarantee = ([value / scale for value in values] for values in (panel.usage, panel.guarantee))
    axes.stairs(usage, times, fill=True, color=_FILL, label=labels[0])
    axes.stairs(usage, times, color=_DARK, linewidth=0.6, baseline=None)
    axes.stairs(guarantee, times, color="black", linewidth=1.1, linestyle=_DASHES, baseline=None,
                label=labels[1] if panel.name else "capacity")  # fmt: skip
    axes.set_title(_short(panel.name) or "all queues")
    axes.set_ylim(bottom=0)
    axes.set_xlim(times[0], times[-1])
    locator = _dates.AutoDateLocator(minticks=3, maxticks=6 if panel.name else 10)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(_dates.ConciseDateFormatter(locator))


def _waits(page: _Page, picture: Waits) -> None:
    never = f"; {picture.never} jobs never started" if picture.never else ""
    page.text(0.05, f"Waits to the first start{never}", fontsize=9)
    lines = {name: values for name, values in picture.lines.items() if values}
    if not lines or max(values[-1] for values in lines.values()) == 0:
        _nothing(page, "nobody waited" if lines else "no job started")
        return
    axes = page.axes(_LEFT, 0.35, _INCHES - _LEFT - 3.2, 2.45)
    longest = max(2.0, *(values[-1] for values in lines.values()))
    least = min(100 / len(values) for values in lines.values())
    for number, (name, values) in enumerate(lines.items()):
        left = [100 * (len(values) - i - 1) / len(values) for i in range(len(values))]
        shown, height = _thinned([max(value, 0.5) for value in values], left)
        style = {"linestyle": _STYLES[number % len(_STYLES)], "color": _COLOURS[number % len(_COLOURS)]}
        label = f"{_short(name)} ({len(values):,})"
        axes.step([0.1, *shown], [100, *height], where="post", label=label, linewidth=1.3, **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(0.9, longest * 1.2)
    axes.set_ylim(least * 0.7, 130)
    ticks = [tick for tick in _TICKS if tick <= longest * 1.2]
    axes.set_xticks(ticks, [_TICKS[tick] for tick in ticks])
    shares = [share for share in (100, 10, 1, 0.1, 0.01, 0.001) if share >= least * 0.7]
    axes.set_yticks(shares, [f"{share:g} %" for share in shares])
    axes.minorticks_off()
    axes.set_xlabel("waited longer than")
    axes.set_ylabel("jobs that started")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), title="jobs of", alignment="left")


def _thinned(values: list[float], shares: list[float]) -> tuple[list[float], list[float]]:
    """So many steps at most: more could not be told apart."""
    steps = list(dict(zip(values, shares, strict=True)).items())
    if len(steps) > MOST_STEPS:
        steps = [*steps[:: -(-len(steps) // MOST_STEPS)], steps[-1]]
    return [value for value, _ in steps], [share for _, share in steps]


def _evictions(page: _Page, picture: Evictions) -> None:
    total = sum(sum(row.values()) for row in picture.counts.values())
    page.text(0.05, f"Evictions from queue to queue ({total:,})", fontsize=9)
    if not total:
        _nothing(page, "nobody was evicted")
        return
    rows = list(picture.counts)
    columns = sorted({name for row in picture.counts.values() for name in row}, key=lambda name: (not name, name))
    table = [[picture.counts[row].get(column, 0) for column in columns] for row in rows]
    most = max(map(max, table))
    axes = page.axes(2.3, 0.4, min(_INCHES - 2.6, 0.75 * len(columns)), _ROW * len(rows))
    axes.imshow(
        [[value**0.5 for value in row] for row in table], cmap="Greys", aspect="auto", vmin=0, vmax=1.25 * most**0.5
    )
    axes.grid(visible=False)
    for y, row in enumerate(table):
        for x, value in enumerate(row):
            if value:
                dark = value**0.5 > 0.65 * most**0.5
                axes.text(
                    x, y, f"{value:,}", ha="center", va="center", color="white" if dark else "black", fontsize=7.5
                )
    turn = 0 if len(columns) <= 5 else 40
    axes.set_xticks(range(len(columns)), [_short(name) or "nobody" for name in columns], rotation=turn,
                    ha="right" if turn else "center")  # fmt: skip
    axes.set_yticks(range(len(rows)), [_short(name) for name in rows])
    axes.set_xlabel("evicted for a job of")
    axes.set_ylabel("job of")


def _nothing(page: _Page, text: str) -> None:
    axes = page.axes(_LEFT, 0.35, _INCHES - _LEFT - _RIGHT, 0.4)
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes, color="#555555")


def _short(name: str) -> str:
    """No longer than there is room for."""
    return name if len(name) <= 28 else f"{name[:13]}…{name[-14:]}"


def _unit(picture: Usage | Free) -> tuple[str, float]:
    """What the axes of a picture with panels are called, and what their values are divided by."""
    resource = picture.resource
    largest = max(max(panel.usage + panel.guarantee) for panel in picture.panels)
    if resource == "memory" or resource.endswith(("storage", "disk")):
        power = 0
        while largest >= 1024 ** (power + 1) and power < len(_BINARY) - 1:
            power += 1
        return f"{resource} ({_BINARY[power]}B)", float(1024**power)
    return {"cpu": "cpu (cores)"}.get(resource, resource), 1.0


_NICE = 10
"""Decisions go first where both want the processor."""


def main() -> None:
    """Draw what is read, and end."""
    with suppress(OSError):
        os.nice(_NICE)
    sys.stdout.buffer.write(svg(msgspec.json.decode(sys.stdin.buffer.read(), type=Drawing)))


if __name__ == "__main__":
    main()
