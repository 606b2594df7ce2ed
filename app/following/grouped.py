"""Pods of KAI and YuniKorn, translated again where a change bears on them.

They stand together in groups and applications, and those of other schedulers take room on nodes. Each pod is read once
as long as it stays the same; the groups and nodes that a change touches are put together again, from all of their pods,
by the translation that reads everything. Where queues or priority classes changed, all of them are.
"""

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from app.following.merging import merged, only, without
from app.following.mirror import Key, View
from app.following.pods import Pods, Touched
from app.following.translating import Translated, translate
from app.following.trimming import Item
from app.formats.documents.reader import Findings
from app.formats.kai.pods import gpu_memory
from app.formats.kubernetes.objects import objects
from app.formats.manifests import Within
from app.formats.yunikorn.pods import DYNAMIC, dynamic_queues, queue_path, said_of_dynamic
from app.solver.model.configuration import Configuration, EngineName

_GROUP, _POD, _NODE = "PodGroup", "Pod", "Node"


class Grouped:
    """One cluster's, from one translation to the next."""

    def __init__(self, engine: EngineName) -> None:
        self._engine: EngineName = engine
        self._pods = Pods(engine)
        self._gpus: dict[str, int] = {}
        self._configured = Configuration()
        self._queues: dict[str, str] = {}

    def whole(self, view: View) -> Translated:
        findings = Findings()
        self._pods.renew(view.items[_POD])
        self._gpus = _gpus(view.items[_NODE])
        within = Within(self._pods.read(view.items[_POD], findings), _names(view), self._gpus)
        found = translate(self._engine, only(view, {_POD: ()}), findings, within)
        queues = [queue for queue in found.configuration.queues if not (queue.yunikorn and queue.yunikorn.dynamic)]
        self._configured = msgspec.structs.replace(found.configuration, queues=queues)
        self._queues = {}
        self._look(self._pods.groups())
        return found

    def some(self, last: Translated, view: View, changed: set[tuple[str, Key]]) -> Translated | None:
        if any(kind not in (_POD, _NODE, _GROUP) for kind, _ in changed):
            return None
        touched, findings = self._touched(last, view, changed), Findings()
        keys = self._pods.together(touched)
        within = Within(self._pods.read(keys, findings), _names(view), self._gpus)
        some = {_POD: (), _NODE: [("", name) for name in touched.nodes], _GROUP: map(_key, touched.groups)}
        part = translate(self._engine, only(view, some), findings, within, self._configured)
        asks = self._asks(keys, touched, changed)
        about = {*changed, *((_POD, key) for key in keys), *((_GROUP, _key(group)) for group in touched.groups)}
        about |= {(_NODE, ("", name)) for name in touched.nodes}
        found = replace(
            last,
            nodes=without(last.nodes, touched.nodes) | part.nodes,
            workloads=without(last.workloads, touched.groups) | part.workloads,
            asks=without(last.asks, asks) | part.asks,
            findings=merged(last.findings, part.findings, about),
        )
        self._look(touched.groups)
        return found if self._engine == "kai" else self._with_dynamic(found)

    def _look(self, groups: Iterable[str]) -> None:
        """Which queues YuniKorn's applications name."""
        for group in groups if self._engine == "yunikorn" else ():
            first = self._pods.first(group)
            if first is None:
                self._queues.pop(group, None)
            else:
                self._queues[group] = queue_path(first)

    def _asks(self, keys: set[Key], touched: Touched, changed: set[tuple[str, Key]]) -> set[str]:
        """Those that there may have been of what is touched: one a group, or one a pod."""
        if self._engine == "kai":
            return touched.groups
        return {f"{space}/{name}" for space, name in (*keys, *(key for kind, key in changed if kind == _POD))}

    def _touched(self, last: Translated, view: View, changed: set[tuple[str, Key]]) -> Touched:
        touched = Touched()
        for kind, key in changed:
            if kind == _POD:
                self._pods.change(key, view.items[_POD].get(key), touched)
            elif kind == _GROUP:
                touched.groups.add(f"{key[0]}/{key[1]}")
            else:
                touched.nodes.add(key[1])
                if (key[1] in last.nodes) != (key in view.items[_NODE]):
                    touched.groups |= self._pods.groups_on(key[1])
        if touched.nodes and self._resized(view, {key for kind, key in changed if kind == _NODE}):
            touched.groups |= self._pods.by_memory
        return touched

    def _resized(self, view: View, keys: set[Key]) -> bool:
        """Whether GPUs of these nodes are not what they were."""
        some = {key: item for key in keys if (item := view.items[_NODE].get(key)) is not None}
        gpus = without(self._gpus, {name for _, name in keys}) | _gpus(some)
        was, self._gpus = self._gpus, gpus
        return gpus != was

    def _with_dynamic(self, found: Translated) -> Translated:
        """With the queues that placement must have made for all that there is, and nothing said of others."""
        own, used = self._configured, set(self._queues.values())
        dynamic = dynamic_queues({queue.name for queue in own.queues}, used)
        said = set(map(said_of_dynamic, used))
        found = replace(found, findings=[one for one in found.findings if one.rule != DYNAMIC or one.detail in said])
        if found.configuration.queues[len(own.queues) :] == dynamic:
            return found
        return replace(found, configuration=msgspec.structs.replace(own, queues=[*own.queues, *dynamic]))


def _key(group: str) -> Key:
    space, _, name = group.rpartition("/")
    return space, name


def _names(view: View) -> set[str]:
    return {name for _, name in view.items[_NODE]}


def _gpus(nodes: dict[Key, Item]) -> dict[str, int]:
    found = objects([((_NODE, *key), item) for key, item in nodes.items()], Findings())
    return gpu_memory((made.name, made.labels) for made in found)
