"""What routers work with, as few of them as a test needs."""

from dataclasses import make_dataclass

from app.http.routing import Services


def services(*objects: object) -> Services:
    """``objects``, each found by its type."""
    shape = make_dataclass("Few", [f"service_{i}" for i in range(len(objects))], bases=(Services,), frozen=True)
    return shape(*objects)
