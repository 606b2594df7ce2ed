"""``arbiter trace``: the traces of others as the body of a simulation."""

import sys
from typing import Annotated

from cyclopts import Parameter

from app.cli.output import complain, tried

Named = Annotated[str | None, Parameter(help="`swf`, `alibaba-gpu-2023` or `ndjson`; absent: by the file's name.")]
MappingFile = Annotated[
    str | None, Parameter(help="Which columns become queue, priority and resources: a file of YAML or JSON.")
]
NodesFile = Annotated[str | None, Parameter(help="The list of nodes, where the format has one.")]


def trace(
    file: Annotated[
        str, Parameter(allow_leading_hyphen=True, help="The trace; may be gzip or zstd; '-' reads standard input.")
    ] = "-",
    /,
    *,
    format: Named = None,  # noqa: A002
    mapping: MappingFile = None,
    nodes: NodesFile = None,
    lines: Annotated[bool, Parameter(negative=(), help="Only the jobs and changes, one a line.")] = False,
) -> int:
    """Turn a trace into the body of a simulation: `arbiter trace FILE --mapping FILE | arbiter simulate`.

    What is wrong is named by line. Exit code 0: done, 3: bad input.
    """
    from app.traces.files import load  # packages that few other commands need
    from app.traces.request import body, jobs_and_changes

    def convert() -> int:
        found = load(file, format, mapping, nodes)
        for number, note in enumerate(found.notes.found[:5]):
            complain(f"{file}: line {note.line}: {note.detail}")
            if number == 4 and found.notes.count > 5:
                complain(f"{file}: and {found.notes.count - 5} more lines like these")
        for piece in jobs_and_changes(found) if lines else body(found):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return 0

    return tried(file, convert)
