"""Why: what is made of a search once its outcome is known.

Verdicts and prose are derived here from what the search told (``record.py``). The explanation is that of the answer
given: a candidate has one verdict for the whole ask, and an ask that waits takes nobody, whatever was tried for its
first tasks.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from app.solver.engines.yunikorn.compile.configuration import Amounts
from app.solver.engines.yunikorn.compile.state import OPTED_OUT, ORIGINATOR, Ints
from app.solver.engines.yunikorn.decide.nodes import Pool
from app.solver.engines.yunikorn.decide.outcome import Outcome
from app.solver.engines.yunikorn.decide.overlay import Overlay
from app.solver.engines.yunikorn.decide.record import SILENT, Silent
from app.solver.engines.yunikorn.decide.request import Request
from app.solver.engines.yunikorn.decide.victims import required_node
from app.solver.engines.yunikorn.decide.victims.candidates import Reach, fates
from app.solver.engines.yunikorn.decide.victims.guarantee import levels, remaining
from app.solver.engines.yunikorn.decide.wording import counted, joined
from app.solver.model.quantity import units
from app.solver.model.trace import Change, Explanation, Verdict
from app.solver.trace import Why

Fate = tuple[Verdict, str]
"""A verdict and its rule."""
OUT_OF_REACH = frozenset({
    "asking-queue", "outside-the-fence", "on-no-node", "no-common-resource", "on-another-node", "node-held",
    "node-closed",
})  # fmt: skip
"""Rules by which a task was never looked at for the ask; the others forbid that it goes."""
SEARCHED_IN_VAIN = frozenset({"no-node", "no-victims", "no-candidates", "nodes-held", "shortfall", "required-node"})
"""Failures of a search that has looked at every candidate."""
_NEARNESS: dict[Verdict, int] = {
    "victim": 4, "put-back": 3, "not-needed": 2, "protected": 1, "out-of-reach": 0,
}  # fmt: skip
"""Of several tasks of an ask each gives a verdict; the one that came nearest to evicting holds."""


class Recorder(Silent):
    """One ask's record."""

    __slots__ = ("_among", "_final", "_forbidden", "_overlay", "_places", "_pool", "_taken", "_vain", "_why", "_within")
    on = True

    def __init__(self, why: Why) -> None:
        self._why = why
        self._final: dict[int, Fate] = {}
        self._places: dict[int, int] = {}
        self._overlay: Overlay | None = None
        self._start()

    def _start(self) -> None:
        self._within: Reach | None = None
        self._among: list[int] | None = None
        self._pool: Pool | None = None
        self._forbidden: set[int] = set()
        self._taken: dict[int, list[int]] = {}
        self._vain: set[int] = set()

    def searching(self, overlay: Overlay, request: Request, within: Reach | None, among: Sequence[int] | Ints) -> None:
        """See ``Silent``."""
        self._within = within
        self._among = [int(task) for task in among]
        if within is None:
            return
        names = overlay.state.configuration.tree.names
        reason = "it can't take the ask within its limit" if within.at_limit else "it is fenced, or the root"
        self._why.step(
            "fence", f"victims are looked for below {names[within.fence]}: {reason}", candidates=len(self._among)
        )
        asking, left = _left(overlay, request, within)
        shown = {request.resources.names[r]: units(n, request.resources.names[r]) for r, n in left.items()}
        self._why.step("guarantee-left", f"what is left of the guarantee of {names[asking]}", left=shown)

    def opened(self, pool: Pool) -> None:
        """See ``Silent``."""
        self._pool = pool

    def forbidden(self, tasks: Ints) -> None:
        """See ``Silent``."""
        self._forbidden.update(tasks.tolist())

    def searched(self, node: int, taken: Sequence[int], victims: Sequence[int] | None) -> None:
        """See ``Silent``."""
        if victims is None:
            self._vain.add(node)
        else:
            self._vain.discard(node)
            self._taken[node] = list(taken)

    def decided(self, overlay: Overlay, request: Request, outcome: Outcome) -> None:
        """See ``Silent``."""
        self._overlay = overlay
        self._tell_nodes(overlay, outcome)
        if request.units > 1:
            self._why.step("task", f"{request.task.name}: {outcome.kind}", place=request.unit)
        found = {} if self._among is None else dict(self._fates(overlay, request, self._among, outcome))
        if outcome.kind != "wait":
            for task, fate in found.items():
                held = self._final.get(task)
                if held is None or _NEARNESS[fate[0]] >= _NEARNESS[held[0]]:
                    self._final[task] = fate
            self._places |= {task: len(self._places) + i for i, task in enumerate(outcome.victims)}
        else:
            tried = {task for task, (verdict, _) in self._final.items() if verdict in ("victim", "put-back")}
            self._final |= found
            self._final |= dict.fromkeys(tried, ("not-needed", "part-waits"))
            self._places = {}
        self._start()

    def _tell_nodes(self, overlay: Overlay, outcome: Outcome) -> None:
        names = overlay.state.node_names
        for node, taken in self._taken.items():
            victims = outcome.victims if node == outcome.node else taken
            shown = ["/".join(overlay.state.label(task)) for task in victims]
            self._why.step("node", f"{names[node]}: {counted(len(victims), 'victim')}", victims=shown, node=names[node])
        for node in self._vain:
            detail = f"{names[node]}: what may be preempted there does not make room"
            self._why.step("node-out", detail, node=names[node])

    def _fates(
        self, overlay: Overlay, request: Request, among: list[int], outcome: Outcome
    ) -> Iterable[tuple[int, Fate]]:
        """One verdict a task, from the point of view of one allocation ask."""
        within = self._within
        kept = required_node.fates(overlay, request) if within is None else fates(overlay, request, within)
        for task, rule in kept:
            yield task, ("out-of-reach" if rule in OUT_OF_REACH else "protected", rule)
        victims = set(outcome.victims)
        for task in among:
            yield task, ("victim", "makes-room") if task in victims else self._spared(overlay, task, outcome)

    def _spared(self, overlay: Overlay, task: int, outcome: Outcome) -> Fate:
        """The verdict of a candidate that stays."""
        node = int(overlay.state.node[task])
        if task in self._forbidden:
            return "protected", "law-2"
        if self._pool is not None and not self._pool.usable[node]:
            held = any(at == node for at, _ in self._pool.held)
            return "out-of-reach", "node-held" if held else "node-closed"
        if node == outcome.node and task in self._taken.get(node, ()):
            return "put-back", "fits-without"
        if node in self._vain or outcome.failed in SEARCHED_IN_VAIN:
            return "not-needed", "makes-no-room"
        return "not-needed", "not-reached"

    def step(self, rule: str, detail: str) -> None:
        """See ``Silent``."""
        self._why.step(rule, detail)

    def blocked(self, blocker: str, changes: Iterable[Change]) -> None:
        """See ``Silent``."""
        self._why.blocked(blocker, *changes)

    def explanation(self, overlay: Overlay, outcomes: Sequence[tuple[Request, Outcome]]) -> Explanation | None:
        """See ``Silent``."""
        self._why.headline(headline(overlay, outcomes))
        if self._overlay is not None:
            for task, (verdict, rule) in sorted(self._final.items()):
                self._candidate(self._overlay, task, verdict, rule)
        return self._why.explanation()

    def _candidate(self, overlay: Overlay, task: int, verdict: Verdict, rule: str) -> None:
        state = overlay.state
        workload, name = state.label(task)
        numbers: dict[str, Any] = {
            "priority": int(state.priority[task]),
            "opted_out": bool(state.flags[task] & OPTED_OUT),
            "originator": bool(state.flags[task] & ORIGINATOR),
            "requests": state.resources.units(state.amounts(task)),
        }
        if verdict == "victim":
            numbers["place"] = self._places[task]
        self._why.candidate(
            verdict, rule, workload, task=name, queue=state.queue_name(task), node=state.tasks[task].node,
            **numbers,
        )  # fmt: skip


def recorder(why: Why) -> Silent:
    """What a search tells itself to."""
    return Recorder(why) if why.on else SILENT


def _left(overlay: Overlay, request: Request, within: Reach) -> tuple[int, Amounts]:
    """What is left of the asking side's guarantee, in what the ask names: of the queue that has a claim, or of the
    asking queue as the released rules see it."""
    queues = overlay.state.configuration
    if queues.rules == "documented":
        asking = request.queue if within.claim is None else within.claim
        return asking, {r: overlay.slack[cell] for r, cell in queues.cells[asking].items() if r in request.amounts}
    level = levels(queues, request.queue)[request.queue] or {}
    return request.queue, {r: remaining(level, r, overlay.slack) for r in request.amounts if r in level}


def headline(overlay: Overlay, outcomes: Sequence[tuple[Request, Outcome]]) -> str:
    """The answer to an ask in one sentence."""
    request, last = outcomes[-1]
    ask = request.ask.id
    if last.kind == "wait":
        part = f"task {request.unit + 1} of {request.units}: " if request.units > 1 else ""
        return f"{ask} waits: {part}{last.reason}"
    names = overlay.state.node_names
    nodes = joined(list(dict.fromkeys(names[o.node] for _, o in outcomes if o.node is not None)))
    victims = [task for _, outcome in outcomes for task in outcome.victims]
    if not victims:
        return f"{ask} fits on {nodes} now"
    queues = sorted({overlay.state.queue_name(task) for task in victims})
    held = list(dict.fromkeys(names[o.node] for _, o in outcomes if o.kind == "preempt" and o.node is not None))
    verb = "is" if len(held) == 1 else "are"
    return f"{counted(len(victims), 'task')} of {', '.join(queues)} must go; {joined(held)} {verb} reserved for {ask}"
