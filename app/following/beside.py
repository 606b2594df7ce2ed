"""``python -m app.following.beside``: a follower that a service runs beside itself, and that ends with it."""

import sys
import threading

import msgspec

from app.following.follower import Follower, Task, Tidy, end_soon, end_with_signals
from app.following.keeping import Arbiter
from app.following.objects import Broken
from app.following.reading import Reader, connect
from app.solver.model.configuration import EngineName

MODULE = "app.following.beside"


class Beside(msgspec.Struct, frozen=True):
    """What the service writes to its standard input, as a line. ``context``: of the kubeconfig; None: the usual one."""

    engine: EngineName
    cluster: str
    url: str
    token: str | None = None
    context: str | None = None


def run(wanted: Beside) -> int:
    """Follow until told to stop, or until standard input ends."""
    try:
        reader = Reader(connect(wanted.context))
    except Broken as error:
        sys.stderr.write(f"{wanted.cluster}: {error}\n")
        return 1
    task = Task(wanted.engine, wanted.cluster, wanted.cluster, wanted.cluster)
    follower = Follower(task, reader, Arbiter(wanted.url, wanted.token), Tidy())

    end_with_signals(follower)
    threading.Thread(target=_end_with_input, args=(follower,), daemon=True).start()
    follower.run()
    return 0


def _end_with_input(follower: Follower) -> None:
    sys.stdin.buffer.read()
    end_soon(follower)


if __name__ == "__main__":
    sys.exit(run(msgspec.json.decode(sys.stdin.buffer.readline(), type=Beside)))
