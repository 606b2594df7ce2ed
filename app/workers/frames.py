"""Frames between the service and its workers: a msgpack header, then raw bytes."""

import socket
import struct
from typing import Any

import msgspec

_LENGTHS = struct.Struct("!IQ")
_PIECE = 1 << 20


class Closed(Exception):
    """The other side is gone."""


def send(connection: socket.socket, header: msgspec.Struct, body: bytes = b"") -> None:
    """Raises Closed."""
    encoded = msgspec.msgpack.encode(header)
    try:
        connection.sendall(_LENGTHS.pack(len(encoded), len(body)) + encoded)
        if body:
            connection.sendall(body)
    except OSError as error:
        raise Closed from error


def receive(connection: socket.socket, shape: Any) -> tuple[Any, bytes]:
    """The next frame's header as ``shape``, and its body. Raises Closed."""
    header_length, body_length = _LENGTHS.unpack(_exactly(connection, _LENGTHS.size))
    header = msgspec.msgpack.decode(_exactly(connection, header_length), type=shape)
    return header, _exactly(connection, body_length)


def _exactly(connection: socket.socket, length: int) -> bytes:
    """On a blocking socket one call fills one buffer: a body of megabytes is neither joined nor copied."""
    pieces: list[bytes] = []
    while length > 0:
        wait = socket.MSG_WAITALL if connection.gettimeout() is None else 0
        try:
            piece = connection.recv(length if wait else min(length, _PIECE), wait)
        except InterruptedError:
            continue
        except OSError as error:
            raise Closed from error
        if not piece:
            raise Closed
        pieces.append(piece)
        length -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
