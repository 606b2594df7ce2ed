"""What tests of decisions share with those beside them."""

from typing import Any

from starlette.testclient import TestClient

from tests.api.requests import decision


def stored(service: TestClient, name: str = "main") -> dict[str, Any]:
    """A decision request over the stored configuration ``name``, which is put here."""
    request = decision()
    answer = service.put(f"/v1/configurations/{name}", json=request["configuration"] | {"engine": "kueue"})
    assert answer.status_code == 201, answer.text
    return request | {"configuration": name}
