"""Pictures: well-formed, the same bytes twice and in every process, and with what they are about in them."""

import os
import subprocess
import sys
from xml.etree import ElementTree

import msgspec
import pytest

from app.simulations.drawing import svg
from app.simulations.plots import Drawing, Evictions, Free, Panel, Usage, Waits

USAGE = Usage(
    "memory", [0.0, 3600.0, 7200.0],
    [Panel("", [2.0**30, 2.0**31], [2.0**32] * 2), Panel("team-a", [2.0**30, 0], [2.0**30] * 2),
     Panel("b", [0, 2.0**31], [0, 0])],
    left_out=3,
)  # fmt: skip
WAITS = Waits({"all queues": [0.0, 3.0, 90.0, 4000.0], "team-a": [0.0, 90.0]}, never=2)
EVICTIONS = Evictions({"team-a": {"b": 12, "": 1}, "b": {"team-a": 3}})
FREE = Free("gpu", [0.0, 3600.0, 7200.0], [Panel("f: rack", [2, 1], [4, 3]), Panel("f: host", [1, 1], [4, 3])], 1)
WHOLE = Drawing("kueue: fair", [USAGE, WAITS, EVICTIONS, FREE])


def comments(drawing: Drawing) -> set[str]:
    """Every text that is drawn: paths stand for it, and a comment says it."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.fromstring(svg(drawing), parser)
    assert root.tag.endswith("svg")
    return {(node.text or "").strip() for node in root.iter() if node.tag is ElementTree.Comment}


def test_axes_units_names_and_counts_are_there() -> None:
    said = comments(WHOLE)
    assert {"kueue: fair", "memory (GiB)", "all queues", "team-a", "usage", "capacity", "12", "nobody"} <= said
    assert {"Usage of memory over time; 3 queues with less are not drawn", "waited longer than", "10 min"} <= said
    assert {"Free gpu over time: at most in one domain, and in all of a level; 1 more are not drawn", "f: rack"} <= said
    assert {"in one domain", "in all"} <= said
    assert {"Waits to the first start; 2 jobs never started", "Evictions from queue to queue (16)"} <= said


@pytest.mark.parametrize(
    ("empty", "said"),
    [(Usage("cpu", [], []), "nothing was used"), (Waits({}), "no job started"), (Evictions({}), "nobody was evicted"),
     (Waits({"all queues": [0.0]}), "nobody waited"),
     (Free("cpu", [], []), "no flavor has a topology, or nothing was free")],
)  # fmt: skip
def test_nothing_to_draw_is_said(empty: Usage | Waits | Evictions | Free, said: str) -> None:
    assert said in comments(Drawing("", [empty]))


@pytest.mark.slow
def test_the_same_bytes_in_another_process_whatever_the_seed() -> None:
    asked = msgspec.json.encode(WHOLE)
    environment = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-m", "app.simulations.drawing"], input=asked, capture_output=True, check=True, env=environment
    )
    assert done.stdout == svg(WHOLE)
