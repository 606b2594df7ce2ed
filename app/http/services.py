"""What routers work with, found by its type: wired once when the app is created, and never changed after that.

Types, not names: a router gets what it asked for, with its type, and nothing here imports what it hands out.
"""

from types import MappingProxyType
from typing import Any, TypeVar

from starlette.datastructures import State
from starlette.requests import HTTPConnection
from starlette.types import Scope

T = TypeVar("T")


class Services:
    """One object of each type."""

    __slots__ = ("_by_type",)

    def __init__(self, *services: object) -> None:
        by_type = {type(service): service for service in services}
        if len(by_type) != len(services):
            raise ValueError("two services of one type")
        self._by_type = MappingProxyType(by_type)

    def of(self, kind: type[T]) -> T:
        """The service of that very type. Raises KeyError where there is none."""
        found: Any = self._by_type[kind]
        return found


def install(state: State, services: Services) -> None:
    """Where ``service`` finds them."""
    state.services = services


def service(request: HTTPConnection, kind: type[T]) -> T:
    """What the app that answers ``request`` has of that type."""
    services: Services = request.app.state.services
    return services.of(kind)


def of_scope(scope: Scope, kind: type[T]) -> T:
    """The same for middleware, which has no request yet."""
    services: Services = scope["app"].state.services
    return services.of(kind)
