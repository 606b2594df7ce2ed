"""Drawing in a process of its own: it takes a second of processor time, which decisions would have to wait for."""

import subprocess
import sys
from importlib.util import find_spec

import msgspec

from app.errors import NotInstalled
from app.plots.data import Drawing

_SECONDS = 60.0


def drawn(drawing: Drawing) -> bytes:
    """SVG. Raises NotInstalled without the extra ``arbiter[plot]``."""
    require()
    command = [sys.executable, "-m", "app.plots"]
    done = subprocess.run(
        command, input=msgspec.json.encode(drawing), capture_output=True, timeout=_SECONDS, check=False
    )
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
        raise NotInstalled("pictures need matplotlib: pip install 'arbiter[plot]'")
