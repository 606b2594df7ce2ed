"""``/docs``: the interface for people, drawn from ``/openapi.json`` by one page that loads nothing from elsewhere."""

from pathlib import Path

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

_PAGE = Path(__file__).with_name("docs.html")
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

router = APIRouter(include_in_schema=False)


@router.get("/docs")
def documentation() -> Response:
    """Operations with their examples, to read and to try."""
    return HTMLResponse(_PAGE.read_text(encoding="utf-8"), headers={"Content-Security-Policy": _POLICY})
