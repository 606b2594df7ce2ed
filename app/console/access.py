"""Who may: tokens and sessions, each with an end; and who did what."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app.auth.callers import SCOPES
from app.console.api import Json, Refused, next_page
from app.console.situation import paged
from app.console.visit import Number, PageRoute, Text, Visit, Visiting
from app.http.openapi import page

_ROWS = 100
_LONGEST_DAYS = 36_500

access_pages = APIRouter(route_class=PageRoute)


@access_pages.get("/access", **page(needs="admin"))
async def access(visit: Visiting, page: Number = 1, sessions: Number = 1) -> Response:
    """Tokens, those that work first, and who is signed in."""
    return await _shown(visit, {}, page=page, sessions=sessions)


@access_pages.post("/access", **page(needs="admin"))
async def create(visit: Visiting) -> Response:
    """A new token: the answer shows its secret, this once."""
    fields = await visit.form()
    body: Json = {
        "name": fields.get("name", "").strip(),
        "scopes": [scope for scope in SCOPES if fields.get(f"scope-{scope}")],
    }
    if days := fields.get("days", "").strip():
        if not (days.isascii() and days.isdigit() and 1 <= int(days[:6]) <= _LONGEST_DAYS):
            detail = f"For how many days is a whole number from 1 to {_LONGEST_DAYS}."
            return await _shown(visit, fields, problem={"title": "Invalid input", "detail": detail})
        body["expires_at"] = f"{datetime.now(UTC) + timedelta(days=int(days)):%Y-%m-%dT%H:%M:%SZ}"
    try:
        made = await visit.api.ask("/v1/tokens", body)
    except Refused as refused:
        return await _shown(visit, fields, problem=refused.document)
    return await _shown(visit, {}, made=made)


async def _shown(
    visit: Visit, fields: dict[str, str], *, page: int = 1, sessions: int = 1, made: Json | None = None,
    problem: Json | None = None,
) -> Response:  # fmt: skip
    tokens: list[Json] = (await visit.api.get("/v1/tokens"))["items"]
    now = datetime.now(UTC)
    tokens.sort(key=lambda one: (_standing(one, now) != "valid", one["name"]))
    status = 200 if problem is None else int(problem.get("status", 422))
    return visit.show(
        "access.html", status, fields=fields, made=made, problem=problem, scopes=SCOPES,
        tokens=paged([(one, _standing(one, now)) for one in tokens], page, _ROWS),
        sessions=paged((await visit.api.get("/v1/sessions"))["items"], sessions, _ROWS),
    )  # fmt: skip


def _standing(token: Json, now: datetime) -> str:
    if token.get("revoked_at"):
        return "revoked"
    return "expired" if token.get("expires_at") and datetime.fromisoformat(token["expires_at"]) <= now else "valid"


@access_pages.get("/access/tokens/{id}/revoke", **page(needs="admin"))
async def ask_to_revoke(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """Whether to."""
    whose = await _whose(visit, "/v1/tokens", id)
    named = "Revoke this token?" if whose is None else f"Revoke the token of {whose}?"
    return _confirm(visit, named, "Whoever uses it is refused from then on. It does not come back.", "Revoke it")


@access_pages.post("/access/tokens/{id}/revoke", **page(needs="admin"))
async def revoke(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """It works no longer. Raises Refused."""
    await visit.api.call("DELETE", f"/v1/tokens/{id}")
    return visit.go("/access")


@access_pages.get("/access/sessions/{id}/end", **page(needs="admin"))
async def ask_to_end(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """Whether to."""
    whose = await _whose(visit, "/v1/sessions", id)
    named = "End this session?" if whose is None else f"End the session of {whose}?"
    return _confirm(visit, named, "They are signed out, and may sign in again while their token works.", "End it")


@access_pages.post("/access/sessions/{id}/end", **page(needs="admin"))
async def end(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """They are signed out. Raises Refused."""
    await visit.api.call("DELETE", f"/v1/sessions/{id}")
    return visit.go("/access")


async def _whose(visit: Visit, path: str, identity: UUID) -> str | None:
    """The name of one of a list; None: it is not there."""
    listed: list[Json] = (await visit.api.get(path))["items"]
    return next((one["name"] for one in listed if one["id"] == str(identity)), None)


def _confirm(visit: Visit, question: str, says: str, verb: str) -> Response:
    return visit.show(
        "confirm.html", question=question, says=says, verb=verb, action=visit.request.url.path, back="/access",
        back_title="Access", problem=None, diff=None, fields={},
    )  # fmt: skip


@access_pages.get("/audit", **page(needs="admin"))
async def audit(visit: Visiting, actor: Text = "", action: Text = "", cursor: Text = "") -> Response:
    """Who did what, newest first."""
    wanted = {"actor": actor.strip(), "action": action.strip()}
    query = {name: text or None for name, text in wanted.items()}
    found: Json = await visit.api.get("/v1/audit", {**query, "cursor": cursor or None, "limit": _ROWS})
    return visit.show("audit.html", lines=found["items"], wanted=wanted, following=next_page(found, "/audit", wanted))
