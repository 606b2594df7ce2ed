"""Writes straight into the etcd of an API server, which hears of them as of its own: as requests to it, a thousand a
second would take all of the machine, and the one who is to be measured is the follower.

What is written is what the API server wrote itself of one object, with names of the same length in the place of its
own, so that nothing in it has to be understood: pods are kept as protobuf.
"""

import base64
import json
import re
import socket
import urllib.request
from collections.abc import Iterable
from typing import Any, NamedTuple

_REVISION = re.compile(rb'"revision":"(\d+)"')
_STATUS = re.compile(rb"HTTP/1\.1 (\d+)")
_AT_ONCE = 50


class Put(NamedTuple):
    """``value`` None: the key goes."""

    key: bytes
    value: bytes | None


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


class Etcd:
    """One connection, on which requests don't wait for the answers to those before."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get(self, key: bytes) -> bytes:
        """What is kept under ``key``. Raises KeyError."""
        found = self._ask("range", {"key": _text(key)}).get("kvs")
        if not found:
            raise KeyError(key)
        return base64.b64decode(found[0]["value"])

    def write(self, puts: Iterable[Put]) -> int:
        """All of them, one after another; the revision after the last. Raises RuntimeError."""
        revision, some = 0, list[bytes]()
        for put in puts:
            some.append(self._request(put))
            if len(some) == _AT_ONCE:
                revision, some = self._send(some), []
        return self._send(some) if some else revision

    def _send(self, requests: list[bytes]) -> int:
        self._socket.sendall(b"".join(requests))
        heard, revision, done = b"", 0, 0
        while done < len(requests):
            if not (more := self._socket.recv(1 << 16)):
                raise RuntimeError("etcd ended the connection")
            heard += more
            if bad := [status for status in _STATUS.findall(heard) if status != b"200"]:
                raise RuntimeError(f"etcd answers {bad[0].decode()}: {heard[-300:]!r}")
            found = _REVISION.findall(heard)
            done = len(found)
            revision = int(found[-1]) if found else 0
        return revision

    @staticmethod
    def _request(put: Put) -> bytes:
        key = base64.b64encode(put.key)
        if put.value is None:
            path, body = b"deleterange", b'{"key":"%b"}' % key
        else:
            path, body = b"put", b'{"key":"%b","value":"%b"}' % (key, base64.b64encode(put.value))
        return b"POST /v3/kv/%b HTTP/1.1\r\nHost: etcd\r\nContent-Length: %d\r\n\r\n%b" % (path, len(body), body)

    def _ask(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self._port}/v3/kv/{what}"
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=60) as answer:
            return json.loads(answer.read())
