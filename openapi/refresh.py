"""``python -m openapi.refresh [--check]``: the document, the page of rules, what the chart has of the code, the lock.

The lock says which version of the interface has which document and which recipes for clients. Once it is committed
neither may change any more without a higher version: several changes on the way to one commit need one.
"""

import hashlib
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from app.base.settings import Settings
from app.decisions import router as rules
from app.formats.manifests import systems
from app.formats.reader import Effect
from app.http.openapi import VERSION
from app.service.main import create_app
from openapi import chart

HERE = Path(__file__).parent
DOCUMENT = HERE / "openapi.json"
LOCK = HERE / "VERSION.lock"
RULES = HERE.parent / "docs" / "rules.md"
FIELDS = HERE.parent / "docs" / "formats.md"
CLIENTS = HERE / "clients"
RECIPES = (
    "python/config.yaml",
    "python/templates/pyproject_uv.toml.jinja",
    "typescript/package.json",
    "typescript/package-lock.json",
    "go/go.mod",
    "go/go.sum",
    "go/generator.mod",
    "go/generator.sum",
    "go/oapi-codegen.yaml",
    "java/pom.xml",
)
"""What decides how the clients come out."""

MEANING: dict[Effect, str] = {
    "decided": "a decision depends on it",
    "warning": "a decision may differ for it, which a finding says",
    "error": "a decision would be wrong for it, which a finding says: exit code 3",
    "info": "no decision depends on it, which a finding says",
    "none": "no decision depends on it",
}
_BEGIN, _END = "## Every field\n", "\n## "
_HEADER = "# The interface by version; written by `make openapi`, explained in README.md.\n"


def text() -> str:
    """The document as the service serves it, one field a line."""
    document = msgspec.json.encode(create_app(Settings(database_url=None)).openapi())
    return msgspec.json.format(document, indent=2).decode() + "\n"


def fingerprint(document: str, clients: Path) -> dict[str, str]:
    """Digests of the document, whatever version it says it has, and of how clients are made from it."""
    parsed = json.loads(document)
    del parsed["info"]["version"]
    recipes = ((name, (clients / name).read_bytes()) for name in RECIPES)
    return {"document": _digest([("", json.dumps(parsed, sort_keys=True).encode())]), "recipes": _digest(recipes)}


def objections(lock: str, version: str, found: dict[str, str]) -> list[str]:
    """Why ``found`` may not be what ``version`` means, given what an earlier lock says."""
    kept = tomllib.loads(lock)
    if not kept or _ordered(version) > _ordered(kept["version"]):
        return []
    if version != kept["version"]:
        return [f"{version} came before {kept['version']}: raise VERSION in app/http/openapi.py"]
    changed = [name for name, digest in found.items() if kept.get(name) != digest]
    if not changed:
        return []
    return [
        f"{', '.join(changed)} changed, and {version} means what it was before: raise VERSION in "
        "app/http/openapi.py, say in CHANGELOG.md what is new, and run `make openapi`"
    ]


def earlier(lock: Path) -> list[str]:
    """The lock as the last two commits that touched it left it, the newer one first; as it is where nothing tells."""
    commits = (_git(lock.parent, "log", "-n", "2", "--format=%H", "--", lock.name) or "").split()
    locks = [_git(lock.parent, "show", f"{commit}:./{lock.name}") for commit in commits]
    return [text for text in locks if text is not None] or ([lock.read_text()] if lock.exists() else [])


def written(version: str, found: dict[str, str]) -> str:
    """The lock's text."""
    return _HEADER + "".join(f'{name} = "{value}"\n' for name, value in {"version": version, **found}.items())


def check() -> list[str]:
    """What is not as it should be."""
    document = text()
    if not DOCUMENT.exists() or DOCUMENT.read_text() != document:
        return [f"{DOCUMENT.name} is not what the service serves: run `make openapi`"]
    if not RULES.exists() or RULES.read_text() != rules.page():
        return ["docs/rules.md is not what the engines' catalogues say: run `make openapi`"]
    if FIELDS.read_text() != with_fields(FIELDS.read_text()):
        return ["docs/formats.md is not what the tables of fields in app/formats say: run `make openapi`"]
    if stale := chart.stale():
        return [f"{', '.join(stale)}: not what the code says: run `make openapi`"]
    found = fingerprint(document, CLIENTS)
    if wrong := _wrong(found):
        return wrong
    stated = LOCK.read_text() if LOCK.exists() else ""
    return [] if stated == written(VERSION, found) else [f"{LOCK.name} says otherwise: run `make openapi`"]


def refresh() -> list[str]:
    """Write all of them, unless a version would change its meaning; then nothing is written."""
    document = text()
    found = fingerprint(document, CLIENTS)
    if wrong := _wrong(found):
        return wrong
    DOCUMENT.write_text(document)
    RULES.write_text(rules.page())
    FIELDS.write_text(with_fields(FIELDS.read_text()))
    chart.refresh()
    LOCK.write_text(written(VERSION, found))
    return []


def with_fields(page: str) -> str:
    """``page``, docs/formats.md, with what becomes of every field under its heading."""
    before, _, rest = page.partition(_BEGIN)
    meanings = "; ".join(f"`{effect}`: {meaning}" for effect, meaning in MEANING.items())
    text = f"Of what is below a path, unless a longer one says otherwise. {meanings}.\n\n{_table()}\n"
    return f"{before}{_BEGIN}\n{text}{_END}{rest.partition(_END)[2]}"


def _table() -> str:
    lines = ["| system | kind | field | |", "| --- | --- | --- | --- |"]
    for system in systems():
        for kind, fields in system.fields.items():
            for effect in MEANING:
                listed = ", ".join(f"`{path}`" for path, of in fields.items() if of == effect)
                if listed:
                    lines.append(f"| {system.facts.name} | {kind} | {listed} | {effect} |")
    return "\n".join(lines)


def _wrong(found: dict[str, str]) -> list[str]:
    return [objection for lock in earlier(LOCK) for objection in objections(lock, VERSION, found)][:1]


def _ordered(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _git(folder: Path, *command: str) -> str | None:
    """What git says; None where there is no git, no checkout or no such thing in it."""
    try:
        done = subprocess.run(["git", *command], cwd=folder, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def _digest(parts: Iterator[tuple[str, bytes]] | list[tuple[str, bytes]]) -> str:
    hashed = hashlib.sha256()
    for name, content in parts:
        hashed.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"sha256:{hashed.hexdigest()}"


if __name__ == "__main__":
    complaints = check() if "--check" in sys.argv[1:] else refresh()
    sys.stderr.writelines(f"{complaint}\n" for complaint in complaints)
    sys.exit(bool(complaints))
