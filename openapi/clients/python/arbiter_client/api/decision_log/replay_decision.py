from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem_document import ProblemDocument
from ...models.replay import Replay
from ...types import UNSET, Response, Unset


def _get_kwargs(
    id: UUID,
    *,
    request_timeout: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(request_timeout, Unset):
        headers["Request-Timeout"] = request_timeout

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/decisions/{id}/replay".format(
            id=quote(str(id), safe=""),
        ),
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemDocument | Replay | None:
    if response.status_code == 200:
        response_200 = Replay.from_dict(response.json())

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

    if response.status_code == 404:
        response_404 = ProblemDocument.from_dict(response.json())

        return response_404

    if response.status_code == 409:
        response_409 = ProblemDocument.from_dict(response.json())

        return response_409

    if response.status_code == 422:
        response_422 = ProblemDocument.from_dict(response.json())

        return response_422

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
) -> Response[ProblemDocument | Replay]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    id: UUID,
    *,
    client: AuthenticatedClient,
    request_timeout: str | Unset = UNSET,
) -> Response[ProblemDocument | Replay]:
    """Decide it again

     The same bytes, revision and `now` through today's service: `identical` says whether the answer is
    the same.

    Args:
        id (UUID):
        request_timeout (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemDocument | Replay]
    """

    kwargs = _get_kwargs(
        id=id,
        request_timeout=request_timeout,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: UUID,
    *,
    client: AuthenticatedClient,
    request_timeout: str | Unset = UNSET,
) -> ProblemDocument | Replay | None:
    """Decide it again

     The same bytes, revision and `now` through today's service: `identical` says whether the answer is
    the same.

    Args:
        id (UUID):
        request_timeout (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemDocument | Replay
    """

    return sync_detailed(
        id=id,
        client=client,
        request_timeout=request_timeout,
    ).parsed


async def asyncio_detailed(
    id: UUID,
    *,
    client: AuthenticatedClient,
    request_timeout: str | Unset = UNSET,
) -> Response[ProblemDocument | Replay]:
    """Decide it again

     The same bytes, revision and `now` through today's service: `identical` says whether the answer is
    the same.

    Args:
        id (UUID):
        request_timeout (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemDocument | Replay]
    """

    kwargs = _get_kwargs(
        id=id,
        request_timeout=request_timeout,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: UUID,
    *,
    client: AuthenticatedClient,
    request_timeout: str | Unset = UNSET,
) -> ProblemDocument | Replay | None:
    """Decide it again

     The same bytes, revision and `now` through today's service: `identical` says whether the answer is
    the same.

    Args:
        id (UUID):
        request_timeout (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemDocument | Replay
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            request_timeout=request_timeout,
        )
    ).parsed
