"""Stylesheets, scripts and icons: our own and those of others, each at an address that changes with its content."""

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter
from starlette.responses import Response

from app.base.errors import NotFound
from app.http.openapi import operation

_FOLDERS = tuple(Path(__file__).with_name("static") / name for name in ("own", "vendor"))
_MEDIA = {".css": "text/css", ".js": "application/javascript", ".svg": "image/svg+xml"}
_FOREVER = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


class Asset(NamedTuple):
    """A file as it is sent."""

    digest: str
    media: str
    data: bytes


@cache
def assets() -> dict[str, Asset]:
    """Every file by its name."""
    return {path.name: _read(path) for folder in _FOLDERS for path in folder.iterdir() if path.suffix in _MEDIA}


def _read(path: Path) -> Asset:
    data = path.read_bytes()
    return Asset(sha256(data).hexdigest()[:16], _MEDIA[path.suffix], data)


def address(name: str) -> str:
    """Where a file is; another one when its content changes."""
    return f"/assets/{assets()[name].digest}/{name}"


@router.get("/assets/{digest}/{name}", **operation(needs=None, responses={200: None}))
async def asset(digest: str, name: str) -> Response:
    """A file that never changes at this address."""
    found = assets().get(name)
    if found is None or found.digest != digest:
        raise NotFound("no such file")
    headers = {"Cache-Control": _FOREVER, "X-Content-Type-Options": "nosniff"}
    return Response(found.data, headers=headers, media_type=found.media)
