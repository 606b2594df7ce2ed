"""The service's stored configurations as a process without a database sees them: by asking for them."""

import socket

from app.answering.sources import Documents
from app.workers.frames import Closed, receive, send
from app.workers.messages import Document, Failed, Head, ToWorker, WantDocument, WantHead, failed, raised


class Remote:
    """In the process. ``heads``: what references mean, where that is known beforehand."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.heads: dict[str, Head] = {}

    def head(self, reference: str) -> tuple[str, int]:
        """See ``Documents``."""
        head = self.heads.get(reference)
        if head is None:
            asked, _ = self._ask(WantHead(reference))
            assert isinstance(asked, Head)
            head = asked
        return head.name, head.revision

    def document(self, name: str, revision: int) -> bytes:
        """See ``Documents``."""
        return self._ask(WantDocument(name, revision))[1]

    def _ask(self, want: WantHead | WantDocument) -> tuple[Head | Document, bytes]:
        send(self._connection, want)
        header, body = receive(self._connection, ToWorker)
        if isinstance(header, Failed):
            raise raised(header)
        return header, body


def supply(connection: socket.socket, want: WantHead | WantDocument, documents: Documents) -> None:
    """In the service: what the process wants, or why it can't have it. Raises Closed."""
    try:
        if isinstance(want, WantHead):
            send(connection, Head(*documents.head(want.reference)))
        else:
            send(connection, Document(), documents.document(want.name, want.revision))
    except Closed:
        raise
    except Exception as error:
        send(connection, failed(error))
