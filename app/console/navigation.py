"""Where one can go: the pages in the order in which they are shown, those that the visitor may see."""

from typing import NamedTuple, Protocol


class Entry(NamedTuple):
    """A page of the navigation. ``needs``: the scope of what it shows."""

    title: str
    address: str
    needs: str


PAGES = (
    Entry("Overview", "/", "read"),
    Entry("Queues", "/queues", "read"),
    Entry("Decisions", "/decisions", "read"),
    Entry("Why me", "/why", "read"),
    Entry("Ask", "/ask", "decide"),
    Entry("Plan", "/plan", "decide"),
    Entry("Compare", "/compare", "decide"),
    Entry("Simulations", "/simulations", "read"),
    Entry("Configurations", "/configurations", "read"),
    Entry("Clusters", "/clusters", "read"),
)


class Shown(NamedTuple):
    """An entry on a page; ``current``: this is where one is."""

    title: str
    address: str
    current: bool


class _Allowed(Protocol):
    def may(self, scope: str) -> bool: ...


def entries(path: str, visitor: _Allowed) -> list[Shown]:
    """What ``visitor`` may see."""
    return [Shown(e.title, e.address, _is_at(path, e.address)) for e in PAGES if visitor.may(e.needs)]


def _is_at(path: str, address: str) -> bool:
    return path == address if address == "/" else path == address or path.startswith(f"{address}/")
