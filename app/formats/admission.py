"""What a cluster fills in of pods that a manifest leaves out: defaults of LimitRanges, overhead of RuntimeClasses.

Sources: the admission plugins LimitRanger and RuntimeClass of Kubernetes' API server, defaults of ``LimitRangeItem``,
and ``pkg/workload/resources.go`` of Kueue, which fills in before a pod exists: there a LimitRange's default request
goes before the container's own limit, with the API server after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from app.base.documents import Path
from app.formats.objects import Object
from app.formats.pods import steps
from app.formats.reader import Reader
from app.solver.stopping import safe_point

KINDS = ("LimitRange", "RuntimeClass")
_CONTAINERS = ("containers", "initContainers")

_Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Runtime:
    overhead: _Json
    selector: _Json
    tolerations: list[Any]


@dataclass(slots=True)
class Admission:
    """By namespace the default limits and requests of containers, and runtime classes by name. ``kueue``: Kueue counts,
    not the API server."""

    kueue: bool = False
    _limits: dict[str, _Json] = field(default_factory=dict[str, _Json])
    _requests: dict[str, _Json] = field(default_factory=dict[str, _Json])
    _runtimes: dict[str, _Runtime] = field(default_factory=dict[str, _Runtime])

    def __bool__(self) -> bool:
        return bool(self._requests or self._runtimes)

    def add(self, made: Object) -> None:
        """Take in a LimitRange or a RuntimeClass. Of several LimitRanges the first that says something holds."""
        if made.kind == "RuntimeClass":
            scheduling = made.root.child("scheduling")
            self._runtimes[made.name] = _Runtime(
                _amounts(made.root.child("overhead"), "podFixed"), dict(scheduling.labels("nodeSelector")),
                [one.value for one in scheduling.children("tolerations")],
            )  # fmt: skip
            return
        for item in made.spec.children("limits"):
            kind = item.text("type")
            for bound in ("min", "max"):
                if kind in ("Container", "Pod") and item.value.get(bound):
                    detail = f"work past it is decided as if it were not: a {kind} past it is refused or waits"
                    item.warn(bound, detail, rule="not-decided")
            if kind != "Container":
                continue
            limits = {**_amounts(item, "max"), **_amounts(item, "default")}
            requests = {**_amounts(item, "min"), **limits, **_amounts(item, "defaultRequest")}
            for of, found in ((self._limits, limits), (self._requests, requests)):
                of[made.namespace] = {**found, **of.get(made.namespace, {})}

    def admitted(self, root: Reader, namespace: str, *, exists: bool) -> Reader:
        """The object with every pod template in it filled in. ``exists``: its pods are made before anybody decides on
        them, so that the API server goes first whoever decides. Without recursion."""
        top: list[Any] = [root.value]
        pending: list[tuple[Any, Any, Path]] = [(top, 0, root.at)]
        # What aliases of YAML share stays shared, however much it stands for. What is known is held: ids come again.
        known: dict[int, tuple[Any, Any]] = {}
        while pending:
            safe_point()
            holder, key, at = pending.pop()
            value: Any = holder[key]
            if id(value) in known:
                _, holder[key] = known[id(value)]
            elif isinstance(value, Mapping):
                was = cast(_Json, value)
                made = dict(was)
                known[id(was)] = was, made
                if isinstance(made.get("containers"), list):
                    self._fill_in(made, root, at, namespace, exists=exists)
                holder[key] = made
                pending += [(made, name, (*at, name)) for name in made]
            elif isinstance(value, list):
                old = cast(list[Any], value)
                listed = list(old)
                known[id(old)] = old, listed
                holder[key] = listed
                pending += [(listed, i, (*at, i)) for i in range(len(listed))]
        return Reader(top[0], root.at, root.findings)

    def _fill_in(self, spec: _Json, root: Reader, at: Path, namespace: str, *, exists: bool) -> None:
        for key in _CONTAINERS:
            listed = spec.get(key)
            if isinstance(listed, list):
                spec[key] = [self._container(one, namespace, exists=exists) for one in cast(list[Any], listed)]
        name = spec.get("runtimeClassName")
        runtime = self._runtimes.get(name) if isinstance(name, str) else None
        if runtime is None:
            if isinstance(name, str) and name and not spec.get("overhead"):
                detail = f"RuntimeClass {name!r} is not known here: counted without its overhead"
                root.findings.add("unknown-name", "warning", (*at, "runtimeClassName"), detail)
            return
        spec["overhead"] = spec.get("overhead") or runtime.overhead
        if self.kueue and not exists:
            return
        if isinstance(spec.get("nodeSelector", {}), dict):
            spec["nodeSelector"] = {**runtime.selector, **(spec.get("nodeSelector") or {})}
        if isinstance(spec.get("tolerations", []), list):
            spec["tolerations"] = [*(spec.get("tolerations") or []), *runtime.tolerations]

    def _container(self, container: Any, namespace: str, *, exists: bool) -> Any:
        """With the requests that it has in the end; what is no container stays for whoever reads it."""
        of = _mapping(container)
        given = None if of is None else _mapping(of.get("resources"))
        own, limits = (None, None) if given is None else (_mapping(given.get(key)) for key in ("requests", "limits"))
        defaults = self._of(self._requests, namespace)
        if not defaults or of is None or given is None or own is None or limits is None:
            return container
        if self.kueue and not exists:
            found = {**self._of(self._limits, namespace), **limits, **defaults, **own}
        else:
            found = {**defaults, **limits, **own}
        return {**of, "resources": {**given, "requests": found}}

    @staticmethod
    def _of(defaults: dict[str, _Json], namespace: str) -> _Json:
        """Those of the namespace, and of a LimitRange beside the work that names none."""
        return {**defaults.get("", {}), **defaults.get(namespace, {})}


def _mapping(value: Any) -> _Json | None:
    """An empty one where there is nothing; None for anything else."""
    return {} if value is None else cast(_Json, value) if isinstance(value, dict) else None


def _amounts(reader: Reader, key: str) -> _Json:
    """Amounts as they are written, of those that are some."""
    known = steps(reader, key)
    return {name: value for name, value in reader.child(key).value.items() if name in known}
