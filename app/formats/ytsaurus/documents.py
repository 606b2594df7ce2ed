"""YTsaurus' documents before they are read: YSON, and what a pool tree takes from elsewhere.

YSON is what ``yt get`` prints, text or binary, one document; attributes are ``{$attributes: …, $value: …}``. The parser
is YTsaurus' own, the extra ``arbiter-preemption[yson]``. What it makes is walked once, without recursion, and bounded
as other documents are. Writing text needs no extra.

A pool tree takes the templates of the scheduler's configuration that hold for it, and its pools presets. Source:
``TPoolsConfigParser`` and the strategy's ``BuildConfig``: what a tree or a pool says itself goes before a preset and a
template; maps are merged.
"""

import importlib
import re
from collections.abc import Mapping
from typing import Any, cast

from app.base.documents import MAX_BYTES, MAX_DEPTH, MAX_VALUES, Path, Unreadable, read
from app.formats.reader import Findings, Reader
from app.solver.question import safe_point

MEDIA_TYPE = "application/x-yt-yson-text"
"""Of text, as YTsaurus' HTTP proxies call it."""
_TEXT = re.compile(rb'\s*(<|\{\s*("(?:[^"\\]|\\.){0,500}"|[A-Za-z_][\w.\-]{0,500})\s*=|\{\s*\x01|\x01)')
_DEEP = re.compile(rb'"(?:[^"\\]|\\.)*"|[<\[{>\]}]', re.DOTALL)
_BINARY_STRING = b"\x01"


def is_yson(body: bytes) -> bool:
    """Whether ``body`` begins as YSON does and no JSON or YAML: with attributes, or a key before ``=``."""
    return _TEXT.match(body[:2048]) is not None


def read_any(body: bytes) -> list[tuple[Path, Any]]:
    """The documents of ``body``, in YSON, JSON or YAML. Raises Unreadable."""
    return read_yson(body) if is_yson(body) else read(body)


def read_yson(body: bytes) -> list[tuple[Path, Any]]:
    """The document of ``body``. Raises Unreadable."""
    if len(body) > MAX_BYTES:
        raise Unreadable(f"{len(body)} bytes: a manifest may have {MAX_BYTES}")
    _refuse_depth(body)
    try:
        parser: Any = importlib.import_module("yt.yson")
    except ImportError:
        raise Unreadable("this is YSON: to read it, install arbiter-preemption[yson]") from None
    safe_point()
    try:
        parsed = parser.loads(body, encoding=None, always_create_attributes=False)
    except (parser.YsonError, ValueError, TypeError, RecursionError) as error:
        raise Unreadable(
            f"no YSON: {str(error).splitlines()[0][:300] if str(error) else 'it ends too early'}"
        ) from None
    return [((), _plain(parsed))]


def _refuse_depth(body: bytes) -> None:
    """Brackets of text are counted before anybody recurses into them; in binary form strings hide brackets, so that the
    count is of no use, and the parser's own limit holds."""
    if _BINARY_STRING in body:
        return
    depth = 0
    for match in _DEEP.finditer(body):
        word = match[0]
        if word in b"<[{":
            depth += 1
            if depth > 2 * MAX_DEPTH:
                raise Unreadable(f"nested deeper than {MAX_DEPTH} levels")
        elif word in b">]}":
            depth -= 1


def _plain(root: Any) -> Any:
    """Dicts, lists and scalars. Raises Unreadable for what is too deep, too large or no text."""
    holder: list[Any] = [None]
    pending: list[tuple[Any, Any, Any, int]] = [(root, holder, 0, 1)]
    values = 0
    while pending:
        value, into, key, depth = pending.pop()
        safe_point()
        values += 1
        if depth > MAX_DEPTH:
            raise Unreadable(f"nested deeper than {MAX_DEPTH} levels")
        if values > MAX_VALUES:
            raise Unreadable(f"more than {MAX_VALUES} values")
        attributes = getattr(value, "attributes", None)
        if attributes:
            pair: dict[str, Any] = {"$attributes": None, "$value": None}
            into[key] = pair
            pending.append((dict(attributes), pair, "$attributes", depth + 1))
            into, key = pair, "$value"
        into[key] = _node(value, pending, depth)
    return holder[0]


def _node(value: Any, pending: list[tuple[Any, Any, Any, int]], depth: int) -> Any:
    if isinstance(value, dict):
        mapping = cast(dict[Any, Any], value)
        plain: dict[str, Any] = {_text(key): None for key in mapping}
        pending += [(inner, plain, _text(key), depth + 1) for key, inner in mapping.items()]
        return plain
    if isinstance(value, list):
        listed = cast(list[Any], value)
        items: list[Any] = [None] * len(listed)
        pending += [(inner, items, i, depth + 1) for i, inner in enumerate(listed)]
        return items
    return _scalar(value)


def _scalar(value: Any) -> Any:
    """Subclasses that carry attributes become the plain types that they are."""
    if isinstance(value, (bytes, str)):
        return _text(value)
    if type(value).__name__ == "YsonBoolean":
        return bool(value)
    if type(value).__name__ == "YsonEntity" or value is None:
        return None
    if isinstance(value, bool):
        return value
    return int(value) if isinstance(value, int) else float(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    try:
        return bytes(value).decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"a string is not UTF-8 at its byte {error.start}") from None


_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_ESCAPED = re.compile(r'[\x00-\x1f"\\\x7f]')


def write_yson(value: Any) -> str:
    """``value`` as text YSON that reads back as it was, a key or an item a line. Numbers are finite; integers have 64
    bits."""
    parts: list[str] = []
    _write(value, "\n", parts)
    return "".join(parts) + "\n"


def _write(value: Any, line: str, parts: list[str]) -> None:
    """``line``: what begins one, its indent included."""
    safe_point()
    if _has_attributes(value) and not _has_attributes(value["$value"]):  # which only one level of a node can have
        if value["$attributes"]:
            _write_pairs(value["$attributes"], "<>", line, parts)
            parts.append(" ")
        value = value["$value"]
    if isinstance(value, dict):
        _write_pairs(cast(dict[str, Any], value), "{}", line, parts)
    elif isinstance(value, list):
        parts.append("[")
        for item in cast(list[Any], value):
            parts.append(f"{line}    ")
            _write(item, f"{line}    ", parts)
            parts.append(";")
        parts.append(f"{line}]" if value else "]")
    else:
        parts.append(_written(value))


def _has_attributes(value: Any) -> bool:
    node = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    return set(node) == {"$attributes", "$value"} and isinstance(node["$attributes"], dict)


def _write_pairs(pairs: dict[str, Any], brackets: str, line: str, parts: list[str]) -> None:
    parts.append(brackets[0])
    for key, inner in pairs.items():
        parts.append(f"{line}    {key if _PLAIN_KEY.fullmatch(key) else _written(key)} = ")
        _write(inner, f"{line}    ", parts)
        parts.append(";")
    parts.append(f"{line}{brackets[1]}" if pairs else brackets[1])


def _written(value: Any) -> str:
    if isinstance(value, str):
        return f'"{_ESCAPED.sub(_escape, value)}"'
    if isinstance(value, bool):
        return "%true" if value else "%false"
    return "#" if value is None else repr(value)


def _escape(match: re.Match[str]) -> str:
    """Three octal digits: what comes after them can't be taken for more of them."""
    character = match[0]
    return f"\\{character}" if character in '"\\' else f"\\{ord(character):03o}"


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
    templates = [(path, _templates(document)) for path, document in documents if is_scheduler_configuration(document)]
    trees: list[tuple[Path, Any]] = []
    for path, document in documents:
        if not is_scheduler_configuration(document):
            place, name, tree = _chosen(path, document, findings)
            for where, of in templates:
                tree = _with_templates(tree, place, name, of, where, findings)
            trees.append((place, tree))
    return trees


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


def _chosen(path: Path, document: Any, findings: Findings) -> tuple[Path, str | None, Any]:
    """The place of the tree, its name where the source says it, and the tree."""
    attributes = _fields(_fields(document).get("$attributes"))
    trees = _fields(_fields(document).get("$value"))
    if not trees or not all("config" in _fields(_fields(tree).get("$attributes")) for tree in trees.values()):
        said = attributes.get("name") or str(attributes.get("path") or "").rpartition("/")[2]
        return path, said if isinstance(said, str) and said else None, document
    default = attributes.get("default_tree")
    name = default if isinstance(default, str) and default in trees else next(iter(trees))
    for other in trees:
        if other != name:
            detail = f"pool tree {other!r} is a cluster of its own: left out, {name!r} is read"
            findings.add("not-carried", "warning", (*path, "$value", other), detail)
    return (*path, "$value", name), name, trees[name]


def _templates(document: Any) -> Fields:
    top = _fields(document)
    return _fields(top.get(TEMPLATES) or _fields(top.get("$value")).get(TEMPLATES))


def _with_templates(tree: Any, path: Path, name: str | None, templates: Fields, where: Path, findings: Findings) -> Any:
    """``tree`` with the settings of templates whose filter is its whole name; of two the one of higher priority."""
    matching: list[tuple[int, str, Fields]] = []
    for key, template in templates.items():
        of = _fields(template)
        if of.get("filter") is None:
            continue
        if name is None:
            detail = "the source does not say the tree's name, by which templates hold: `yt get //sys/pool_trees` does"
            findings.add("unresolved", "error", path, detail)
            return tree
        if _matches(of["filter"], name, (*where, TEMPLATES, key), findings):
            priority = of.get("priority")
            matching.append((priority if isinstance(priority, int) else 0, key, _fields(of.get("config"))))
    plain = "$attributes" not in _fields(tree)
    attributes = dict(_fields(tree) if plain else _fields(_fields(tree)["$attributes"]))
    place: Path = path if plain else (*path, "$attributes")
    holder: Path = (*place, "config") if "config" in attributes else place
    own = _fields(attributes["config"]) if "config" in attributes else attributes
    settings: Fields = {}
    said: dict[str, str] = {}
    for _, key, config in sorted(matching, key=lambda match: match[0]):
        settings = _patched(settings, config)
        said |= dict.fromkeys(config, key)
    settings = _patched(settings, own)
    for field, key in said.items():
        if settings[field] != own.get(field):
            detail = f"of template {key!r} of the scheduler's configuration; an export writes it at the tree"
            findings.add("resolved", "info", (*holder, field), detail)
    attributes = {**attributes, "config": settings} if "config" in attributes else dict(settings)
    return attributes if plain else {**_fields(tree), "$attributes": attributes}


def _matches(pattern: Any, name: str, path: Path, findings: Findings) -> bool:
    """Whether ``pattern`` is all of ``name``. Those that could take long to look for are findings."""
    simple = isinstance(pattern, str) and _SIMPLE.fullmatch(pattern) and len(_REPEATED.findall(pattern)) <= 3
    if simple and len(name) <= 100:
        try:
            return re.fullmatch(cast(str, pattern), name) is not None
        except re.error:
            pass
    detail = f"whether it holds for pool tree {name[:100]!r} is not decided: no plain regular expression"
    findings.add("unresolved", "error", (*path, "filter"), detail)
    return False


def _patched(below: Fields, above: Fields) -> dict[str, Any]:
    """``above`` over ``below``; maps of both are merged."""
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _patched(_fields(merged[key]), _fields(value)) if both else value
    return merged
