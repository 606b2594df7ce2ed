"""Our own format: newline-delimited JSON, each line a job or a change. Pure."""

from collections.abc import Iterator

import msgspec

from app.base.decoding import decode
from app.simulations.schemas import Change, Job
from app.solver.model.problems import InvalidInput
from app.traces.formats.record import Complaints, numbered

_job = msgspec.json.Decoder(Job).decode


def entries(body: bytes, complaints: Complaints) -> Iterator[tuple[int, Job | Change]]:
    """The lines of ``body``, with their numbers from 1. Empty lines are let be."""
    for number, line in numbered(body):
        if not line.strip():
            continue
        try:
            yield number, _job(line)
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
            found = _second_look(number, line, complaints)
            if found is not None:
                yield number, found


def _second_look(number: int, line: bytes, complaints: Complaints) -> Job | Change | None:
    """A change; or what is wrong with the line, which is a change when it has ``at`` and no ``ask``."""
    is_change = b'"at"' in line and b'"ask"' not in line
    try:
        return decode(line, Change) if is_change else decode(line, Job)
    except InvalidInput as invalid:
        for problem in invalid.problems:
            complaints.add(number, problem.detail, problem.pointer)
        return None
