"""Translations of a cluster, one after another: what did not change is not translated again.

A Kueue Workload is read by itself, given the queues and classes. So where only Workloads changed, those alone are read
again, with everything that is no Workload. Pods of KAI and YuniKorn stand together in groups and applications, and
those of others take room on nodes: there all is read.

Where there are so many findings that not all of them are listed, they are those of the last time that all was read,
which is then not longer ago than a minute.
"""

import time
from dataclasses import replace

from app.following.mirror import Key, View
from app.following.translating import Translated, translate
from app.formats.documents.reader import MOST_ALIKE
from app.solver.model.configuration import EngineName
from app.solver.model.problems import Finding, pointer

_ALONE = "Workload"
_OLD_SECONDS = 60.0
_MOST = 0.2
"""Of all Workloads: where more changed, reading all of them is as quick."""


class Translator:
    """Translates views of one cluster, each in the light of the last."""

    def __init__(self, engine: EngineName) -> None:
        self._engine: EngineName = engine
        self._last: Translated | None = None
        self._whole_at, self._stale = 0.0, False

    def translate(self, view: View) -> Translated:
        """All of ``view``, the same as ``translating.translate`` says but for the order of what is in it."""
        changed = self._alone(view)
        if self._last is None or changed is None or self._findings_are_old():
            self._last = translate(self._engine, view)
            self._whole_at, self._stale = time.monotonic(), False
        else:
            self._last = self._merged(self._last, view, changed)
        return self._last

    def _alone(self, view: View) -> set[Key] | None:
        """The Workloads that changed, where nothing else did."""
        if self._engine != "kueue" or view.changed is None:
            return None
        if any(kind != _ALONE for kind, _ in view.changed):
            return None
        return {key for _, key in view.changed} if len(view.changed) < _MOST * len(view.items[_ALONE]) else None

    def _findings_are_old(self) -> bool:
        return self._stale and time.monotonic() - self._whole_at > _OLD_SECONDS

    def _merged(self, last: Translated, view: View, changed: set[Key]) -> Translated:
        every = view.items[_ALONE]
        some = {key: every[key] for key in changed if key in every}
        part = translate(self._engine, replace(view, items={**view.items, _ALONE: some}))
        gone = {f"{space}/{name}" for space, name in changed}
        about = tuple(pointer(_ALONE, *key) + "/" for key in changed)
        findings = last.findings
        if len(last.findings) + len(part.findings) < MOST_ALIKE:
            findings = [*(one for one in findings if not f"{one.pointer}/".startswith(about)), *_of_workloads(part)]
        else:
            self._stale = True
        return replace(
            last,
            workloads={**{k: v for k, v in last.workloads.items() if k not in gone}, **part.workloads},
            asks={**{k: v for k, v in last.asks.items() if k not in gone}, **part.asks},
            findings=findings,
        )


def _of_workloads(part: Translated) -> list[Finding]:
    """Those that are not about what is read every time."""
    return [one for one in part.findings if one.pointer.startswith(pointer(_ALONE) + "/")]
