"""A configuration compiled for YuniKorn: one tree named root, guarantees and limits, properties in effect; the two rule
sets, and every place where they part.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal, TypeVar

from app.solver.compiled import ROOTLESS, ResourceIndex, Tree, compile_tree
from app.solver.engines.yunikorn.limits import Limits, compile_limits
from app.solver.model import yunikorn as wire
from app.solver.model.base import UNLIMITED, DurationError, QuantityError, nanoseconds, parse_quantity, units
from app.solver.model.configuration import Configuration, Place, PlacedQuota, Queue, quotas
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.question import safe_point

RELEASES: Final[dict[str, str]] = {"be3bb487": "yunikorn-core as of that commit (July 2026)"}
"""Those that ``shipped`` can be."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The choices of one rule set.

    ``reads_root_policy``: preemption.policy of the root has an effect. ``inherits_delay``: configured queues take over
    their parent's preemption.delay. ``ancestors_by_path``: a queue whose path is a textual prefix is an ancestor.
    ``keeps_guarantees``: laws 2, 4 and 5 hold without exception. ``spares_application``: no ask evicts tasks of its own
    application. ``opted_out_last``: of those who go for a quota, originators and who opted out come last, not first.
    ``counts_expected``: what asks that wait for their victims will use counts as used. ``counts_free``: what is free on
    a node counts together with victims. ``keeps_apart``: room on a node that an ask reserved which requires it is not
    given to another that requires it. ``counts_nothing``: of a resource that is over its limit even 0 is too much.
    """

    name: wire.Rules
    reads_root_policy: bool
    inherits_delay: bool
    ancestors_by_path: bool
    keeps_guarantees: bool
    spares_application: bool
    opted_out_last: bool
    counts_expected: bool
    counts_free: bool
    keeps_apart: bool
    counts_nothing: bool

    @property
    def other(self) -> "RuleSet":
        """The one to compare with."""
        return next(rules for rules in RULE_SETS.values() if rules != self)


RULE_SETS: Final[dict[wire.Rules, RuleSet]] = {
    rules.name: rules for rules in (
        RuleSet(
            name="documented", reads_root_policy=False, inherits_delay=False, ancestors_by_path=False,
            keeps_guarantees=True, spares_application=True, opted_out_last=True, counts_expected=True, counts_free=True,
            keeps_apart=True, counts_nothing=False,
        ),
        RuleSet(
            name="shipped", reads_root_policy=True, inherits_delay=True, ancestors_by_path=True,
            keeps_guarantees=False, spares_application=False, opted_out_last=False, counts_expected=False,
            counts_free=False, keeps_apart=False, counts_nothing=True,
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the rule sets part: what each of them does."""

    name: str
    documented: str
    shipped: str
    source: str
    """Where the released code does so."""

    @property
    def rule(self) -> str:
        """Its id in explanations."""
        return f"difference-{self.name}"

    def of(self, rules: RuleSet) -> str:
        """What that rule set does."""
        return getattr(self, rules.name)


ROOT_POLICY: Final = Difference(
    "root-policy",
    "preemption.policy on the root has no effect",
    "'disabled' on the root is inherited by configured queues",
    "queue.go, mergeProperties",
)
PARENT_DELAY: Final = Difference(
    "parent-delay", "preemption.delay works on the leaf that sets it", "configured leaves inherit preemption.delay",
    "queue.go, mergeProperties",
)  # fmt: skip
ANCESTRY: Final = Difference(
    "ancestry", "an ancestor is one in the tree", "a queue whose path is a textual prefix counts as an ancestor",
    "preemption.go, GetRemainingGuaranteedResource",
)  # fmt: skip
ASK_GUARANTEE: Final = Difference(
    "ask-guarantee",
    "below the fork the ask's side must be under its guarantee before, and may end above it",
    "the ask must fit into what is left of the asking queue's guarantee",
    "preemption.go, checkPreemptionQueueGuarantees",
)
VICTIM_GUARANTEE: Final = Difference(
    "victim-guarantee",
    "nobody falls below a guarantee; queues that victim and ask share are judged with the ask placed",
    "a queue that is over its guarantee may be taken below it",
    "preemption.go, calculateVictimsByNode",
)
SAME_APPLICATION: Final = Difference(
    "same-application",
    "no task of the ask's own application",
    "tasks outside the asking queue, whatever their application",
    "queue.go, findEligiblePreemptionVictims",
)
OPTED_OUT: Final = Difference(
    "opted-out",
    "opted-out tasks only when nothing else makes room on any node",
    "opted-out tasks come last on their node",
    "preemption.go, sortVictimsForPreemption",
)
FREE_SPACE: Final = Difference(
    "free-space",
    "free space of the node counts together with the victims",
    "the victims alone must reach the ask, and collecting stops as soon as one resource is exceeded",
    "preemption.go, TryPreemption",
)
ONE_NODE: Final = Difference(
    "one-node",
    "all victims are on one node",
    "victims may be on any node when the chosen one has room already",
    "preemption.go, calculateAdditionalVictims",
)
NODE_CHOICE: Final = Difference(
    "node-choice",
    "the node whose victims are nobody opted out, then no originator, then fewest, then by name",
    "the node by number of victims and name, with scores that look at candidates and not at victims",
    "preemption.go, checkPreemptionPredicates; predicates.go",
)
REQUIRED_NODE: Final = Difference(
    "required-node",
    "no more victims than the ask needs beside the free space, which another ask that holds the node keeps",
    "victims are collected until they alone cover the ask; what is free is for whoever fits of those who hold the node",
    "required_node_preemptor.go; node.go, preAllocateCheck",
)
NOTHING_ASKED: Final = Difference(
    "nothing-asked",
    "an ask may name a resource and want 0 of it, whoever is over the limit of that resource",
    "an ask gets no node while its queue, or one above, is over its limit of a resource that it wants 0 of",
    "application.go, tryNode; queue.go, allocatedResFits",
)
DIFFERENCES: Final = (
    ROOT_POLICY, PARENT_DELAY, ANCESTRY, ASK_GUARANTEE, VICTIM_GUARANTEE, SAME_APPLICATION, OPTED_OUT, FREE_SPACE,
    ONE_NODE, NODE_CHOICE, REQUIRED_NODE, NOTHING_ASKED,
)  # fmt: skip


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
    """The value of property ``name``; one of ``KNOWN``, as YuniKorn spells and parses it.

    Durations are Go's (time.ParseDuration), in nanoseconds. A value that does not parse falls back to the default
    and leaves a finding; it never fails (YuniKorn: validation rejects no property value)."""
    if name == PREEMPTION_POLICY:
        return _policy(text, ("default", "fence", "disabled"))
    if name == PRIORITY_POLICY:
        return _policy(text, ("default", "fence"))
    if name == PRIORITY_OFFSET:
        fits = len(text) <= _LONGEST and _NUMBER.fullmatch(text) and -_INT32 <= int(text) < _INT32
        return Parsed(int(text)) if fits else Parsed(0, f"{text[:64]!r} is not a 32-bit integer; 0 is used")
    default, meaning = (DEFAULT_DELAY, "30s is used") if name == PREEMPTION_DELAY else (0, "it is off")
    try:
        duration = nanoseconds(text)
    except DurationError:
        return Parsed(default, f"{text[:64]!r} is not a Go duration; {meaning}")
    if duration <= 0:
        rule = "negative-delay" if duration < 0 else "property-value"
        return Parsed(default, f"{text[:64]!r} is not above zero; {meaning}", rule)
    return Parsed(duration)


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
    sources: dict[str, str] = field(default_factory=dict)


def effective(tree: Tree, blocks: Sequence[wire.Queue | None], rules: RuleSet) -> list[QueueSettings]:
    """Settings of every queue of ``tree``; ``blocks`` are the queues' ``yunikorn`` blocks by index."""
    raw: list[dict[str, tuple[str, str]]] = [{} for _ in blocks]
    templates: list[tuple[str, Properties]] = [("", {}) for _ in blocks]
    settings: list[QueueSettings] = [QueueSettings()] * len(blocks)
    for i in tree.top_down:
        safe_point()
        block, above = blocks[i] or _NONE, tree.parent[i]
        templates[i] = _template(tree, templates, block, i)
        if block.dynamic:
            takes = above != ROOTLESS and _is_leaf(tree, block, i)  # a parent only passes it on
            label, properties = templates[above] if takes else _NO_TEMPLATE
            raw[i] = {name: (text, label) for name, text in properties.items()}
        else:
            raw[i] = _inherited(tree, raw, i, rules)
            raw[i] |= {name: (text, tree.names[i]) for name, text in block.properties.items()}
        own = {k: v for k, v in raw[i].items() if k in KNOWN}
        if not _is_leaf(tree, block, i):
            own.pop(PREEMPTION_DELAY, None)  # a parent only passes it on (YuniKorn: UpdateQueueProperties)
        settings[i] = _settings(own, above == ROOTLESS, rules)
    return settings


_NONE = wire.Queue()
_NO_TEMPLATE: tuple[str, Properties] = ("", {})


def _is_leaf(tree: Tree, block: wire.Queue | None, i: int) -> bool:
    return tree.is_leaf(i) and not (block is not None and block.parent)


def _template(tree: Tree, templates: list[tuple[str, Properties]], block: wire.Queue, i: int) -> tuple[str, Properties]:
    """A queue's own child template, whatever it sets, or its parent's passed on where it has none or an empty one."""
    own = block.child_template
    if own is not None and not own.empty:
        return f"child_template of {tree.names[i]}", own.properties
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
            counts = rules.reads_root_policy or tree.parent[above] != ROOTLESS
            if text.lower() == "disabled" and counts:
                out[name] = (text, source)
        elif name == QUOTA_DELAY or (name == PREEMPTION_DELAY and rules.inherits_delay):
            out[name] = (text, source)
    return out


def _settings(raw: dict[str, tuple[str, str]], root: bool, rules: RuleSet) -> QueueSettings:
    parsed = {name: parse(name, text) for name, (text, _) in raw.items()}

    def value(name: str, default: V) -> V:
        return parsed[name].value if name in parsed else default  # pyright: ignore[reportReturnType]

    ignored = {PREEMPTION_POLICY} if root and not rules.reads_root_policy else set[str]()
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


ROOT = "root"
Amounts = dict[int, int]
"""Integer steps by resource index; a resource with 0 is named, one that is absent is not."""


@dataclass(frozen=True, slots=True)
class CompiledConfiguration:
    """Immutable. Everything is by queue index, in the order of the document.

    A *cell* is one guaranteed resource of one queue. Whether a queue is over its guarantee is the sign of its
    cells' slack (guaranteed - used), so a decision keeps one integer a cell instead of copying queues.

    ``guaranteed``, ``limit``: None where nothing is configured or all of it is 0; the root's limit comes with the
    state. ``preemption``: whether anybody is preempted but for a required node. ``cells``: by queue, resource -> cell,
    for its own guarantee; ``path_cells``: by queue, resource -> the cells of every queue from the root down to it.
    ``guarantee_of``: by cell, the amount."""

    rules: RuleSet
    release: wire.Release
    preemption: bool
    limits: Limits
    tree: Tree
    resources: ResourceIndex
    guaranteed: list[Amounts | None]
    limit: list[Amounts | None]
    blocks: list[wire.Queue | None]
    settings: list[QueueSettings]
    leaf: list[bool]
    paths: list[list[int]]
    cells: list[dict[int, int]]
    path_cells: list[dict[int, list[int]]]
    guarantee_of: list[int]
    cell_owner: list[tuple[int, int]]
    by_path: list[int]
    """Queue indices in the order of their paths: the order in which maps are walked."""
    rank: list[int]
    """By queue, its place in that order."""
    levels: dict[int, list[dict[int, list[int]] | None]] = field(default_factory=dict, init=False)
    """By asking queue, what ``guarantees.levels`` has found lately; a changed copy starts without."""


def compile_configuration(configuration: Configuration) -> CompiledConfiguration:
    """Raises InvalidInput with every problem."""
    queues = configuration.queues
    tree = compile_tree(queues)
    resources = ResourceIndex()
    problems = list(_tree_problems(tree, queues))
    for i in tree.roots:
        problems += _root_problems(queues[i], ("configuration", "queues", i))
    amounts = [_amounts(queue, ("configuration", "queues", i), resources, problems) for i, queue in enumerate(queues)]
    guaranteed, limit = [own[0] for own in amounts], [own[1] for own in amounts]
    limits = compile_limits(queues, problems)
    if not problems:
        problems = list(_nesting_problems(tree, queues, resources, guaranteed, limit))
    if problems:
        raise InvalidInput(problems)
    settings = configuration.settings.yunikorn
    settings = wire.Settings() if settings is None else settings
    rules = RULE_SETS[settings.rules]
    cells, path_cells, owner = cells_of(tree, guaranteed)
    by_path = sorted(range(len(tree)), key=tree.names.__getitem__)
    return CompiledConfiguration(
        rules=rules, release=settings.release, preemption=settings.preemption, limits=limits, tree=tree,
        resources=resources, guaranteed=guaranteed, limit=limit,
        blocks=[q.yunikorn for q in queues], settings=effective(tree, [q.yunikorn for q in queues], rules),
        leaf=[_is_leaf(tree, q.yunikorn, i) for i, q in enumerate(queues)],
        paths=[tree.path(i) for i in range(len(tree))],
        cells=cells, path_cells=path_cells, guarantee_of=[(guaranteed[q] or {})[r] for q, r in owner],
        cell_owner=owner, by_path=by_path, rank=sorted(range(len(tree)), key=by_path.__getitem__),
    )  # fmt: skip


def _amounts(
    queue: Queue, place: Place, resources: ResourceIndex, problems: list[Problem]
) -> tuple[Amounts | None, Amounts | None]:
    """Guaranteed and limit of one queue. One that is 0 everywhere is dropped, as YuniKorn drops it."""
    placed = sorted(quotas(queue, place), key=lambda item: item.resource)
    problems += _flavor_problems(queue, place, placed)
    guaranteed: Amounts = {}
    limit: Amounts = {}
    for _, name, quota, here in placed:
        r = resources.add(name)
        try:
            if quota.guaranteed == UNLIMITED:
                detail = "a guarantee is an amount in YuniKorn"
                problems.append(Problem(pointer=pointer(*here, "guaranteed"), detail=detail))
            elif quota.guaranteed is not None:
                guaranteed[r] = parse_quantity(quota.guaranteed, resources.scales[r])
            if quota.limit is not None and quota.limit != UNLIMITED:
                limit[r] = parse_quantity(quota.limit, resources.scales[r])
        except QuantityError as error:
            problems.append(Problem(pointer=pointer(*here), detail=str(error)))
    return (guaranteed if any(guaranteed.values()) else None, limit if any(limit.values()) else None)


def _flavor_problems(queue: Queue, where: Place, placed: Sequence[PlacedQuota]) -> Iterator[Problem]:
    """YuniKorn knows one quota a resource."""
    for g, group in enumerate(queue.resource_groups or ()):
        if len(group.flavors) > 1:
            detail = "YuniKorn has no flavors: give one flavor a group"
            yield Problem(pointer=pointer(*where, "resource_groups", g, "flavors"), detail=detail)
            return
    for quota, other in pairwise(placed):
        if quota.resource == other.resource:
            detail = f"a second quota of {quota.resource!r}: YuniKorn has no flavors"
            yield Problem(pointer=pointer(*other.where), detail=detail)


def _root_problems(queue: Queue, prefix: Place) -> Iterator[Problem]:
    """YuniKorn refuses resources on the root (configvalidator.go): what it has is the sum of the nodes."""
    for _, _, quota, here in quotas(queue, prefix):
        if quota.guaranteed is not None:
            detail = "YuniKorn knows no guarantee on the root"
            yield Problem(pointer=pointer(*here, "guaranteed"), detail=detail)
        if quota.limit is not None and quota.limit != UNLIMITED:
            detail = "YuniKorn knows no limit on the root: its limit is the sum of the nodes"
            yield Problem(pointer=pointer(*here, "limit"), detail=detail)


def _tree_problems(tree: Tree, queues: Sequence[Queue]) -> list[Problem]:
    if not tree.roots:
        return [Problem(pointer="/configuration/queues", detail="a YuniKorn tree has a queue named root")]
    return [
        Problem(
            pointer=pointer("configuration", "queues", i, "parent"),
            detail=f"{queues[i].name!r} has no parent: a YuniKorn tree has one top queue, named root",
        )
        for i in tree.roots
        if queues[i].name.lower() != ROOT
    ]  # fmt: skip


def _nesting_problems(
    tree: Tree, queues: Sequence[Queue], resources: ResourceIndex,
    guaranteed: list[Amounts | None], limit: list[Amounts | None],
) -> Iterator[Problem]:  # fmt: skip
    """A guarantee above a limit, or a limit above a parent's: YuniKorn refuses such a configuration."""

    def above(i: int, r: int, field: str, amount: int, held: int, by: int) -> Problem:
        name = resources.names[r]
        setting = next(
            quota.where for quota in quotas(queues[i], ("configuration", "queues", i)) if quota.resource == name
        )
        shown, allowed = units(amount, name), units(held, name)
        detail = f"{field} {shown} is above the limit {allowed} of {tree.names[by]}"
        return Problem(pointer=pointer(*setting, field), detail=detail)

    ceilings: list[dict[int, tuple[int, int]]] = [{} for _ in guaranteed]
    for i in tree.top_down:
        parent = tree.parent[i]
        ceiling = ceilings[i] = dict(ceilings[parent]) if parent != ROOTLESS else {}
        for r, amount in (limit[i] or {}).items():
            held, by = ceiling.get(r, (amount, i))
            if amount > held:
                yield above(i, r, "limit", amount, held, by)
            ceiling[r] = min((held, by), (amount, i))
        for r, amount in (guaranteed[i] or {}).items():
            if r in ceiling and amount > ceiling[r][0]:
                yield above(i, r, "guaranteed", amount, *ceiling[r])


def cells_of(
    tree: Tree, guaranteed: list[Amounts | None]
) -> tuple[list[dict[int, int]], list[dict[int, list[int]]], list[tuple[int, int]]]:
    """Own cells and cells of the path by queue, and the (queue, resource) that each cell belongs to."""
    own: list[dict[int, int]] = [{} for _ in guaranteed]
    path: list[dict[int, list[int]]] = [{} for _ in guaranteed]
    owner: list[tuple[int, int]] = []
    for i in tree.top_down:
        above = tree.parent[i]
        path[i] = dict(path[above]) if above != ROOTLESS else {}
        for r in guaranteed[i] or ():
            own[i][r] = len(owner)
            path[i][r] = [*path[i].get(r, ()), len(owner)]
            owner.append((i, r))
    return own, path, owner
