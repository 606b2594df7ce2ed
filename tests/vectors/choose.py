"""Choose the committed selection anew: ``python -m tests.vectors.choose [engine...]``.

Evenly from each recorded file, so that every part of it is there; nothing of the origins' own tests or texts.
"""

import gzip
import sys

from tests.vectors.files import ENGINES, HERE, SHARED, files

BYTES_AN_ENGINE = 300_000


def main() -> int:
    for engine in sys.argv[1:] or ENGINES:
        recorded = [
            path
            for path in files(SHARED)
            if path.parent.name == engine and not path.name.startswith(("upstream", "documented"))
        ]
        share = BYTES_AN_ENGINE / sum(path.stat().st_size for path in recorded)
        (HERE / engine).mkdir(exist_ok=True)
        for path in recorded:
            with gzip.open(path) as source:
                lines = source.readlines()
            every = max(1, round(1 / share)) if len(lines) > 20 else 1
            (HERE / engine / path.name).write_bytes(gzip.compress(b"".join(lines[::every]), 9, mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
