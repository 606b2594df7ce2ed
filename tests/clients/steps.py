"""The document in others' hands, a language a function: generate, compile, run, and leave what came of it in ``dist``.

Each takes a copy of openapi/, what a program needs to reach a live service, and the folder for what it made.
"""

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.clients.programs import Failed, fetch, needs, run

_DOCUMENT = "../../openapi.json"
_MAVEN = ("--quiet", "--batch-mode", "--no-transfer-progress", "-Dstyle.color=never")
_EXAMPLES = re.compile(r"```python\n(.*?)```", re.DOTALL)


def lint(folder: Path, _: dict[str, str], __: Path) -> str:
    """Redocly's strict rules, and our own on top."""
    needs("node", "20.19", "--version")
    here = folder / "lint"
    fetch(here, "npm", "ci", "--no-audit", "--no-fund")
    run(here, "npm", "run", "lint")
    return "the document passes"


def python(folder: Path, service: dict[str, str], dist: Path) -> str:
    """A wheel by openapi-python-client; the examples of its page run one after the other, as one program."""
    here = folder / "clients" / "python"
    programs = Path(sys.executable).parent
    path = {"PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}", "RUFF_NO_CACHE": "true"}
    client = here / "client"
    run(
        here, str(programs / "openapi-python-client"), "generate", "--path", _DOCUMENT, "--output-path", str(client),
        "--meta", "uv", "--config", "config.yaml", "--custom-template-path", "templates", "--fail-on-warning",
        given=path,
    )  # fmt: skip
    shutil.copy(here / "README.md", client / "README.md")
    wheels, installed = here / "wheels", here / "installed"
    uv = str(programs / "uv")
    run(here, uv, "--offline", "--no-cache", "build", "--wheel", "--out-dir", str(wheels), str(client))
    (wheel,) = wheels.glob("*.whl")
    run(
        here, uv, "--offline", "--no-cache", "pip", "install", "--python", sys.executable, "--no-deps",
        "--target", str(installed), str(wheel),
    )  # fmt: skip
    given = {**service, "PYTHONPATH": str(installed)}
    said = run(installed, sys.executable, str(here / "try.py"), given=given)
    run(installed, sys.executable, "-c", _page(here / "README.md", service), given=given)
    _leave(dist, wheel)
    return said


def _page(readme: Path, service: Mapping[str, str]) -> str:
    """The examples of the page as one program, for this service. Raises Failed where there are none."""
    examples = _EXAMPLES.findall(readme.read_text())
    if not examples:
        raise Failed(f"{readme.name} has no examples")
    return "\n".join(examples).replace("http://127.0.0.1:8080", service["ARBITER_URL"])


def typescript(folder: Path, service: dict[str, str], dist: Path) -> str:
    """Types by openapi-typescript, calls by openapi-fetch."""
    needs("node", "20.19", "--version")
    here = folder / "clients" / "typescript"
    fetch(here, "npm", "ci", "--no-audit", "--no-fund")
    run(here, "npm", "run", "generate")
    run(here, "npm", "run", "compile")
    said = run(here, "npm", "run", "--silent", "try", given=service)
    _leave(dist, here / "schema.ts", here / "package.json")
    return said


def go(folder: Path, service: dict[str, str], dist: Path) -> str:
    """A client by oapi-codegen."""
    needs("go", "1.24", "version")  # which fetches a newer one where a module asks for it
    here = folder / "clients" / "go"
    (here / "client").mkdir()
    fetch(here, "go", "mod", "download")
    fetch(here, "go", "mod", "download", "-modfile=generator.mod")
    run(here, "go", "tool", "-modfile=generator.mod", "oapi-codegen", "-config", "oapi-codegen.yaml", _DOCUMENT)
    run(here, "go", "build", "-o", "try.bin", "./try")
    said = run(here, str(here / "try.bin"), given=service)
    _leave(dist, here / "client", here / "go.mod", here / "go.sum")
    return said


def java(folder: Path, service: dict[str, str], dist: Path) -> str:
    """A client by openapi-generator, as a plugin of Maven."""
    needs("javac", "17", "-version")
    needs("mvn", "3.6.3", "--version")
    here = folder / "clients" / "java"
    fetch(here, "mvn", *_MAVEN, "dependency:resolve", "dependency:resolve-plugins")
    run(here, "mvn", *_MAVEN, "--offline", "compile")
    said = run(here, "mvn", *_MAVEN, "--offline", "exec:java", given=service)
    _leave(dist, here / "target" / "generated-sources" / "openapi")
    return said


def _leave(dist: Path, *made: Path) -> None:
    """Put what was made where people find it, in place of what an earlier run left."""
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir(parents=True)
    for path in made:
        if path.is_dir():
            shutil.copytree(path, dist / path.name)
        else:
            shutil.copy(path, dist)
