"""``python -m openapi.refresh [--check]``: the document, the Python client made from it, and the lock.

The lock says which version of the interface has which document and which clients. Once it is committed neither may
change any more without a higher version: several changes on the way to one commit need one.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from app.document import text
from app.http.openapi import VERSION
from app.rules import service as rules

HERE = Path(__file__).parent
DOCUMENT = HERE / "openapi.json"
LOCK = HERE / "VERSION.lock"
RULES = HERE.parent / "docs" / "rules.md"
CLIENTS = HERE / "clients"
PYTHON = CLIENTS / "python"
RECIPES = (
    "typescript/package.json",
    "typescript/package-lock.json",
    "go/go.mod",
    "go/go.sum",
    "go/generator.mod",
    "go/generator.sum",
    "go/oapi-codegen.yaml",
    "java/pom.xml",
)
"""What decides how the clients that are not committed come out."""

_HEADER = "# The interface and its clients by version; written by `make openapi`, explained in README.md.\n"
_PACKAGE_VERSION = re.compile(rb'^version = ".*"$', re.MULTILINE)


def generate(document: Path, target: Path) -> None:
    """Make the Python client of ``document`` in ``target``, which must not exist. Raises CalledProcessError."""
    programs = Path(sys.executable).parent
    command = [
        str(programs / "openapi-python-client"), "generate", "--path", str(document), "--output-path", str(target),
        "--meta", "uv", "--config", str(HERE / "python" / "config.yaml"),
        "--custom-template-path", str(HERE / "python" / "templates"), "--fail-on-warning",
    ]  # fmt: skip
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"  # ruff formats what is generated
    said = subprocess.run(
        command, check=False, capture_output=True, text=True, env={**os.environ, "PATH": path, "RUFF_NO_CACHE": "true"}
    )
    if said.returncode:
        sys.stderr.write(said.stdout + said.stderr)
        said.check_returncode()


def files(client: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of everything in a generated client, in order; what running it leaves behind is not of it."""
    for path in sorted(client.rglob("*")):
        name = path.relative_to(client).as_posix()
        if path.is_file() and "__pycache__" not in name:
            yield name, path.read_bytes()


def fingerprint(document: str, python: Path, clients: Path) -> dict[str, str]:
    """Digests of the document and of the clients, whatever version they say they have."""
    parsed = json.loads(document)
    del parsed["info"]["version"]
    recipes = ((name, (clients / name).read_bytes()) for name in RECIPES)
    return {
        "document": _digest([("", json.dumps(parsed, sort_keys=True).encode())]),
        "python": _digest((name, _PACKAGE_VERSION.sub(b"", content)) for name, content in files(python)),
        "generated_in_ci": _digest(recipes),
    }


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
    """What is not as it should be; the client is compared with a fresh one by the tests."""
    document = text()
    if not DOCUMENT.exists() or DOCUMENT.read_text() != document:
        return [f"{DOCUMENT.name} is not what the service serves: run `make openapi`"]
    if not RULES.exists() or RULES.read_text() != rules.page():
        return ["docs/rules.md is not what the engines' catalogues say: run `make openapi`"]
    found = fingerprint(document, PYTHON, CLIENTS)
    if wrong := _wrong(found):
        return wrong
    stated = LOCK.read_text() if LOCK.exists() else ""
    return [] if stated == written(VERSION, found) else [f"{LOCK.name} says otherwise: run `make openapi`"]


def refresh() -> list[str]:
    """Write all three, unless a version would change its meaning; then nothing is written."""
    document = text()
    with tempfile.TemporaryDirectory() as folder:
        source, fresh = Path(folder) / DOCUMENT.name, Path(folder) / "python"
        source.write_text(document)
        generate(source, fresh)
        found = fingerprint(document, fresh, CLIENTS)
        if wrong := _wrong(found):
            return wrong
        DOCUMENT.write_text(document)
        RULES.write_text(rules.page())
        shutil.rmtree(PYTHON, ignore_errors=True)
        shutil.copytree(fresh, PYTHON)
    LOCK.write_text(written(VERSION, found))
    return []


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
