"""Which recorded decision tells a mutant from the code: the vectors are decided in forks that have its code."""

import json
import os
import resource
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coverage import Coverage

from tests.mutants.forks import every_function, put_in
from tests.mutants.operators import Mutant
from tests.support.replay import answer
from tests.vectors.compare import disagreements

ROOT = Path(__file__).parents[2]
_WORK = 20
"""Seconds of the processor for all vectors that a mutant meets, beside a second for every ten of them."""


class Killing:
    """Vectors by number, and the lines that each runs."""

    def __init__(self, vectors: Sequence[dict[str, Any]]) -> None:
        self._asked = [(one.get("path", "/v1/decisions"), json.dumps(one["request"]).encode()) for one in vectors]
        self._vectors = vectors
        watch = Coverage(data_file=None, config_file=False, source=[str(ROOT / "app")])
        watch.start()
        for v in range(len(vectors)):
            watch.switch_context(str(v))
            self._agrees(v)
        watch.stop()
        data = watch.get_data()
        self._lines: dict[str, dict[int, list[str]]] = {
            os.path.relpath(file, ROOT): data.contexts_by_lineno(file) for file in data.measured_files()
        }
        self._functions = every_function()

    def _agrees(self, v: int) -> bool:
        vector = self._vectors[v]
        if vector.get("status", 200) != 200:
            return True  # what is refused is the service's to say
        try:
            return not disagreements(vector, answer(*self._asked[v]))
        except Exception:
            return False

    def runs(self, mutant: Mutant) -> list[int]:
        """The vectors that run the changed lines, in order."""
        lines = self._lines.get(mutant.path, {})
        found = {int(v) for at in range(mutant.lines[0], mutant.lines[1] + 1) for v in lines.get(at, ()) if v}
        return sorted(found)

    def first(self, mutant: Mutant, vectors: Sequence[int]) -> int | None:
        """The first of ``vectors`` that doesn't agree with the mutant, or doesn't come to an end."""
        if mutant.function is None or not vectors:
            return None
        seen, said = os.pipe()
        child = os.fork()
        if child == 0:
            self._meet(mutant, vectors, said)
        os.close(said)
        with os.fdopen(seen) as answers:
            tried = answers.read().split()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return int(tried[-1]) if status != 0 and tried else None

    def _meet(self, mutant: Mutant, vectors: Sequence[int], said: int) -> None:
        code = 0
        try:
            used = resource.getrusage(resource.RUSAGE_SELF)
            work = int(used.ru_utime + used.ru_stime) + _WORK + len(vectors) // 10
            resource.setrlimit(resource.RLIMIT_CPU, (work, work + 5))
            signal.signal(signal.SIGXCPU, signal.SIG_DFL)
            warnings.simplefilter("ignore")
            asked = {"path": mutant.path, "source": mutant.source, "line": mutant.function[1] if mutant.function else 0}
            if put_in(asked, self._functions):
                for v in vectors:
                    os.write(said, b"%d " % v)
                    if not self._agrees(v):
                        code = 1
                        break
        except BaseException:
            print("a mutant could not be met", file=sys.stderr)  # noqa: T201
        finally:
            os._exit(code)
