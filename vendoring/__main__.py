"""``python -m vendoring``: fetch what ``PACKAGES`` names and write app/http/static/vendor. ``--check``: only compare.

What is fetched comes from the registry that npm is set up for; npm holds the package to the registry's own checksum,
``manifest.json`` holds every file to ours.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VENDOR = Path(__file__).parents[1] / "app" / "http" / "static" / "vendor"
MANIFEST = VENDOR / "manifest.json"


@dataclass(frozen=True, slots=True)
class Package:
    """One package of npm. ``files``: our name of each file that is kept, by its path in the package."""

    name: str
    version: str
    license: str
    files: dict[str, str]


PACKAGES = (
    Package(
        "htmx.org", "2.0.11", "0BSD",
        {"dist/htmx.min.js": "htmx.js", "LICENSE": "htmx.LICENSE"},
    ),
    Package(
        "uplot", "1.6.32", "MIT",
        {"dist/uPlot.iife.min.js": "uplot.js", "dist/uPlot.min.css": "uplot.css", "LICENSE": "uplot.LICENSE"},
    ),
    Package(
        "swagger-ui-dist", "5.35.0", "Apache-2.0",
        {
            "swagger-ui-bundle.js": "swagger-ui.js", "swagger-ui.css": "swagger-ui.css",
            "LICENSE": "swagger-ui.LICENSE", "NOTICE": "swagger-ui.NOTICE",
            "swagger-ui-bundle.js.LICENSE.txt": "swagger-ui.js.LICENSE",
        },
    ),
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """The exit status: 1 where a file is not the one that was fetched."""
    if arguments == ["--check"]:
        wrong = differing()
        for name in wrong:
            print(f"app/http/static/vendor/{name} is not what manifest.json says: make assets", file=sys.stderr)
        return 1 if wrong else 0
    shutil.rmtree(VENDOR, ignore_errors=True)
    VENDOR.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        entries = [fetched(package, Path(folder)) for package in PACKAGES]
    MANIFEST.write_text(json.dumps({"packages": entries}, indent=1) + "\n")
    return 0


def fetched(package: Package, folder: Path) -> dict[str, Any]:
    """Put the files of ``package`` in their place; its entry of the manifest."""
    named = f"{package.name}@{package.version}"
    done = subprocess.run(
        ["npm", "pack", named, "--silent", "--json"], cwd=folder, check=True, capture_output=True, text=True
    )
    (packed,) = json.loads(done.stdout)
    digests: dict[str, str] = {}
    with tarfile.open(folder / packed["filename"]) as archive:
        for path, name in package.files.items():
            member = archive.extractfile(f"package/{path}")
            assert member is not None, f"{named} has no {path}"
            data = member.read()
            (VENDOR / name).write_bytes(data)
            digests[name] = digest(data)
    return {
        "name": package.name, "version": package.version, "license": package.license,
        "integrity": packed["integrity"], "files": digests,
    }  # fmt: skip


def differing() -> list[str]:
    """Names of files that are missing, too many, or not what the manifest says."""
    entries = json.loads(MANIFEST.read_text())["packages"]
    stated = {name: digest for entry in entries for name, digest in entry["files"].items()}
    there = {path.name: digest(path.read_bytes()) for path in VENDOR.iterdir() if path != MANIFEST}
    pinned = {package.name: package.version for package in PACKAGES}
    wrong = [name for name in sorted({*stated, *there}) if stated.get(name) != there.get(name)]
    stale = [entry["name"] for entry in entries if pinned.get(entry["name"]) != entry["version"]]
    return wrong + stale


def digest(data: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
