"""A pool tree of YTsaurus with what it takes from elsewhere: presets, templates, the default one of several trees."""

from typing import Any

import pytest

from app.formats import export, import_configuration
from app.formats.reader import Imported
from tests.support.left_out import imported, said

Json = dict[str, Any]
PRESETS: Json = {
    "calm": {"fair_share_starvation_tolerance": 0.6},
    "quick": {"fair_share_starvation_tolerance": 0.5, "fair_share_starvation_timeout": 2000},
}


def tree(config: Json | None = None, **pools: Json) -> Json:
    of = {name: {"$attributes": pool, "$value": {}} for name, pool in pools.items()}
    return {"$attributes": {"config": config or {}}, "$value": of}


def pool(found: Imported, name: str = "p") -> Any:
    return next(queue for queue in found.configuration.queues if queue.name == name).ytsaurus


def test_a_preset_holds_where_the_pool_says_nothing() -> None:
    given = {"config_preset": "quick", "fair_share_starvation_timeout": 1000}
    found = imported("ytsaurus", tree({"pool_config_presets": PRESETS}, p=given, q={"config_preset": "calm"}))
    assert (pool(found).fair_share_starvation_tolerance, pool(found).fair_share_starvation_timeout) == (0.5, 1)
    assert pool(found, "q").fair_share_starvation_tolerance == 0.6
    at = "/$value/p/$attributes/fair_share_starvation_tolerance"
    assert said(found)[0] == ("info", "resolved", at, "of preset 'quick'; an export writes it at the pool")
    again = import_configuration(export(found.configuration, "ytsaurus").text.encode(), "ytsaurus")
    assert again.configuration == found.configuration
    assert again.findings == []


@pytest.mark.parametrize(
    ("presets", "detail"),
    [({}, "no preset 'calm' among the tree's pool_config_presets: YTsaurus takes no change of the tree"),
     ({"calm": {"mode": "fifo"}}, "'mode' is no option of a preset: YTsaurus takes no change of the tree")],
)  # fmt: skip
def test_a_preset_that_ytsaurus_refuses(presets: Json, detail: str) -> None:
    found = imported("ytsaurus", tree({"pool_config_presets": presets}, p={"config_preset": "calm"}))
    assert said(found) == [("error", "unresolved", "/$value/p/$attributes/config_preset", detail)]


def scheduler(**templates: tuple[int, str, Json]) -> Json:
    made = {key: {"priority": p, "filter": f, "config": c} for key, (p, f, c) in templates.items()}
    return {"template_pool_tree_config_map": made}


THREE: Json = {
    "low": (1, ".*", {"main_resource": "gpu", "fair_share_starvation_tolerance": 0.1,
                      "integral_guarantees": {"smooth_period": 1000}}),
    "high": (5, "phys.*", {"fair_share_starvation_tolerance": 0.2, "enable_pool_starvation": False}),
    "other": (9, "physic", {"main_resource": "memory"}),
}  # fmt: skip


def trees(**of: Json) -> Json:
    return {"$attributes": {"default_tree": "physical"}, "$value": of}


def test_templates_hold_below_what_the_tree_says_by_priority() -> None:
    own = {"enable_pool_starvation": True, "integral_guarantees": {"relaxed_share_multiplier_limit": 2}}
    given = [scheduler(**THREE), trees(cloud=tree(x={}), physical=tree(own, p={}))]
    for documents in (given, given[::-1]):
        found = imported("ytsaurus", *documents)
        settings = found.configuration.settings.ytsaurus
        assert settings is not None
        assert (settings.main_resource, settings.fair_share_starvation_tolerance) == ("gpu", 0.2)
        assert settings.enable_pool_starvation is True
        assert settings.integral_guarantees is not None
        assert settings.integral_guarantees.smooth_period == 1
        assert settings.integral_guarantees.relaxed_share_multiplier_limit == 2
        assert [queue.name for queue in found.configuration.queues] == ["p"]
        told = [(severity, rule, pointer.rpartition("/")[2]) for severity, rule, pointer, _ in said(found)]
        assert told == [
            ("warning", "not-carried", "cloud"), ("info", "resolved", "main_resource"),
            ("info", "resolved", "fair_share_starvation_tolerance"), ("info", "resolved", "integral_guarantees"),
        ]  # fmt: skip


def test_a_tree_without_a_config_is_its_own() -> None:
    document = {"$attributes": {"name": "physical", "main_resource": "cpu"}, "$value": {}}
    settings = imported("ytsaurus", scheduler(**THREE), document).configuration.settings.ytsaurus
    assert settings is not None
    assert (settings.main_resource, settings.fair_share_starvation_tolerance) == ("cpu", 0.2)


def test_templates_that_cannot_be_resolved_are_errors() -> None:
    found = imported("ytsaurus", scheduler(**THREE), tree(p={}))
    assert [(severity, rule, pointer) for severity, rule, pointer, _ in said(found)] == [("error", "unresolved", "/1")]
    for pattern in ("(a+)+", "a?a?a?a?", "[", "(?:a*)*", 5):
        named: Json = {"$attributes": {"path": "//sys/pool_trees/aaaa", "config": {}}, "$value": {}}
        found = imported("ytsaurus", scheduler(t=(1, pattern, {"main_resource": "gpu"})), named)
        at = "/0/template_pool_tree_config_map/t/filter"
        assert [(one[0], one[2]) for one in said(found) if one[1] == "unresolved"] == [("error", at)]
        assert found.configuration.settings.ytsaurus is None
