"""Fields of a configuration set by path: ``queues.research.quota.gpu.guaranteed=12``.

Names lead through mappings, and through lists to the element of that ``name``; the rest of a path may be quoted where
a name has dots (``queues."root.a".weight``). ``queues.research.flavors.spot.cpu.guaranteed`` leads to quotas by flavor;
where one flavor alone has the resource, ``quota`` does too. A field may be new, where a document may have it; what
leads to it must be there.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import msgspec

from app.base.decoding import convert
from app.solver.engine import all_facts
from app.solver.model.configuration import Configuration, Quota
from app.solver.model.problems import InvalidInput, Nearest, Problem, few, pointer

_STEP = re.compile(r'"((?:[^"\\]|\\.)*)"|([^."]+)')
_MOST_STEPS = 32


def with_fields(document: Configuration, fields: Mapping[str, Any]) -> Configuration:
    """``document`` with ``fields`` by path. Raises InvalidInput, with pointers ``/set/<path>``."""
    plain: dict[str, Any] = msgspec.to_builtins(document)
    problems: list[Problem] = []
    for path, value in fields.items():
        try:
            _put(plain, _steps(path), value)
        except LookupError as wrong:
            problems.append(Problem(pointer=pointer("set", path), detail=str(wrong.args[0])))
    if problems:
        raise InvalidInput(problems)
    return convert(plain, Configuration)


@cache
def _mappings() -> frozenset[str]:
    """Fields that may be new where a path leads through them."""
    blocks = (facts.block for facts in all_facts())
    return frozenset(("quota", "settings", "properties", "node_labels", "preemption", *blocks))


def _steps(path: str) -> list[str]:
    steps: list[str] = []
    position = 0
    while position < len(path) and len(steps) <= _MOST_STEPS:
        match = _STEP.match(path, position)
        if match is None or (match.end() < len(path) and path[match.end()] != "."):
            break
        steps.append(match[1].replace('\\"', '"') if match[1] is not None else match[2])
        position = match.end() + 1
        if match.end() == len(path):
            return steps
    raise LookupError(f"{path[:100]!r} is no path: names with dots between them are expected")


def _put(document: dict[str, Any], steps: list[str], value: Any) -> None:
    """Set the value that ``steps`` lead to. Raises LookupError with what exists where they go wrong."""
    here: Any = document
    followed: list[str] = []
    while len(steps) > 1 and followed[-1:] != ["properties"]:
        name, length, here = _follow(here, steps, followed)
        followed.append(name)
        steps = steps[length:]
    if not isinstance(here, dict):
        raise LookupError(f"{'.'.join(followed)} has no field {steps[0]!r}: name one of {_known(here)} and its field")
    if followed[-1:] == ["quota"] and not isinstance(value, dict):
        raise LookupError(f"{'.'.join([*followed, *steps])} is a quota: say {', '.join(Quota.__struct_fields__)} of it")
    cast(dict[str, Any], here)[".".join(steps)] = value  # properties have dots in their names


def _follow(here: Any, steps: list[str], followed: list[str]) -> tuple[str, int, Any]:
    """The name that was followed, how many steps it took (names may have dots), and what it leads to."""
    if isinstance(here, list):
        named = {_name(item): item for item in cast(list[Any], here)}
    elif isinstance(here, dict):
        named = cast(dict[str, Any], here)
    else:
        raise LookupError(f"{'.'.join(followed)} is a value: there is nothing below it")
    if steps[0] == "flavors" and followed[:1] == ["queues"] and isinstance(here, dict) and len(steps) > 3:
        return _of_flavor(named, steps, followed)
    if steps[0] == "quota" and "resource_groups" in named and len(steps) > 2:
        return "quota", 1, _quota_of_flavors(named["resource_groups"], ".".join(steps[1:-1]), followed)
    for length in range(len(steps) - 1, 0, -1):
        if (name := ".".join(steps[:length])) in named:
            return name, length, named[name]
    if followed and followed[-1] == "quota":
        gpus = [name for name in named if name.endswith("/gpu")]
        if steps[0] == "gpu" and len(gpus) == 1:
            return gpus[0], 1, named[gpus[0]]
        name = ".".join(steps[:-1])
        return name, len(steps) - 1, named.setdefault(name, {})
    if isinstance(here, dict) and (steps[0] in _mappings() or followed == ["settings"]):
        return steps[0], 1, named.setdefault(steps[0], {})
    raise LookupError(_nothing(followed, steps[0], list(named)))


def _of_flavor(queue: dict[str, Any], steps: list[str], followed: list[str]) -> tuple[str, int, Any]:
    """The quotas of one flavor of a queue, after ``flavors`` and its name. Raises LookupError."""
    flavors = {_name(flavor): flavor for group in queue.get("resource_groups") or () for flavor in group["flavors"]}
    if "quota" in queue:
        flavors["default"] = {"quota": queue["quota"]}
    for length in range(len(steps) - 2, 0, -1):
        if (name := ".".join(steps[1 : 1 + length])) in flavors:
            return "quota", 1 + length, flavors[name].setdefault("quota", {})
    raise LookupError(_nothing([*followed, "flavors"], steps[1], list(flavors)))


def _quota_of_flavors(groups: Any, resource: str, followed: list[str]) -> dict[str, Any]:
    """The quotas of the only flavor that has ``resource``. Raises LookupError where there are several, or none."""
    flavors = [flavor for group in groups for flavor in group["flavors"]]
    fitting = [flavor for flavor in flavors if any(_same(name, resource) for name in flavor.get("quota", ()))]
    if len(fitting) == 1:
        return fitting[0]["quota"]
    names = ", ".join(repr(flavor["name"]) for flavor in fitting or flavors)
    which = f"{len(fitting)} flavors have {resource!r}" if fitting else f"no flavor has {resource!r}"
    raise LookupError(f"{'.'.join(followed)} has quotas by flavor, and {which}: {names}")


def _same(name: str, resource: str) -> bool:
    return name == resource or (resource == "gpu" and name.endswith("/gpu"))


def _name(item: Any) -> str:
    return str(cast(dict[str, Any], item).get("name")) if isinstance(item, dict) else ""


def _known(listed: list[Any]) -> str:
    return ", ".join(repr(_name(item)) for item in listed[:10]) or "none"


def _nothing(followed: list[str], name: str, known: list[str]) -> str:
    listed = few(list(map(repr, known)), 10)
    where, meant = ".".join(followed) or "the configuration", Nearest(known).meant(name)
    return f"{where} has no {name!r}: there are {listed or 'none'}{meant}"
