"""Every page needs its scope, which is said where the page is; signed out, one is asked in and comes back."""

from collections.abc import Iterator
from typing import cast

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.auth.audit import SCOPES, allows
from app.auth.tokens import Tokens
from app.base.settings import Settings
from app.http.routing import Operations
from app.service.main import create_app

PUBLIC = {"/sign-in", "/sign-out", "/sign-in/provider", "/sign-in/done"}
NOBODY = "01920000-0000-7000-8000-000000000000"


@pytest.fixture
def guarded(settings: Settings) -> Iterator[TestClient]:
    changed = settings.model_copy(update={"authentication": "required"})
    with TestClient(create_app(changed), raise_server_exceptions=False, follow_redirects=False) as client:
        yield client


def pages(client: TestClient) -> list[tuple[str, str, str | None]]:
    operations: Operations = cast(FastAPI, client.app).state.operations
    return [
        (method, place.template, operation.needs)
        for place in operations.places
        for method, operation in place.operations.items()
        if operation.page
    ]


def test_nobody_sees_a_page_without_its_scope(guarded: TestClient) -> None:
    tokens: Tokens = cast(FastAPI, guarded.app).state.services.of(Tokens)
    found = pages(guarded)
    assert len(found) > 5
    assert {template for _, template, needs in found if not needs} <= PUBLIC
    secrets = {scope: tokens.create(scope, [scope], None)[0] for scope in SCOPES}
    for method, template, needs in found:
        path = template.replace("{id}", NOBODY).replace("{name}", "c").replace("{digest}", "d").replace("{n}", "1")
        if not needs:
            continue
        sent = "HEAD" if method == "GET" else method  # the same operation, and no stream that goes on
        out = guarded.request(sent, path)
        assert out.status_code == 303, template
        assert out.headers["location"].startswith("/sign-in?next=")
        for scope, secret in secrets.items():
            headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/x-www-form-urlencoded"}
            refused = guarded.request(sent, path, headers=headers).status_code == 403
            forged = method != "GET"  # a form without its stamp is refused to everybody
            assert refused == (forged or not allows(frozenset({scope}), *needs)), (method, template, scope)


def test_the_console_can_be_turned_off(settings: Settings) -> None:
    with TestClient(create_app(settings.model_copy(update={"console": "off"}))) as client:
        assert pages(client) == []
        assert client.get("/").status_code == 404
        assert client.get("/v1/configurations").status_code == 200
