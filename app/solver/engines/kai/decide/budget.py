"""Steps that one request may spend on simulations; what runs out of them says so instead of running on."""

from app.solver.stopping import safe_point

MOST_STEPS = 1_000_000


class Budget:
    """Counts down; ``spent`` once nothing is left."""

    def __init__(self, steps: int = MOST_STEPS) -> None:
        self._left = steps

    @property
    def spent(self) -> bool:
        """Whether the search was cut short."""
        return self._left <= 0

    def spend(self, steps: int = 1) -> bool:
        """Pay for some steps, each of them a safe point. False when there is nothing left."""
        safe_point()
        self._left -= steps
        return self._left > 0
