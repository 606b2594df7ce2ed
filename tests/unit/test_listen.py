import socket

from app.base.settings import Settings
from app.service.serve import _listen  # pyright: ignore[reportPrivateUsage]


def test_answers_do_not_wait_for_acknowledgements() -> None:
    said: list[str] = []
    with _listen(Settings(port=0), said.append) or socket.socket() as listening:
        address = listening.getsockname()
        with socket.create_connection(address), listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert said == []
