"""What tests of ingest share with those beside them."""

import json
from typing import Any

import msgspec

from app.solver.model.configuration import Configuration

Json = dict[str, Any]


def job(name: str, at: Any = 0, queue: str = "q", **more: Any) -> Json:
    task = {"name": "m", "count": 2, "requests": {"cpu": "1500m", "memory": 3}}
    return {"ask": {"id": name, "queue": queue, "tasks": [task]}, "submitted_at": at, "duration": 5} | more


def change(at: Any) -> Json:
    return {"at": at, "nodes": {"add": [{"name": f"n{at}", "capacity": {}}]}}


def lines(*entries: Json) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def queue(of: Configuration, name: str) -> Json:
    return next(one for one in json.loads(msgspec.json.encode(of))["queues"] if one["name"] == name)
