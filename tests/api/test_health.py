from starlette.testclient import TestClient


def test_lives_and_is_ready(service: TestClient) -> None:
    assert service.get("/healthz").json() == {"status": "ok"}
    ready = service.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["migration"] == ready.json()["needed"]


def test_without_database_lives_but_is_not_ready(homeless: TestClient) -> None:
    assert homeless.get("/healthz").status_code == 200
    ready = homeless.get("/readyz")
    assert ready.status_code == 503
    assert ready.json()["database"] == "unreachable"
    assert "Retry-After" in ready.headers
