"""``python -m app.service.document [--check] FILE``: write the OpenAPI document, or fail when FILE differs from it."""

import sys
from pathlib import Path

import msgspec

from app.base.settings import Settings
from app.service.main import create_app


def text() -> str:
    """The document as the service serves it, one field a line."""
    document = msgspec.json.encode(create_app(Settings(database_url=None)).openapi())
    return msgspec.json.format(document, indent=2).decode() + "\n"


def main(arguments: list[str]) -> int:
    """The exit status: 1 when ``--check`` finds a difference."""
    path = Path(arguments[-1])
    if "--check" not in arguments:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text())
        return 0
    if path.exists() and path.read_text() == text():
        return 0
    sys.stderr.write(f"{path} is not what the service serves; run `make openapi`\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
