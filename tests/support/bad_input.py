"""What tests of bad input share with those beside them."""

from typing import Any

from httpx2 import Response

JSON = {"Content-Type": "application/json"}


def refused(response: Response, status: int, *pointers: str) -> dict[str, Any]:
    """The problem document of ``response``, which points at ``pointers`` and nothing else."""
    assert response.status_code == status, response.text
    assert response.headers["Content-Type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == status
    assert [error["pointer"] for error in problem.get("errors", [])] == list(pointers)
    assert all(error["detail"] for error in problem.get("errors", []))
    return problem
