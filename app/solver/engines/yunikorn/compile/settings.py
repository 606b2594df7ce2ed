"""Queue properties as YuniKorn spells them, parsed as it parses them, and where each effective value comes from.

Durations are Go's (time.ParseDuration), in nanoseconds. A value that does not parse falls back to the default
and leaves a finding; it never fails (YuniKorn: validation rejects no property value).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from app.solver.compiled.tree import ROOTLESS, Tree
from app.solver.engines.yunikorn.compile.rule_sets import RuleSet
from app.solver.model import yunikorn as wire
from app.solver.model.duration import DurationError, nanoseconds

PREEMPTION_POLICY = "preemption.policy"
PREEMPTION_DELAY = "preemption.delay"
PRIORITY_POLICY = "priority.policy"
PRIORITY_OFFSET = "priority.offset"
QUOTA_DELAY = "quota.preemption.delay"
KNOWN = (PREEMPTION_POLICY, PREEMPTION_DELAY, PRIORITY_POLICY, PRIORITY_OFFSET, QUOTA_DELAY)

SECOND = 10**9
DEFAULT_DELAY = 30 * SECOND

Policy = Literal["default", "fence", "disabled"]
Properties = Mapping[str, str]

_INT32 = 2**31
_NUMBER = re.compile(r"[+-]?[0-9]+")
_LONGEST = 128
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Parsed:
    """One property value: what it means, what is wrong with it (None when nothing is), and the finding's rule."""

    value: int | str
    problem: str | None = None
    rule: str = "property-value"


def parse(name: str, text: str) -> Parsed:
    """The value of property ``name``; one of ``KNOWN``."""
    if name == PREEMPTION_POLICY:
        return _policy(text, ("default", "fence", "disabled"))
    if name == PRIORITY_POLICY:
        return _policy(text, ("default", "fence"))
    if name == PRIORITY_OFFSET:
        fits = len(text) <= _LONGEST and _NUMBER.fullmatch(text) and -_INT32 <= int(text) < _INT32
        return Parsed(int(text)) if fits else Parsed(0, f"{text[:64]!r} is not a 32-bit integer; 0 is used")
    default, meaning = (DEFAULT_DELAY, "30s is used") if name == PREEMPTION_DELAY else (0, "it is off")
    try:
        found = nanoseconds(text)
    except DurationError:
        return Parsed(default, f"{text[:64]!r} is not a Go duration; {meaning}")
    if found <= 0:
        rule = "negative-delay" if found < 0 else "property-value"
        return Parsed(default, f"{text[:64]!r} is not above zero; {meaning}", rule)
    return Parsed(found)


def _policy(text: str, known: tuple[str, ...]) -> Parsed:
    if text.lower() in known:
        return Parsed(text.lower())
    return Parsed("default", f"{text[:64]!r} is none of {', '.join(known)}; default is used")


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What a queue ends up with. Delays in nanoseconds, ``quota_delay`` 0 when off; ``sources``: by property, the
    queue whose document gives it (``child_template of x`` for a template), absent where the default holds."""

    preemption_policy: Policy = "default"
    preemption_delay: int = DEFAULT_DELAY
    priority_fence: bool = False
    priority_offset: int = 0
    quota_delay: int = 0
    sources: dict[str, str] = field(default_factory=dict[str, str])


def effective(tree: Tree, blocks: Sequence[wire.Queue | None], rules: RuleSet) -> list[QueueSettings]:
    """Settings of every queue of ``tree``; ``blocks`` are the queues' ``yunikorn`` blocks by index."""
    raw: list[dict[str, tuple[str, str]]] = [{} for _ in blocks]
    templates: list[tuple[str, Properties]] = [("", {}) for _ in blocks]
    found: list[QueueSettings] = [QueueSettings()] * len(blocks)
    for i in tree.top_down:
        block, above = blocks[i] or _NONE, tree.parent[i]
        templates[i] = _template(tree, templates, block, i)
        if block.dynamic:
            label, properties = templates[above] if above != ROOTLESS else _NO_TEMPLATE
            raw[i] = {name: (text, label) for name, text in properties.items()}
        else:
            raw[i] = _inherited(tree, raw, i, rules)
            raw[i] |= {name: (text, tree.names[i]) for name, text in block.properties.items()}
        found[i] = _settings({k: v for k, v in raw[i].items() if k in KNOWN}, above == ROOTLESS, rules)
    return found


_NONE = wire.Queue()
_NO_TEMPLATE: tuple[str, Properties] = ("", {})


def _template(tree: Tree, templates: list[tuple[str, Properties]], block: wire.Queue, i: int) -> tuple[str, Properties]:
    """A queue's own child template, or its parent's passed on (YuniKorn: dynamic parents pass it through)."""
    if block.child_template is not None and block.child_template.properties:
        return f"child_template of {tree.names[i]}", block.child_template.properties
    above = tree.parent[i]
    return templates[above] if above != ROOTLESS else _NO_TEMPLATE


def _inherited(tree: Tree, raw: list[dict[str, tuple[str, str]]], i: int, rules: RuleSet) -> dict[str, tuple[str, str]]:
    """What a configured queue takes over from its parent.

    Of policies only ``disabled`` passes down. Delays pass down in the released code; the design has
    preemption.delay on leaves only, and no effect of the root's policy.
    """
    above = tree.parent[i]
    if above == ROOTLESS:
        return {}
    out: dict[str, tuple[str, str]] = {}
    for name, (text, source) in raw[above].items():
        if name == PREEMPTION_POLICY:
            root = tree.parent[above] == ROOTLESS and rules == "documented"
            if text.lower() == "disabled" and not root:
                out[name] = (text, source)
        elif name == QUOTA_DELAY or (name == PREEMPTION_DELAY and rules == "shipped"):
            out[name] = (text, source)
    return out


def _settings(raw: dict[str, tuple[str, str]], root: bool, rules: RuleSet) -> QueueSettings:
    parsed = {name: parse(name, text) for name, (text, _) in raw.items()}

    def value(name: str, default: V) -> V:
        return parsed[name].value if name in parsed else default  # pyright: ignore[reportReturnType]

    ignored = {PREEMPTION_POLICY} if root and rules == "documented" else set[str]()
    return QueueSettings(
        preemption_policy="default" if ignored else value(PREEMPTION_POLICY, "default"),
        preemption_delay=value(PREEMPTION_DELAY, DEFAULT_DELAY),
        priority_fence=value(PRIORITY_POLICY, "default") == "fence",
        priority_offset=value(PRIORITY_OFFSET, 0),
        quota_delay=value(QUOTA_DELAY, 0),
        sources={
            name: raw[name][1] for name, of in parsed.items() if of.problem is None and name not in ignored
        },
    )  # fmt: skip
