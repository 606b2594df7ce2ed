"""Frames between the service and its workers: a msgpack header, then raw bytes."""

import socket
import struct
from typing import Any

import msgspec

_LENGTHS = struct.Struct("!IQ")


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
    """Filled in place: a body of megabytes is not joined from pieces."""
    if length == 0:
        return b""
    buffer = bytearray(length)
    view, filled = memoryview(buffer), 0
    while filled < length:
        try:
            count = connection.recv_into(view[filled:])
        except InterruptedError:
            continue
        except OSError as error:
            raise Closed from error
        if count == 0:
            raise Closed
        filled += count
    return bytes(buffer)
