"""Which queue an application goes to: YuniKorn's placement rules, and the queues that they make.

Source: yunikorn-core ``pkg/scheduler/placement`` (placement.go: PlaceApplication; each rule's placeApplication;
filter.go), k8shim ``pkg/cache/metadata.go`` and ``context.go`` (updateApplicationTags) for what a pod says.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from app.base.documents import Unreadable, read_one
from app.formats.objects import Object
from app.formats.reader import Findings, Reader
from app.solver.model.configuration import Configuration, Queue, Quota
from app.solver.model.yunikorn import ChildTemplate
from app.solver.model.yunikorn import Queue as YuniKornQueue

ROOT, DEFAULT_QUEUE = "root", "root.default"
DEFAULT_USER = "nobody"
NAMES = ("provided", "user", "tag", "fixed")
_USER_INFO = "yunikorn.apache.org/user.info"
_PARENT_QUEUE = "yunikorn.apache.org/parentqueue"
_QUEUE_NAME = re.compile(r"[a-zA-Z0-9_:#/@-]{1,64}")
_SPECIAL = re.compile(r"[\^$*+?()\[{}|]")
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class Submitted:
    """An application as rules see it. ``queue``: as it names it, empty where it names none."""

    queue: str = ""
    user: str = DEFAULT_USER
    groups: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict[str, str])


class Rejected(Exception):
    """No queue takes the application: YuniKorn rejects it."""


@dataclass(frozen=True, slots=True)
class _Filter:
    """Empty lists let everybody through, or nobody. One word with a character that no name has is an expression."""

    allow: bool = True
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def lets(self, of: Submitted) -> bool:
        if not self.users and not self.groups:
            return self.allow
        found = _matches(self.users, of.user) or any(_matches(self.groups, group) for group in of.groups)
        return self.allow if found else not self.allow


def _matches(words: tuple[str, ...], name: str) -> bool:
    if len(words) == 1 and _SPECIAL.search(words[0]):
        return re.search(words[0], name) is not None
    return name in words


@dataclass(frozen=True, slots=True)
class Rule:
    """``value``: the tag's name, or the fixed queue."""

    name: str
    create: bool = False
    value: str = ""
    filter: _Filter = _Filter()
    parent: "Rule | None" = None


def read_rules(readers: Iterable[Reader]) -> list[Rule]:
    """Placement rules; one that YuniKorn would refuse is a finding of severity error, and left out."""
    return [rule for reader in readers if (rule := _rule(reader)) is not None]


def _rule(reader: Reader, depth: int = 0) -> Rule | None:
    name = (reader.text("name") or "").lower()
    create = reader.boolean("create") is True
    value = (reader.text("value") or "").lower()
    chosen = _filter(reader.child("filter"))
    parent = None
    if "parent" in reader:
        parent = _rule(reader.child("parent"), depth + 1) if depth < _DEEPEST else None
        if parent is None:
            return None
    reader.close()
    if name not in NAMES:
        reader.warn("name", f"no placement rule {name[:40]!r}: there are {', '.join(NAMES)}", "error", "bad-value")
    elif name in ("tag", "fixed") and not value:
        reader.warn("value", f"a rule {name!r} has a value", "error", "bad-value")
    elif name == "fixed" and value.startswith(ROOT) and parent is not None:
        reader.warn("parent", "a fixed queue from the root on has no parent rule", "error", "bad-value")
    else:
        return Rule(name, create, value, chosen, parent)
    return None


def _filter(reader: Reader) -> _Filter:
    kind = reader.choice("type", {"allow": "allow", "deny": "deny"})
    words = [tuple(reader.strings(key)) for key in ("users", "groups")]
    for key, of in zip(("users", "groups"), words, strict=True):
        if len(of) == 1 and _SPECIAL.search(of[0]):
            try:
                re.compile(of[0])
            except re.error as error:
                reader.warn(key, f"no regular expression: {error}", "error", "bad-value")
                return _Filter()
    reader.close()
    return _Filter(kind != "deny", *words)


class Placement:
    """The rules of a configuration over its queues; queues that were made are to be given again."""

    def __init__(self, configuration: Configuration, namespaces: Iterable[Object] = ()) -> None:
        self.queues = {queue.name: queue for queue in configuration.queues}
        self._parents = {queue.parent for queue in configuration.queues}
        self._above = {made.name: made.annotations.get(_PARENT_QUEUE, "") for made in namespaces}
        native = configuration.native
        given: Any = native.yunikorn.get("placementrules") if native is not None else None
        listed = cast(list[Any], given) if isinstance(given, list) else []
        read = read_rules(Reader(one, (), Findings()) for one in listed)
        self.rules = read or [Rule("provided")]

    def tags(self, namespace: str) -> dict[str, str]:
        """Of an application in ``namespace``."""
        found = {"namespace": namespace or "default"}
        if above := self._above.get(namespace):
            found["namespace.parentqueue"] = above
        return found

    def place(self, of: Submitted) -> str:
        """The full path of the queue; it may have to be made. Raises Rejected, with the reason."""
        for rule in self.rules:
            name = self._by(rule, of)
            if name and self._takes(name):
                return name
        if self._is_leaf(DEFAULT_QUEUE):
            return DEFAULT_QUEUE
        name = of.queue if not of.queue or of.queue.startswith(ROOT) else f"{ROOT}.{of.queue}"
        parent = name in self.queues and not self._is_leaf(name)
        named = f"{name!r}, which is a parent queue" if parent else f"queue {of.queue!r}" if of.queue else "no queue"
        raise Rejected(f"it names {named}, no placement rule finds one, and there is no leaf queue {DEFAULT_QUEUE!r}")

    def _takes(self, name: str) -> bool:
        """Whether an application may go there: a leaf, or what is to be made below a parent."""
        if name in self.queues:
            return self._is_leaf(name)
        above = name
        while above not in self.queues:
            if "." not in above:
                raise Rejected(f"queue {name!r} is in no tree of this configuration")
            above = above.rpartition(".")[0]
        if self._is_leaf(above) and above != ROOT:
            raise Rejected(f"queue {name!r} can't be made: {above!r} is a leaf queue")
        return True

    def _is_leaf(self, name: str) -> bool:
        queue = self.queues.get(name)
        return queue is not None and name not in self._parents and not (queue.yunikorn and queue.yunikorn.parent)

    def _by(self, rule: Rule, of: Submitted) -> str | None:
        """What one rule says; None: it does not match."""
        words = {"provided": of.queue, "user": of.user, "tag": of.tags.get(rule.value, ""), "fixed": rule.value}
        word = words[rule.name]
        if not word or not rule.filter.lets(of):
            return None
        whole = word.startswith(ROOT) if rule.name == "fixed" else word.startswith(f"{ROOT}.") and rule.name != "user"
        if whole:
            _check(word.split("."))
            name = word
        else:
            child = word if rule.name == "fixed" else word.replace(".", "_dot_")
            _check(child.split("."))
            above = ROOT
            if rule.parent is not None:
                found = self._by(rule.parent, of)
                if not found:
                    return None
                above = found if found.startswith(f"{ROOT}.") else f"{ROOT}.{found}"
                if self._is_leaf(above):
                    raise Rejected(f"the parent rule of {rule.name!r} gives a leaf queue: {above}")
            name = f"{above}.{child}"
        name = name.lower()
        return name if rule.create or name in self.queues else None


def _check(parts: Collection[str]) -> None:
    for part in parts:
        if not _QUEUE_NAME.fullmatch(part):
            raise Rejected(f"{part[:80]!r} is no name of a queue")


def submitter(annotations: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """User and groups, as the admission controller writes them on every pod."""
    try:
        told: Any = read_one((annotations.get(_USER_INFO) or "{}").encode(), _USER_INFO)
    except Unreadable:
        told = {}
    if not isinstance(told, dict):
        return DEFAULT_USER, ()
    of = cast(dict[str, Any], told)
    user, groups = of.get("user"), of.get("groups")
    listed = cast(list[Any], groups) if isinstance(groups, list) else []
    return (
        user if isinstance(user, str) and user else DEFAULT_USER,
        tuple(group for group in listed if isinstance(group, str)),
    )


def made_below(name: str, queues: Mapping[str, Queue]) -> Queue:
    """A dynamic queue as its nearest parent's child template has it; the template passes through dynamic parents."""
    above, template = name.rpartition(".")[0], None
    while above and template is None:
        queue = queues.get(above)
        template = queue.yunikorn.child_template if queue is not None and queue.yunikorn is not None else None
        above = above.rpartition(".")[0]
    template = template or ChildTemplate()
    names = {**template.guaranteed, **template.max}
    quota = {r: Quota(guaranteed=template.guaranteed.get(r), limit=template.max.get(r)) for r in names}
    block = YuniKornQueue(dynamic=True, max_applications=template.max_applications)
    return Queue(name=name, parent=name.rpartition(".")[0], quota=quota or None, yunikorn=block)
