"""Files of the pages: each at an address that says what is in it, so that nobody needs to ask for it twice."""

import asyncio
import re
from hashlib import sha256
from pathlib import Path

import pytest

import app
from app.base.errors import NotFound
from app.http.assets import address, asset, assets

FOLDERS = [Path(app.__file__).parent / "http" / "static" / name for name in ("own", "vendor")]
MEDIA = {".css": "text/css", ".js": "application/javascript", ".svg": "image/svg+xml"}


@pytest.mark.parametrize("path", [path for folder in FOLDERS for path in folder.iterdir()], ids=lambda path: path.name)
def test_a_file_is_sent_as_it_is_for_ever(path: Path) -> None:
    if path.suffix not in MEDIA:
        assert path.name not in assets(), "a licence is no file of a page"
        return
    data = path.read_bytes()
    where = re.fullmatch(r"/assets/([0-9a-f]{16})/([^/]+)", address(path.name))
    assert where is not None
    assert (sha256(data).hexdigest().startswith(where[1]), where[2]) == (True, path.name)
    answer = asyncio.run(asset(where[1], where[2]))
    assert (bytes(answer.body), answer.headers["content-type"].partition(";")[0]) == (data, MEDIA[path.suffix])
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(("digest", "name"), [("0" * 16, "mark.svg"), ("0" * 16, "nobody.css")])
def test_no_other_address_has_a_file(digest: str, name: str) -> None:
    with pytest.raises(NotFound, match="no such file"):
        asyncio.run(asset(digest, name))
