from types import SimpleNamespace
from typing import Any

import pytest

from app.http.services import Services, install, of_scope, service


def test_a_service_is_found_by_its_own_type() -> None:
    services = Services(1, "a", True)
    assert (services.of(int), services.of(str), services.of(bool)) == (1, "a", True)
    with pytest.raises(KeyError):
        services.of(float)
    with pytest.raises(ValueError, match="two services of one type"):
        Services(1, 2)


def test_requests_and_their_scopes_have_those_of_the_application() -> None:
    app: Any = SimpleNamespace(state=SimpleNamespace())
    install(app.state, Services("a", 7))
    request: Any = SimpleNamespace(app=app)
    assert (service(request, str), of_scope({"app": app}, int)) == ("a", 7)
