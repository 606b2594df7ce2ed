"""How this code starts processes of its own."""

import sys


def python() -> list[str]:
    """The interpreter, as a command begins: what is imported is what is installed, never what happens to lie in the
    folder that the service was started in (``-P``)."""
    return [sys.executable, "-P"]
