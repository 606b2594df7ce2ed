"""Resource names as indices, quantities as integer vectors."""

from collections.abc import Iterable, Mapping

from app.solver.model.base import Quantity
from app.solver.model.quantity import parse, scale_of, units


class ResourceIndex:
    """Resource names in a fixed order, with the integer scale of each (1000 steps a unit for cpu, gpu)."""

    __slots__ = ("index", "names", "scales")

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []
        self.scales: list[int] = []
        self.index: dict[str, int] = {}
        for name in names:
            self.add(name)

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: str) -> int:
        """Index of ``name``, given one if it has none."""
        found = self.index.get(name)
        if found is None:
            found = self.index[name] = len(self.names)
            self.names.append(name)
            self.scales.append(scale_of(name))
        return found

    def steps(self, quantities: Mapping[str, Quantity]) -> dict[int, int]:
        """Parsed quantities by resource index. Raises QuantityError; names not yet known are added."""
        return {(r := self.add(name)): parse(value, self.scales[r]) for name, value in quantities.items()}

    def vector(self, quantities: Mapping[str, Quantity]) -> list[int]:
        """Parsed quantities of known resources as a dense vector; missing is 0. Raises KeyError, QuantityError."""
        out = [0] * len(self.names)
        for name, value in quantities.items():
            r = self.index[name]
            out[r] = parse(value, self.scales[r])
        return out

    def units(self, steps: Mapping[int, int]) -> dict[str, int | float]:
        """Integer steps by index as answers show them."""
        return {self.names[r]: units(value, self.names[r]) for r, value in steps.items()}
