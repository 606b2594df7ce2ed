"""What tests of shadow share with those beside them."""

from typing import Any

import httpx2


def records(arbiter: httpx2.Client, cluster: str, number: int) -> list[dict[str, Any]] | None:
    """What was compared, once it is so much."""
    found = arbiter.get("/v1/shadow", params={"cluster": cluster, "limit": 500}).json()["items"]
    return found if len(found) >= number else None
