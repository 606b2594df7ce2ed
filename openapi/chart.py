"""What the Helm chart has of the code: a follower's rights, names of settings, the alerts of the reference."""

import json
import re
from pathlib import Path
from typing import Any, get_args

from app.base.settings import Settings
from app.following.objects import FOLLOWED, manifests
from app.solver.model.configuration import EngineName

ROOT = Path(__file__).parents[1]
CHART = ROOT / "deploy" / "helm" / "arbiter"
_ALERTS = re.compile(r"```yaml\n(groups:\n.*?)```", re.DOTALL)
_GROUPS = "groups:\n"
OWN = ("host", "port", "data_dir", "database_url", "workers", "authentication", "console", "console_key",
       "simulation_worker", "examples")  # fmt: skip
"""Settings that the chart decides itself, out of other values."""


def files() -> dict[Path, str]:
    """What each of them must contain."""
    return {
        CHART / "files" / "rights.json": _json(_rights()),
        CHART / "values.schema.json": _schema(),
        ROOT / "deploy" / "prometheus" / "alerts.yaml": alerts(),
    }


def alerts() -> str:
    """The rules that docs/reference.md proposes, and docs/kubernetes.md for followers. Raises LookupError."""
    groups: list[str] = []
    for page in ("reference", "kubernetes"):
        found = _ALERTS.search((ROOT / "docs" / f"{page}.md").read_text())
        if found is None:
            raise LookupError(f"docs/{page}.md has no alerts")
        groups.append(found[1].removeprefix(_GROUPS))
    return _GROUPS + "".join(groups)


def stale() -> list[str]:
    """Those that contain something else, by their paths in the repository."""
    return [str(path.relative_to(ROOT)) for path, text in files().items() if _text(path) != text]


def refresh() -> None:
    """Write those that contain something else."""
    for path, text in files().items():
        if _text(path) != text:
            path.write_text(text)


def _rights() -> dict[str, list[dict[str, Any]]]:
    """By what `arbiter rights` is asked for."""
    plain = {str(engine): _roles(engine, shadow=False) for engine in FOLLOWED}
    return plain | {f"{engine} --shadow": _roles(engine, shadow=True) for engine in FOLLOWED}


def _roles(engine: EngineName, *, shadow: bool) -> list[dict[str, Any]]:
    """Rules by namespace; null: in the whole cluster."""
    assert engine in get_args(EngineName)
    made = manifests(engine, "", "", shadow=shadow)
    return [{"namespace": one["metadata"].get("namespace"), "rules": one["rules"]} for one in made if "rules" in one]


def _schema() -> str:
    schema = json.loads((CHART / "values.schema.json").read_text())
    names = sorted(f"ARBITER_{name.upper()}" for name in Settings.model_fields if name not in OWN)
    schema["definitions"]["setting"]["enum"] = names
    clusters = schema["properties"]["follow"]["properties"]["clusters"]["items"]["properties"]
    clusters["engine"]["enum"] = list(FOLLOWED)
    return _json(schema)


def _json(document: Any) -> str:
    return json.dumps(document, indent=2) + "\n"


def _text(path: Path) -> str | None:
    return path.read_text() if path.exists() else None
