"""What a pool tree of YTsaurus takes from elsewhere: which of several trees it is, the templates of the scheduler's
configuration that hold for it, and the presets of its pools.

Source: YTsaurus ``TPoolsConfigParser`` and the strategy's ``BuildConfig``: what a tree or a pool says itself goes
before a preset and a template; maps are merged.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from app.base.documents import Path
from app.formats.reader import Findings, Reader

Fields = Mapping[str, Any]
TEMPLATES = "template_pool_tree_config_map"
PRESETS = "pool_config_presets"
_OF_PRESETS = frozenset({
    "fair_share_starvation_timeout", "fair_share_preemption_timeout", "fair_share_starvation_tolerance",
    "enable_aggressive_starvation", "allow_aggressive_preemption", "allow_normal_preemption",
    "allow_regular_allocations_on_ssd_nodes", "allow_regular_jobs_on_ssd_nodes", "enable_lightweight_operations",
})  # fmt: skip
"""YTsaurus: ``TPoolPresetConfig``."""
_SIMPLE = re.compile(r"(?:[^*+?{)\\]|\\.|\)(?![*+?{])|[*+?](?!\+)){0,200}", re.DOTALL)
_REPEATED = re.compile(r"[*+?]")


def is_scheduler_configuration(document: Any) -> bool:
    """Whether this is ``//sys/scheduler/config`` with templates of trees."""
    return TEMPLATES in _fields(document) or TEMPLATES in _fields(_fields(document).get("$value"))


def one_tree(documents: list[tuple[Path, Any]], findings: Findings) -> list[tuple[Path, Any]]:
    """``documents`` without the scheduler's configuration, and of several trees together (``//sys/pool_trees``) the
    default one, else the first; with its templates' settings below its own."""
    templates = [(at, _templates(document)) for at, document in documents if is_scheduler_configuration(document)]
    found: list[tuple[Path, Any]] = []
    for at, document in documents:
        if not is_scheduler_configuration(document):
            place, name, tree = _chosen(at, document, findings)
            for where, of in templates:
                tree = _with_templates(tree, place, name, of, where, findings)
            found.append((place, tree))
    return found


def with_preset(pool: Reader, presets: Fields) -> Fields:
    """What the pool says, and of its preset what it does not say itself; each of that is a finding of severity info."""
    name = pool.value.get("config_preset")
    if not isinstance(name, str):
        return pool.value
    preset = presets.get(name)
    wrong = [f"no preset {name!r} among the tree's {PRESETS}"] if not isinstance(preset, dict) else [
        f"{key!r} is no option of a preset" for key in _fields(preset) if key not in _OF_PRESETS
    ]  # fmt: skip
    for detail in wrong:
        pool.warn("config_preset", f"{detail}: YTsaurus takes no change of the tree", "error", "unresolved")
    used = {key: value for key, value in _fields(preset).items() if key in _OF_PRESETS and key not in pool.value}
    for key in used:
        pool.warn(key, f"of preset {name!r}; an export writes it at the pool", "info", "resolved")
    return {**pool.value, **used}


def _fields(value: Any) -> Fields:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _chosen(at: Path, document: Any, findings: Findings) -> tuple[Path, str | None, Any]:
    """The place of the tree, its name where the source says it, and the tree."""
    attributes = _fields(_fields(document).get("$attributes"))
    trees = _fields(_fields(document).get("$value"))
    if not trees or not all("config" in _fields(_fields(tree).get("$attributes")) for tree in trees.values()):
        said = attributes.get("name") or str(attributes.get("path") or "").rpartition("/")[2]
        return at, said if isinstance(said, str) and said else None, document
    default = attributes.get("default_tree")
    name = default if isinstance(default, str) and default in trees else next(iter(trees))
    for other in trees:
        if other != name:
            detail = f"pool tree {other!r} is a cluster of its own: left out, {name!r} is read"
            findings.add("not-carried", "warning", (*at, "$value", other), detail)
    return (*at, "$value", name), name, trees[name]


def _templates(document: Any) -> Fields:
    top = _fields(document)
    return _fields(top.get(TEMPLATES) or _fields(top.get("$value")).get(TEMPLATES))


def _with_templates(tree: Any, at: Path, name: str | None, templates: Fields, where: Path, findings: Findings) -> Any:
    """``tree`` with the settings of templates whose filter is its whole name; of two the one of higher priority."""
    matching: list[tuple[int, str, Fields]] = []
    for key, template in templates.items():
        of = _fields(template)
        if of.get("filter") is None:
            continue
        if name is None:
            detail = "the source does not say the tree's name, by which templates hold: `yt get //sys/pool_trees` does"
            findings.add("unresolved", "error", at, detail)
            return tree
        if _matches(of["filter"], name, (*where, TEMPLATES, key), findings):
            priority = of.get("priority")
            matching.append((priority if isinstance(priority, int) else 0, key, _fields(of.get("config"))))
    plain = "$attributes" not in _fields(tree)
    attributes = dict(_fields(tree) if plain else _fields(_fields(tree)["$attributes"]))
    place: Path = at if plain else (*at, "$attributes")
    holder: Path = (*place, "config") if "config" in attributes else place
    own = _fields(attributes["config"]) if "config" in attributes else attributes
    settings: Fields = {}
    said: dict[str, str] = {}
    for _, key, config in sorted(matching, key=lambda one: one[0]):
        settings = _patched(settings, config)
        said |= dict.fromkeys(config, key)
    settings = _patched(settings, own)
    for field, key in said.items():
        if settings[field] != own.get(field):
            detail = f"of template {key!r} of the scheduler's configuration; an export writes it at the tree"
            findings.add("resolved", "info", (*holder, field), detail)
    attributes = {**attributes, "config": settings} if "config" in attributes else dict(settings)
    return attributes if plain else {**_fields(tree), "$attributes": attributes}


def _matches(pattern: Any, name: str, at: Path, findings: Findings) -> bool:
    """Whether ``pattern`` is all of ``name``. Those that could take long to look for are findings."""
    simple = isinstance(pattern, str) and _SIMPLE.fullmatch(pattern) and len(_REPEATED.findall(pattern)) <= 3
    if simple and len(name) <= 100:
        try:
            return re.fullmatch(cast(str, pattern), name) is not None
        except re.error:
            pass
    detail = f"whether it holds for pool tree {name[:100]!r} is not decided: no plain regular expression"
    findings.add("unresolved", "error", (*at, "filter"), detail)
    return False


def _patched(below: Fields, above: Fields) -> dict[str, Any]:
    """``above`` over ``below``; maps of both are merged."""
    made = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(made.get(key), dict)
        made[key] = _patched(_fields(made[key]), _fields(value)) if both else value
    return made
