"""What commands read: files, folders and standard input, JSON or YAML."""

import json
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from app.base.documents import Unreadable
from app.base.documents import read as parsed
from app.cli.output import read
from app.formats.yson import read_any

SUFFIXES = (".yaml", ".yml", ".json")

Files = Annotated[
    list[str] | None,
    Parameter(
        name=["--file", "-f"], negative=(), allow_leading_hyphen=True,
        help="Another file, or a folder of manifests; may be given several times.",
    ),
]  # fmt: skip


class Source(NamedTuple):
    """The bytes of a file, and what the reader calls it."""

    name: str
    body: bytes


def gathered(first: str, more: list[str] | None) -> list[Source]:
    """What ``first`` and ``more`` name; standard input where ``first`` is ``-`` and nothing else is named. A folder
    stands for its YAML and JSON files in order of name. Raises OSError."""
    names = [*([] if first == "-" and more else [first]), *(more or [])]
    found: list[Source] = []
    for name in names:
        folder = Path(name)
        if name != "-" and folder.is_dir():
            files = sorted(one for one in folder.iterdir() if one.suffix in SUFFIXES)
            if not files:
                raise FileNotFoundError(2, "no .yaml, .yml or .json file in this folder", name)
            found += [Source(str(one), one.read_bytes()) for one in files]
        else:
            found.append(Source(name, read(name)))
    return found


def as_json(body: bytes) -> bytes:
    """``body`` where it is JSON; what one YAML document says as JSON. What is neither stays, for whoever decodes it to
    say so. Raises Unreadable for YAML of several documents."""
    if body.lstrip()[:1] in (b"{", b"[", b""):
        return body
    documents = parsed(body)
    if len(documents) != 1:
        raise Unreadable(f"{len(documents)} documents: one is expected")
    document = documents[0][1]
    return json.dumps(document).encode() if isinstance(document, dict | list) else body


def joined(sources: list[Source]) -> tuple[bytes, list[str]]:
    """All documents of several sources as one list, and of each document the source that it is from."""
    documents: list[object] = []
    names: list[str] = []
    for source in sources:
        for _, document in read_any(source.body):
            documents.append(document)
            names.append(source.name)
    return json.dumps(documents).encode(), names
