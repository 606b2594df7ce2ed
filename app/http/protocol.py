"""uvicorn's HTTP protocol, tuned for request bodies of megabytes.

uvicorn stops reading from the socket whenever 64 KiB of a body are not yet taken, so a body of 11 MB arrives in
some fifty turns between transport and application. Ours is wanted whole and is capped, so we let more of it pile up.
"""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HIGH_WATER = 4 << 20


class BulkProtocol(HttpToolsProtocol):
    """Pauses reading at 4 MiB instead of 64 KiB."""

    def on_body(self, body: bytes) -> None:
        """A piece of the body has arrived."""
        if self.cycle.response_complete:
            return
        self.cycle.body += body
        if len(self.cycle.body) > _HIGH_WATER:
            self.flow.pause_reading()
        self.cycle.message_event.set()
