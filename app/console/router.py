"""Every page of the console."""

from fastapi import APIRouter

from app.console import assets, decision, sign_in

router = APIRouter()
for part in (assets, sign_in, decision):
    router.include_router(part.router)
