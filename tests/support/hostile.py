"""Text that is small and would cost much, or that is none."""

from app.base.documents import MAX_DIGITS

_NESTED = "\n".join(["a: &a {x: 1}", *(f"b{i}: &b{i} {{<<: [{', '.join(f'*{p}' for p in [prev] * 9)}]}}"
                                       for i, prev in enumerate(["a", *(f"b{n}" for n in range(12))]))])  # fmt: skip
HOSTILE = {
    "sequences in sequences": b"- " * 30_000,
    "brackets": b"[" * 25_000,
    "braces": b"{a: " * 25_000,
    "JSON's brackets": b"[" * 100_000 + b"]" * 100_000,
    "merge keys": _NESTED.encode(),
    "aliases": b"a: &a [" + b"1," * 2000 + b"]\nb: [" + b"*a," * 3000 + b"]",
    "a key twice": b"queue: a\nqueue: b",
    "JSON's key twice": b'{"queue": "a", "queue": "b"}',
    "NUL": b'{"queue": "a\x00b"}',
    "NUL in YAML": b"queue: a\x00b",
    "an escaped NUL": b'{"queue": "a\\u0000b"}',
    "a key with one": b'{"a\\u0000": 1}',
    "an escaped NUL of YAML": b'queue: "a\\0b"',
    "digits": b'{"priority": ' + b"9" * 5000 + b"}",
    "more digits than are read": b'{"priority": ' + b"9" * (MAX_DIGITS + 2) + b"}",
    "infinity": b'{"priority": 1e999}',
    "infinity of YAML": b"priority: 1e999",
    "two documents": b"a: 1\n---\na: 2",
    "nothing": b"",
    "a tag": b"!!python/object/apply:os.system [true]",
    "bytes": b"\xff\xfe\x00",
}
