"""By what an entry of the log is found again: its names, and the keys of its evictions.

Circles in the log: A evicted B, and B evicted A within an hour. Each eviction of a decision has a key: a hash of whose
rules, on which configuration, who, whom and the hour. What would close a circle with it has the keys of the opposite
pair in that hour and its neighbours: one look into an index, however long the log and however often somebody evicts
somebody.
"""

from collections.abc import Iterable
from hashlib import blake2b

from app.answering.answers import Facts
from app.decisions.repository import storable
from app.finding.service import Kind

WITHIN = 3600 * 10**6
"""Microseconds between the times that two decisions are made for."""
_MOST = 1000
"""Evictions of one decision that are looked at: a plan that stops more closes its circle with one of these."""


def pairs_of(facts: Facts) -> list[int] | None:
    """The keys of a decision's own evictions; None: it has none."""
    hour = facts.now // WITHIN
    return _keys(facts, facts.evictions[:_MOST], (hour,)) or None


def returns_of(facts: Facts) -> list[int]:
    """The keys of evictions that would close a circle with one of its own."""
    hour = facts.now // WITHIN
    back = ((victim, evictor) for evictor, victim in facts.evictions[:_MOST])
    return _keys(facts, back, (hour - 1, hour, hour + 1))


def _keys(facts: Facts, pairs: Iterable[tuple[str, str]], hours: tuple[int, ...]) -> list[int]:
    found: dict[int, None] = {}
    where = f"{facts.engine}\0{facts.configuration.name or ''}"
    for one, other in pairs:
        for hour in hours:
            text = f"{where}\0{one}\0{other}\0{hour}"
            digest = blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
            found[int.from_bytes(digest, signed=True)] = None
    return list(found)


def names_of(facts: Facts) -> list[tuple[Kind, str]]:
    """By which a decision is found: its asks, whose they are, whom it stops or spares, and all their queues."""
    asks: list[tuple[Kind, str]] = [("ask", storable(one)) for one in facts.asks[:_MOST]]
    queues: list[tuple[Kind, str]] = [("queue", storable(one)) for one in facts.queues[:_MOST]]
    others = () if facts.workloads == facts.asks else facts.workloads[:_MOST]
    named = dict.fromkeys((*others, *facts.evicted[:_MOST], *facts.spared[:_MOST], *facts.pods[:_MOST]))
    return [*asks, *queues, *(("workload", storable(one)) for one in named)]
