"""What an administrator should know about a configuration before storing it; pointers start at the document."""

from collections.abc import Iterator, Sequence

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.yunikorn.compile.configuration import CompiledConfiguration, compile_configuration
from app.solver.engines.yunikorn.compile.settings import KNOWN, PREEMPTION_DELAY, PREEMPTION_POLICY, parse
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.problems import Finding, InvalidInput, pointer

OTHER_PROPERTIES = frozenset({"application.sort.policy", "application.sort.priority"})
"""Properties of YuniKorn that have no say in preemption."""


def findings(configuration: Configuration) -> list[Finding]:
    """Property values that fall back, settings without effect, paths that look like ancestors."""
    found = [one for i, queue in enumerate(configuration.queues) for one in _properties(i, queue)]
    try:
        queues = compile_configuration(configuration)
    except InvalidInput:
        return found
    found += _without_effect(configuration.queues, queues)
    found += _prefixes(queues)
    return found


def _properties(i: int, queue: Queue) -> Iterator[Finding]:
    block = queue.yunikorn
    if block is None:
        return
    template = block.child_template.properties if block.child_template is not None else {}
    for where, properties in ((("properties",), block.properties), (("child_template", "properties"), template)):
        for name, text in sorted(properties.items()):
            at = pointer("queues", i, "yunikorn", *where, name)
            if name not in KNOWN:
                if name not in OTHER_PROPERTIES:
                    detail = f"{name!r} is no property that preemption knows; it is kept and ignored"
                    yield Finding(rule="unknown-property", severity="warning", pointer=at, detail=detail)
                continue
            parsed = parse(name, text)
            if parsed.problem is not None:
                yield Finding(rule=parsed.rule, severity="warning", pointer=at, detail=f"{name}: {parsed.problem}")


def _without_effect(documents: Sequence[Queue], queues: CompiledConfiguration) -> Iterator[Finding]:
    """Settings that nothing reads."""
    for i, queue in enumerate(documents):
        root = queues.tree.parent[i] == ROOTLESS
        properties = queue.yunikorn.properties if queue.yunikorn is not None else {}
        at = ("queues", i, "yunikorn", "properties")
        if root and PREEMPTION_POLICY in properties and queues.rules == "documented":
            detail = "preemption.policy has no effect on the root"
            yield Finding(rule="root-policy", severity="info", pointer=pointer(*at, PREEMPTION_POLICY), detail=detail)
        if not queues.leaf[i] and PREEMPTION_DELAY in properties and queues.rules == "documented":
            detail = "preemption.delay works on leaf queues only"
            yield Finding(rule="parent-delay", severity="info", pointer=pointer(*at, PREEMPTION_DELAY), detail=detail)
        if queues.leaf[i] and queues.settings[i].preemption_policy == "fence" and not root:
            detail = "a fence on a leaf: its asks find no victims at all, they are never in their own queue"
            yield Finding(rule="leaf-fence", severity="info", pointer=pointer(*at, PREEMPTION_POLICY), detail=detail)
        dynamic = queue.yunikorn is not None and queue.yunikorn.dynamic
        if dynamic and properties:
            detail = "a queue made at run time takes its properties from the child template, not from its own"
            yield Finding(rule="dynamic-properties", severity="warning", pointer=pointer(*at), detail=detail)


def _prefixes(queues: CompiledConfiguration) -> Iterator[Finding]:
    """Released rules only: a queue whose path begins like another's counts as its ancestor."""
    if queues.rules != "shipped":
        return
    names = queues.tree.names
    ordered = queues.by_path
    for place, i in enumerate(ordered):
        if not queues.guaranteed[i] or queues.tree.parent[i] == ROOTLESS:
            continue
        for j in ordered[place + 1 :]:
            if not names[j].startswith(names[i]):
                break
            if not queues.tree.is_ancestor(i, j):
                yield Finding(
                    rule="path-prefix", severity="warning", pointer=pointer("queues", i, "name"),
                    detail=f"{names[j]!r} begins like {names[i]!r}: its asks may take this queue below its guarantee",
                )  # fmt: skip
                break
