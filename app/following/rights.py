"""The rights that a follower needs in a cluster, out of the table that it reads by."""

from collections.abc import Iterable
from typing import Any

from app.following.kinds import VERBS, Kind, followed
from app.solver.model.configuration import EngineName

_RBAC = "rbac.authorization.k8s.io"


def manifests(
    engine: EngineName, namespace: str, account: str, *, shadow: bool = False, within: str | None = None
) -> list[dict[str, Any]]:
    """An account, and roles that let it read what is followed of ``engine``, each bound to it. ``shadow``:
    and what says of preemptions; ``within``: the namespace of the system."""
    kinds = followed(engine, shadow=shadow, namespace=within)
    made: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": namespace}},
        *_role(
            "ClusterRole",
            f"{account}-{engine}",
            None,
            _rules(k for k in kinds if k.within is None),
            _of(account, namespace),
        ),
    ]
    for space in sorted({kind.within for kind in kinds if kind.within is not None}):
        rules = _rules(kind for kind in kinds if kind.within == space)
        made += _role("Role", f"{account}-{engine}", space, rules, _of(account, namespace))
    return made


def _of(account: str, namespace: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": account, "namespace": namespace}


def _rules(kinds: Iterable[Kind]) -> list[dict[str, Any]]:
    plurals: dict[str, list[str]] = {}
    for kind in kinds:
        plurals.setdefault(kind.group, []).append(kind.plural)
    return [{"apiGroups": [group], "resources": of, "verbs": list(VERBS)} for group, of in plurals.items()]


def _role(
    kind: str, name: str, space: str | None, rules: list[dict[str, Any]], subject: dict[str, str]
) -> list[dict[str, Any]]:
    metadata = {"name": name, **({"namespace": space} if space is not None else {})}
    reference = {"apiGroup": _RBAC, "kind": kind, "name": name}
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules},
        {"apiVersion": f"{_RBAC}/v1", "kind": f"{kind}Binding", "metadata": metadata, "roleRef": reference,
         "subjects": [subject]},
    ]  # fmt: skip
