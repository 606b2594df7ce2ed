"""Kept documents as they lie in the database: compressed JSON."""

import zstandard

from app.answering.operations import Kept
from app.decisions.kept.repository import New

_WHOLE_LEVEL, _CHANGE_LEVEL = 3, 12
"""Changes are small and many, a whole state is large and rare: each as far as it is worth the time."""


def squeezed(document: Kept) -> New:
    """``document`` for the database."""
    level = _WHOLE_LEVEL if document.base is None else _CHANGE_LEVEL
    content = zstandard.ZstdCompressor(level=level).compress(document.body)
    base = None if document.base is None else bytes.fromhex(document.base)
    return New(bytes.fromhex(document.digest), base, content)


def unsqueezed(content: bytes) -> bytes:
    """The JSON of a kept document."""
    return zstandard.ZstdDecompressor().decompress(content)
