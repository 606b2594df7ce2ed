"""Drawing in a process of its own: it takes a second of processor time, which decisions would have to wait for."""

import subprocess
from importlib.util import find_spec

import msgspec

from app.base.children import python
from app.base.errors import DeadlinePassed, NotInstalled
from app.simulations.plots.data import Drawing
from app.workers.ticket import Ticket, held

_SECONDS = 60.0


def drawn(drawing: Drawing) -> bytes:
    """SVG, within the time of the request that is being answered. Raises NotInstalled without the extra
    ``arbiter-preemption[plot]``, and DeadlinePassed."""
    require()
    command = [*python(), "-m", "app.simulations.plots"]
    ticket = held() or Ticket.now("large", _SECONDS)
    try:
        done = subprocess.run(
            command, input=msgspec.json.encode(drawing), capture_output=True, timeout=ticket.left, check=False
        )
    except subprocess.TimeoutExpired:  # by now the process is killed
        raise DeadlinePassed(ticket.seconds) from None
    if done.returncode:
        raise RuntimeError(f"drawing failed: {done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout


def require() -> None:
    """Raises NotInstalled where nothing can be drawn."""
    try:
        found = find_spec("matplotlib")
    except ValueError:  # it was looked for in vain before
        found = None
    if found is None:
        raise NotInstalled("pictures need matplotlib: uv tool install 'arbiter-preemption[plot]'")
