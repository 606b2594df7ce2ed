"""Every expression of the dashboard and of the alerts, parsed as Prometheus does, against what there is to ask for."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from app.base.settings import Settings
from app.following.follower import Pulse, Watch
from app.following.mirror import Mirror
from app.following.objects import followed
from app.metrics import Metrics
from app.service.main import create_app
from tests.unit.counted import Counted

ROOT = Path(__file__).parents[2] / "deploy"
OUTSIDE = {"instance", "job"}
"""Labels that Prometheus adds itself."""
PROBE = {"probe_success"}
"""Of the blackbox exporter, which asks /readyz."""


def panels() -> list[dict[str, Any]]:
    return json.loads((ROOT / "grafana" / "arbiter.json").read_text())["panels"]


def asked() -> Iterator[tuple[str, str]]:
    """Where an expression stands, and the expression, Grafana's variables filled in."""
    for panel in panels():
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m")
    variables = json.loads((ROOT / "grafana" / "arbiter.json").read_text())["templating"]["list"]
    for one in variables:
        if one["type"] == "query":
            found = re.fullmatch(r"label_values\((.*), (\w+)\)", one["definition"])
            assert found is not None
            yield one["name"], f"count by ({found[2]}) ({found[1]})"
    for group in yaml.safe_load((ROOT / "prometheus" / "alerts.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


def parts(expression: Any) -> Iterator[Any]:
    """An expression and all that it is made of."""
    yield expression
    below = [getattr(expression, name, None) for name in ("expr", "lhs", "rhs", "param", "vector_selector")]
    for one in [*below, *getattr(expression, "args", ())]:
        if one is not None:
            yield from parts(one)


@pytest.fixture(scope="module")
def served() -> dict[str, set[str]]:
    """The names of samples as a service and a follower serve them, and their labels."""
    following = Pulse(0.0, 0.0, Mirror(followed("kueue")).kinds(), Counter(["start"]), Counter(), True)
    kept = create_app(Settings(workers=0)).state.services.of(Metrics)
    kept.answered("GET", "/healthz", 200, 0.1)
    kept.refusals.labels("forbidden").inc()
    kept.extender.labels("answered").inc()
    kept.decided("kueue", ["preempt"], ["Preempted"], {"InClusterQueue": 1}, dict.fromkeys(kept.stages, 0.1))
    kept.log_dropped.labels("shutdown").inc()
    kept.shadowed("kueue", "agreed", "same")
    others = CollectorRegistry()
    others.register(Counted())
    others.register(Watch("prod", lambda: following))
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families((kept.text() + generate_latest(others)).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.parametrize(("where", "expression"), [*asked()])
def test_it_asks_for_what_there_is(where: str, expression: str, served: dict[str, set[str]]) -> None:
    everything = [*parts(promql.parse(expression))]
    selectors = [one for one in everything if isinstance(one, promql.VectorSelector) and one.name not in PROBE]
    assert selectors or any(name in expression for name in PROBE), where
    for selector in selectors:
        assert selector.name in served, (where, selector.name)
        labels = {matcher.name for matcher in selector.matchers.matchers}
        assert labels <= served[selector.name] | OUTSIDE, (where, selector.name)
    there = set().union(*(served[selector.name] for selector in selectors)) | OUTSIDE
    for one in everything:
        grouped = getattr(one, "modifier", None)
        if isinstance(one, promql.AggregateExpr) and grouped is not None:
            assert set(grouped.labels) <= there, (where, grouped.labels)


def test_every_metric_of_arbiter_is_on_the_dashboard_or_watched(served: dict[str, set[str]]) -> None:
    shown = {one.name for _, expression in asked() for one in parts(promql.parse(expression))
             if isinstance(one, promql.VectorSelector)}  # fmt: skip
    there = {_base(name) for name in served if name.startswith("arbiter_") and not name.endswith("_created")}
    assert there - {_base(name) for name in shown if name} == set()


def _base(name: str) -> str:
    return re.sub(r"_(bucket|sum|count)$", "", name)


def test_panels_lie_beside_one_another_and_say_what_they_show() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not taken & cells, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        assert panel["type"] == "row" or panel["description"], panel["title"]
    assert len({panel["id"] for panel in panels()}) == len(panels())
