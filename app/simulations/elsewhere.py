"""Reading a large simulation in a process of its own, at low priority: its trace takes the interpreter for seconds,
which decisions would have to wait for."""

import socket
import traceback

import msgspec

from app.answering.sources import Compiled, Documents
from app.simulations.accepting import Accepted, Terms, accept
from app.workers.frames import receive, send
from app.workers.messages import Failed, WantDocument, WantHead, failed, raised
from app.workers.remote import Remote, supply
from app.workers.single import Processes, serve_once

_ENTRY = ["-m", "app.simulations.elsewhere"]


class Acceptors:
    """The processes that read at the moment. ``documents``: what those that name configurations are told of them."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._processes = Processes("read the simulation")

    def accepted(self, body: bytes, terms: Terms) -> Accepted:
        """See ``accept``. Raises what it does, DeadlinePassed, Unavailable."""
        with self._processes.started(_ENTRY) as connection:
            send(connection, terms, body)
            while True:
                told, request = receive(connection, WantHead | WantDocument | Accepted | Failed)
                match told:
                    case Accepted():
                        return msgspec.structs.replace(told, request=request)
                    case Failed():
                        raise raised(told)
                    case _:
                        supply(connection, told, self._documents)

    def close(self) -> None:
        """End them all: who waits for one gets Unavailable."""
        self._processes.close()


def _accept(connection: socket.socket) -> None:
    """In the process: one simulation. Raises Closed."""
    terms, body = receive(connection, Terms)
    remote = Remote(connection)
    try:
        found = accept(body, terms, remote, Compiled(remote))
    except Exception as error:
        send(connection, failed(error, traceback.format_exc()))
    else:
        send(connection, msgspec.structs.replace(found, request=b""), found.request)


if __name__ == "__main__":
    serve_once(_accept)
