"""A network that stops carrying packets, without telling anybody."""

import selectors
import socket
import threading
from contextlib import suppress


class BlackHole:
    """A TCP port on loopback that leads to the Unix socket ``target``, until packets get lost.

    While ``dropping``, nothing is forwarded in either direction and new connections are accepted by the system alone,
    as by a load balancer with nobody behind it. What was sent meanwhile is delivered afterwards.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._flowing = threading.Event()
        self._flowing.set()
        self._ended = False
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def begin(self) -> None:
        self._flowing.clear()

    def end(self) -> None:
        self._flowing.set()

    def close(self) -> None:
        self._ended = True
        self._flowing.set()
        for one in (self._listening, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.socket(socket.AF_UNIX)
                self._sockets += [near, far]
                threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        self._flowing.wait()
        with suppress(OSError, ValueError), selectors.DefaultSelector() as selector:
            far.connect(self._target)
            selector.register(near, selectors.EVENT_READ, far)
            selector.register(far, selectors.EVENT_READ, near)
            while not self._ended:
                for key, _ in selector.select(0.5):
                    source = key.fileobj
                    assert isinstance(source, socket.socket)
                    data = source.recv(65536)
                    self._flowing.wait()
                    if not data:
                        near.close()
                        far.close()
                        return
                    key.data.sendall(data)
