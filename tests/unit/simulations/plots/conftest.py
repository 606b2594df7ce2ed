"""Pictures that are drawn and not written."""

from typing import Any

import pytest
from matplotlib.figure import Figure

from app.simulations import drawing
from app.simulations.plots import Drawing, Picture
from tests.support.instead import Instead


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch, instead: Instead) -> Any:
    """Draws pictures one below the other; the figure."""
    made: list[Any] = []

    def keep(**how: Any) -> Any:
        made.append(Figure(**how))
        Instead(monkeypatch)(made[-1], savefig=lambda *_, **__: None)  # what would be written nobody reads here
        return made[-1]

    instead(drawing, Figure=keep)

    def draw(*pictures: Picture) -> Any:
        drawing.svg(Drawing("title", list(pictures)))
        return made[-1]

    return draw
