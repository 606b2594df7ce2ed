"""The pages for operators against the code: every setting, every metric, nothing else, and alerts on what there is."""

import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import Histogram
from pydantic_core import PydanticUndefined

from app.answering.operations import Answerer
from app.answering.snapshot_store import SnapshotStore
from app.answering.sources import Compiled
from app.base.settings import Settings
from app.configurations.heads import Heads
from app.metrics import Metrics
from app.workers.dispatcher import Dispatcher
from tests.support.threads import threads
from tests.unit.counted import Counted

PAGES = {
    name: (Path(__file__).parents[2] / "docs" / f"{name}.md").read_text() for name in ("deploy", "operate", "reference")
}
PAGE = "\n".join(PAGES.values())
SHORT = ("host", "port", "data_dir", "database_url", "workers")
IN_WORDS = {
    "data_dir": "the user's data folder; `/var/lib/arbiter` for root",
    "database_url": "none: embedded",
    "oidc_jwks_url": "as the provider's discovery document says",
    "oidc_scope_prefix": "empty",
    "oidc_client_id": "none",
    "oidc_client_secret": "none",
    "console_key": "one of each start",
}
_NAME = re.compile(r"\barbiter_[a-z_]+")


def section(title: str) -> str:
    """What stands below a heading of the second rank."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def variables(name: str) -> list[str]:
    """How a setting is called in the environment."""
    return [f"ARBITER_{name.upper()}", *([name.upper()] if name in SHORT else [])]


def test_every_setting_is_there_with_its_names_and_nothing_else_is() -> None:
    stated = [re.findall(r"`(\w+)`", cells[0]) for cells in rows(section("Settings"))]
    assert sorted(stated) == sorted(variables(name) for name in Settings.model_fields)


def test_defaults_are_the_real_ones() -> None:
    fields = {variables(name)[0]: (name, field) for name, field in Settings.model_fields.items()}
    for names, default, what in rows(section("Settings")):
        name, field = fields[re.findall(r"`(\w+)`", names)[0]]
        if name in IN_WORDS:
            assert default == IN_WORDS[name]
        elif field.default is None:
            assert default == "none"
        else:
            assert field.default is not PydanticUndefined, name
            number = isinstance(field.default, float) and field.default.is_integer()
            assert default == f"`{int(field.default) if number else field.default}`", name
        assert what, name


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_what_the_page_says_is_read_is_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "authentication": "required",
        "log_level": "debug",
        "log_format": "json",
        "decision_log": "sync",
        "simulation_worker": "elsewhere",
        "data_dir": "/srv/x",
    }
    given |= {"database_url": "postgresql://x", "snapshot_memory_bytes": "2097152", "max_body_bytes": "4096"}
    given |= {"console": "off", "examples": "off", "console_key": 32 * "k", "console_session_seconds": "77"}
    given |= {"trusted_proxies": "10.0.0.7,fd00::/8"}
    for one in Settings.model_fields:
        for variable in variables(one):
            monkeypatch.delenv(variable, raising=False)
    before = getattr(Settings(), name)
    if name == "oidc_issuer":
        monkeypatch.setenv("ARBITER_OIDC_AUDIENCE", "a")
        monkeypatch.setenv("ARBITER_AUTHENTICATION", "required")
    value = given.get(name, "7")
    for variable in variables(name):
        monkeypatch.setenv(variable, value)
        assert str(getattr(Settings(), name)).removesuffix(".0") == value != str(before)
        monkeypatch.delenv(variable)


@pytest.fixture(scope="module")
def metrics() -> dict[str, tuple[set[str], bool]]:
    """Each metric of a service under the name that Prometheus stores: its labels, and whether it is a histogram."""
    kept = Metrics()
    kept.follow(Heads(time.monotonic), 5.0)
    answerer = Answerer(Compiled(None), SnapshotStore(budget=1, idle=1, clock=time.monotonic))
    dispatcher = Dispatcher(answerer, None, threads(), small=1, seconds=1)
    kept.work(dispatcher)
    kept.answered("GET", "/healthz", 200, 0.1)
    kept.refusals.labels("forbidden").inc()
    kept.extender.labels("answered").inc()
    kept.effects.labels("same").inc()
    kept.shadow.labels("kueue", "agreed", "same").inc()
    kept.decided("kueue", ["preempt"], ["Preempted"], {"InClusterQueue": 1}, dict.fromkeys(kept.stages, 0.1))
    kept.log_dropped.labels("shutdown").inc()
    kept.registry.register(Counted())
    found: dict[str, tuple[set[str], bool]] = {}
    for family in kept.registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels}
        found[name] = (labels - {"le"}, family.type == "histogram")
    assert sum(histogram for _, histogram in found.values()) == len(kept.stages) + 1
    assert all(isinstance(stage, Histogram) for stage in kept.stages.values())
    return found


def metric_rows() -> list[tuple[str, set[str], str]]:
    """Name, labels and the alert of each line of the table."""
    found: list[tuple[str, set[str], str]] = []
    for name, _, alert in rows(section("Health, logs and metrics")):
        match = re.fullmatch(r"`(\w+)(?:\{([\w,]+)\})?`", name)
        assert match is not None, name
        found.append((match[1], set((match[2] or "").split(",")) - {""}, alert))
    return found


def alerts() -> list[dict[str, Any]]:
    """The rules that the page proposes."""
    found = re.search(r"```yaml\n(.*?)```", section("Health, logs and metrics"), re.DOTALL)
    assert found is not None
    (group,) = yaml.safe_load(found[1])["groups"]
    return group["rules"]


def test_every_metric_is_there_with_its_labels_and_nothing_else_is(
    metrics: dict[str, tuple[set[str], bool]],
) -> None:
    assert {name: labels for name, labels, _ in metric_rows()} == {name: found for name, (found, _) in metrics.items()}


def test_alerts_are_on_what_there_is(metrics: dict[str, tuple[set[str], bool]]) -> None:
    for rule in alerts():
        assert rule["annotations"]["summary"], rule
        for name in _NAME.findall(rule["expr"]):
            plain = name.removesuffix("_bucket")
            assert plain in metrics, (rule["alert"], name)
            assert metrics[plain][1] is (plain != name), (rule["alert"], name)
            for used in re.findall(rf"{name}\{{([^}}]*)\}}", rule["expr"]):
                assert set(re.findall(r"(\w+)\s*=", used)) <= metrics[plain][0], (rule["alert"], used)
    assert len({rule["alert"] for rule in alerts()}) == len(alerts())


def test_every_metric_worth_an_alert_has_one() -> None:
    watched = {name.removesuffix("_bucket") for rule in alerts() for name in _NAME.findall(rule["expr"])}
    assert {name for name, _, alert in metric_rows() if not alert.startswith("none")} == watched


def test_the_alert_on_the_waiting_log_is_half_of_its_queue() -> None:
    (rule,) = (rule for rule in alerts() if rule["alert"] == "ArbiterDecisionLogBehind")
    assert (
        rule["expr"]
        == f"arbiter_decision_log_waiting > {Settings.model_fields['decision_log_queue_entries'].default // 2}"
    )


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_the_contents_are_the_sections_in_order(page: str) -> None:
    contents = re.findall(r"^- \[([^]]+)\]\(#[a-z-]+\)", page, re.MULTILINE)
    assert contents == re.findall(r"^## (.+)$", page, re.MULTILINE)


def test_links_lead_to_headings() -> None:
    headings = {
        name: {
            re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
            for title in re.findall(r"^#+ (.+)$", page, re.MULTILINE)
        }
        for name, page in PAGES.items()
    }
    for name, page in PAGES.items():
        for other, anchor in re.findall(r"\]\((?:(deploy|operate|reference)\.md)?#([a-z0-9-]+)\)", page):
            assert anchor in headings[other or name], (name, anchor)
