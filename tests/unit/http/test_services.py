from types import SimpleNamespace
from typing import Any

import pytest

from app.http.routing import of_scope, provide, service
from tests.support.services import services


def test_a_service_is_found_by_its_own_type() -> None:
    found = services(1, "a", True)
    assert (found.of(int), found.of(str), found.of(bool)) == (1, "a", True)
    with pytest.raises(KeyError):
        found.of(float)
    with pytest.raises(ValueError, match="two services of one type"):
        services(1, 2).of(int)


def test_requests_and_their_scopes_have_those_of_the_application() -> None:
    app: Any = SimpleNamespace(state=SimpleNamespace())
    provide(app.state, services("a", 7))
    request: Any = SimpleNamespace(app=app)
    assert (service(request, str), of_scope({"app": app}, int)) == ("a", 7)
