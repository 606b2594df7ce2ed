from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem_document import ProblemDocument
from ...models.snapshot_list import SnapshotList
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    request_timeout: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(request_timeout, Unset):
        headers["Request-Timeout"] = request_timeout

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/snapshots",
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemDocument | SnapshotList | None:
    if response.status_code == 200:
        response_200 = SnapshotList.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = ProblemDocument.from_dict(response.json())

        return response_400

    if response.status_code == 401:
        response_401 = ProblemDocument.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = ProblemDocument.from_dict(response.json())

        return response_403

    if response.status_code == 429:
        response_429 = ProblemDocument.from_dict(response.json())

        return response_429

    if response.status_code == 500:
        response_500 = ProblemDocument.from_dict(response.json())

        return response_500

    if response.status_code == 503:
        response_503 = ProblemDocument.from_dict(response.json())

        return response_503

    if response.status_code == 504:
        response_504 = ProblemDocument.from_dict(response.json())

        return response_504

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemDocument | SnapshotList]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    request_timeout: str | Unset = UNSET,
) -> Response[ProblemDocument | SnapshotList]:
    """What is kept

     Every kept snapshot with its generation, counts, age and estimated memory.

    Args:
        request_timeout (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemDocument | SnapshotList]
    """

    kwargs = _get_kwargs(
        request_timeout=request_timeout,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    request_timeout: str | Unset = UNSET,
) -> ProblemDocument | SnapshotList | None:
    """What is kept

     Every kept snapshot with its generation, counts, age and estimated memory.

    Args:
        request_timeout (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemDocument | SnapshotList
    """

    return sync_detailed(
        client=client,
        request_timeout=request_timeout,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    request_timeout: str | Unset = UNSET,
) -> Response[ProblemDocument | SnapshotList]:
    """What is kept

     Every kept snapshot with its generation, counts, age and estimated memory.

    Args:
        request_timeout (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemDocument | SnapshotList]
    """

    kwargs = _get_kwargs(
        request_timeout=request_timeout,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    request_timeout: str | Unset = UNSET,
) -> ProblemDocument | SnapshotList | None:
    """What is kept

     Every kept snapshot with its generation, counts, age and estimated memory.

    Args:
        request_timeout (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemDocument | SnapshotList
    """

    return (
        await asyncio_detailed(
            client=client,
            request_timeout=request_timeout,
        )
    ).parsed
