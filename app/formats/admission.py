"""What a cluster makes of pods before anybody schedules them: what LimitRanges and RuntimeClasses fill in, and what is
past the bounds of LimitRanges.

Sources: the admission plugins LimitRanger and RuntimeClass of Kubernetes' API server, defaults of ``LimitRangeItem``,
``pkg/workload/resources.go`` and ``pkg/util/limitrange`` of Kueue, which fills in before a pod exists: there a
LimitRange's default request goes before the container's own limit, with the API server after it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from app.base.documents import Path
from app.formats.objects import Object
from app.formats.pods import Steps, pod_requests, quantity, steps
from app.formats.reader import Findings, Reader
from app.solver.model.base import QuantityError, parse_quantity
from app.solver.question import safe_point

KINDS = ("LimitRange", "RuntimeClass")
_CONTAINERS = ("containers", "initContainers")
_OF_PODS = ("Container", "Pod")
_MAX = "requests must not be above the limitRange max"
_MIN = "requests must not be below the limitRange min"
_NANO = 10**9

_Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Runtime:
    overhead: _Json
    selector: _Json
    tolerations: list[Any]


@dataclass(slots=True)
class _Bounds:
    """Of one container, or of a pod as a whole: of several LimitRanges the narrowest hold. ``ratio`` in billionths."""

    least: Steps = field(default_factory=Steps)
    most: Steps = field(default_factory=Steps)
    ratio: Steps = field(default_factory=Steps)

    def narrowed(self, other: "_Bounds") -> "_Bounds":
        return _Bounds(
            _merged(max, self.least, other.least),
            _merged(min, self.most, other.most),
            _merged(min, self.ratio, other.ratio),
        )

    def refusals(self, kind: str, asked: Steps, limits: Steps) -> Iterator[str]:
        """What of these requests and limits the API server does not take."""
        for name, least in self.least.items():
            if (given := asked.get(name)) is None:
                yield f"the least {name} of a {kind} is {quantity(least, name)}, and none is asked for"
            elif (given := min(given, limits.get(name, given))) < least:
                yield f"the least {name} of a {kind} is {quantity(least, name)}, not {quantity(given, name)}"
        for name, most in self.most.items():
            if (given := limits.get(name)) is None:
                yield f"the most {name} of a {kind} is {quantity(most, name)}, and there is no limit"
            elif (given := max(given, asked.get(name, given))) > most:
                yield f"the most {name} of a {kind} is {quantity(most, name)}, not {quantity(given, name)}"
        for name, ratio in self.ratio.items():
            given, limit = asked.get(name), limits.get(name)
            bound = f"the limit of {name} of a {kind} is at most {ratio / _NANO:g} times its request"
            if not given or not limit:
                yield f"{bound}, and both must be there"
            elif limit * _NANO > ratio * given:
                yield bound


class _Validated:
    """A pod spec as Kueue validates it."""

    def __init__(self, path: str, spec: Mapping[str, Any]) -> None:
        self._path, self._spec = path, Reader(dict(spec), (), Findings())
        self._containers = [
            (f"{path}.{key}[{i}]", *_resources_of(container.child("resources")))
            for key in reversed(_CONTAINERS)
            for i, container in enumerate(self._spec.children(key))
        ]

    def past_limits(self) -> Iterator[str]:
        of_pod = self._spec.child("resources")
        for path, asked, limits in (*self._containers, (f"{self._path}.resources", *_resources_of(of_pod))):
            yield from _past(path, asked, limits, "requests must not exceed its limits")

    def past_bounds(self, of_container: _Bounds, of_pod: _Bounds) -> Iterator[str]:
        for path, asked, limits in self._containers:
            yield from _past(path, _merged(max, asked, limits), of_container.most, _MAX)
            yield from _past(path, of_container.least, _merged(min, asked, limits), _MIN)
        if of_pod.most or of_pod.least:
            total = pod_requests(self._spec)
            yield from _past(self._path, total, of_pod.most, _MAX)
            yield from _past(self._path, of_pod.least, total, _MIN)


@dataclass(slots=True)
class Admission:
    """By namespace the default limits and requests of containers, and bounds by what they are of; runtime classes by
    name. ``kueue``: Kueue counts, not the API server."""

    kueue: bool = False
    _bounds: dict[tuple[str, str], _Bounds] = field(default_factory=dict[tuple[str, str], _Bounds])
    _limits: dict[str, _Json] = field(default_factory=dict[str, _Json])
    _requests: dict[str, _Json] = field(default_factory=dict[str, _Json])
    _runtimes: dict[str, _Runtime] = field(default_factory=dict[str, _Runtime])

    def __bool__(self) -> bool:
        return bool(self._requests or self._runtimes or self._bounds)

    def add(self, manifest: Object) -> None:
        """Take in a LimitRange or a RuntimeClass. Of several LimitRanges the first default holds, and every bound."""
        if manifest.kind == "RuntimeClass":
            scheduling = manifest.root.child("scheduling")
            self._runtimes[manifest.name] = _Runtime(
                _amounts(manifest.root.child("overhead"), "podFixed"), dict(scheduling.labels("nodeSelector")),
                [toleration.value for toleration in scheduling.children("tolerations")],
            )  # fmt: skip
            return
        for item in manifest.spec.children("limits"):
            kind = item.text("type") or ""
            if kind in _OF_PODS:
                bounds = _Bounds(steps(item, "min"), steps(item, "max"), _ratios(item.child("maxLimitRequestRatio")))
                of = manifest.namespace, kind
                self._bounds[of] = self._bounds.get(of, _Bounds()).narrowed(bounds)
            if kind != "Container":
                continue
            limits = {**_amounts(item, "max"), **_amounts(item, "default")}
            requests = {**_amounts(item, "min"), **limits, **_amounts(item, "defaultRequest")}
            for of, amounts in ((self._limits, limits), (self._requests, requests)):
                of[manifest.namespace] = {**amounts, **of.get(manifest.namespace, {})}

    def admitted(self, root: Reader, namespace: str, *, exists: bool, planned: bool = False) -> Reader:
        """The object with every pod template in it filled in. ``exists``: its pods are made before anybody decides on
        them, so that the API server goes first whoever decides. ``planned``: the API server has not seen them, and what
        it would refuse is a finding. Without recursion."""
        top: list[Any] = [root.value]
        pending: list[tuple[Any, Any, Path]] = [(top, 0, root.path)]
        # What aliases of YAML share stays shared, however much it stands for. What is known is held: ids come again.
        known: dict[int, tuple[Any, Any]] = {}
        while pending:
            safe_point()
            holder, key, path = pending.pop()
            value: Any = holder[key]
            if id(value) in known:
                _, holder[key] = known[id(value)]
            elif isinstance(value, Mapping):
                was = cast(_Json, value)
                copy = dict(was)
                known[id(was)] = was, copy
                if isinstance(copy.get("containers"), list):
                    if planned:
                        self._refuse(was, root, path, namespace, exists=exists)
                    self._fill_in(copy, root, path, namespace, exists=exists)
                holder[key] = copy
                pending += [(copy, name, (*path, name)) for name in copy]
            elif isinstance(value, list):
                old = cast(list[Any], value)
                listed = list(old)
                known[id(old)] = old, listed
                holder[key] = listed
                pending += [(listed, i, (*path, i)) for i in range(len(listed))]
        return Reader(top[0], root.path, root.findings)

    def inadmissible(self, specs: Iterable[Mapping[str, Any]], namespace: str) -> str | None:
        """Why Kueue does not try work of pods like ``specs``, which are filled in, or None: requests past their own
        limits, else past a LimitRange's bounds (ValidateAdmissibility)."""
        validated = [_Validated(f"spec.podSets[{i}].template.spec", spec) for i, spec in enumerate(specs)]
        if past := [detail for pod_set in validated for detail in pod_set.past_limits()]:
            return f"resources validation failed: {'; '.join(past)}"
        of_container, of_pod = (self._bounds_of(kind, namespace) for kind in _OF_PODS)
        if past := [detail for pod_set in validated for detail in pod_set.past_bounds(of_container, of_pod)]:
            return f"resources didn't satisfy LimitRange constraints: {'; '.join(past)}"
        return None

    def _bounds_of(self, kind: str, namespace: str) -> _Bounds:
        own = self._bounds.get((namespace, kind), _Bounds())
        return own.narrowed(self._bounds[unnamed]) if namespace and (unnamed := ("", kind)) in self._bounds else own

    def _refuse(self, spec: _Json, root: Reader, path: Path, namespace: str, *, exists: bool) -> None:
        """A finding for each bound that the API server holds pods of ``spec`` to and they are past (PodLimitFunc):
        containers that start up are not looked at, and of a whole pod only what all its containers say."""
        of = {kind: self._bounds_of(kind, namespace) for kind in _OF_PODS}
        if all(bounds == _Bounds() for bounds in of.values()):
            return
        limits, requests = (self._of(defaults, namespace) for defaults in (self._limits, self._requests))
        asked: list[tuple[Steps, Steps]] = []
        for i, container in enumerate(Reader(spec, (), Findings()).children("containers")):
            given = container.child("resources")
            own = _mapping(given.value.get("limits")) or {}
            wanted = {**requests, **own, **(_mapping(given.value.get("requests")) or {})}
            filled = Reader({"requests": wanted, "limits": {**limits, **own}}, (), Findings())
            asked.append(_resources_of(filled))
            self._said(of["Container"].refusals("Container", *asked[-1]), root, (*path, "containers", i), exists=exists)
        whole = _in_all([pair for pair, _ in asked]), _in_all([pair for _, pair in asked])
        self._said(of["Pod"].refusals("Pod", *whole), root, path, exists=exists)

    def _said(self, refusals: Iterable[str], root: Reader, path: Path, *, exists: bool) -> None:
        later = self.kueue and not exists
        for detail in refusals:
            rest = "Kueue decides on it all the same" if later else "planned as if it were not"
            sentence = f"the API server refuses the pod by a LimitRange: {detail}: {rest}"
            root.findings.add("refused", "warning" if later else "error", path, sentence)

    def _fill_in(self, spec: _Json, root: Reader, path: Path, namespace: str, *, exists: bool) -> None:
        for key in _CONTAINERS:
            listed = spec.get(key)
            if isinstance(listed, list):
                spec[key] = [
                    self._container(container, namespace, exists=exists) for container in cast(list[Any], listed)
                ]
        name = spec.get("runtimeClassName")
        runtime = self._runtimes.get(name) if isinstance(name, str) else None
        if runtime is None:
            if isinstance(name, str) and name and not spec.get("overhead"):
                detail = f"RuntimeClass {name!r} is not known here: counted without its overhead"
                root.findings.add("unknown-name", "warning", (*path, "runtimeClassName"), detail)
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
            requests = {**self._of(self._limits, namespace), **limits, **defaults, **own}
        else:
            requests = {**defaults, **limits, **own}
        filled = {"limits": {**self._of(self._limits, namespace), **limits}, "requests": requests}
        return {**of, "resources": {**given, **filled}}

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


def _ratios(reader: Reader) -> Steps:
    ratios: Steps = {}
    for name, value in reader.value.items():
        try:
            ratios[name] = parse_quantity(value, _NANO)
        except (QuantityError, TypeError) as error:
            reader.warn(name, str(error), "error", "bad-value")
    return ratios


def _merged(which: Callable[[int, int], int], first: Steps, other: Steps) -> Steps:
    """All of both, and ``which`` of what is in both."""
    return {**first, **{name: which(first.get(name, value), value) for name, value in other.items()}}


def _resources_of(resources: Reader) -> tuple[Steps, Steps]:
    """Requests, with limits where there are none, and limits."""
    limits = steps(resources, "limits")
    return {**limits, **steps(resources, "requests")}, limits


def _past(path: str, given: Steps, most: Steps, why: str) -> Iterator[str]:
    """A sentence where some of ``given`` is more than ``most`` says of it."""
    past = sorted(resource for resource, value in given.items() if resource in most and value > most[resource])
    if past:
        yield f"{path}: {', '.join(past)}: {why}"


def _in_all(parts: list[Steps]) -> Steps:
    """The sums of what each part has."""
    names = set[str](parts[0]).intersection(*parts) if parts else set[str]()
    return {name: sum(part[name] for part in parts) for name in names}
