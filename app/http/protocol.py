"""uvicorn's HTTP protocol, tuned for request bodies of megabytes and patient with offers of other protocols.

uvicorn stops reading from the socket whenever 64 KiB of a body are not yet taken, so a body of 11 MB arrives in
some fifty turns between transport and application. Ours is wanted whole and is capped, so we let more of it pile up.

A client may offer to go on in another protocol (Java's, unless told otherwise, offers HTTP/2 with every request),
and a server may ignore that (RFC 9110, section 7.8). The parser can't: it takes what follows such a head for the
other protocol, and so loses the body. Such a head is therefore parsed again without the offer.
"""

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HIGH_WATER = 4 << 20


class BulkProtocol(HttpToolsProtocol):
    """Pauses reading at 4 MiB instead of 64 KiB; reads requests that offer an upgrade as what they are."""

    def data_received(self, data: bytes) -> None:
        """Some bytes of some requests have arrived."""
        self._unset_keepalive_if_required()
        try:
            while data:
                data = self._fed(data)
        except httptools.HttpParserError:
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("Invalid HTTP request received.")

    def on_headers_complete(self) -> None:
        """A head is there; one with an offer comes again without it."""
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A request is there, and so is the end of a head with an offer."""
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body has arrived."""
        if self.cycle.response_complete:
            return
        self.cycle.body += body
        if len(self.cycle.body) > _HIGH_WATER:
            self.flow.pause_reading()
        self.cycle.message_event.set()

    def _fed(self, data: bytes) -> bytes:
        """What is left to parse of ``data``. Raises HttpParserError."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            if self.parser.get_method() == b"CONNECT":
                raise httptools.HttpParserError("this is no proxy") from None
            head = self._head_without_offer()
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            self.parser.feed_data(head)
            return data[offer.args[0] :]
        return b""

    def _head_without_offer(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/" + version]
        for name, value in self.headers:
            if name == b"connection":
                kept = [word for word in value.split(b",") if word.strip().lower() != b"upgrade"]
                lines.append(name + b": " + b",".join(kept))
            elif name != b"upgrade":
                lines.append(name + b": " + value)
        return b"\r\n".join((*lines, b"", b""))
