"""Work that is stopped at one safe point or another."""


class Stopped(Exception):
    """What a test's check raises."""


class Countdown:
    """Raises at the call after ``left`` calls."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Stopped
