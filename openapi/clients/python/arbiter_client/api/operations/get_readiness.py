from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.get_readiness_for import GetReadinessFor
from ...models.problem_document import ProblemDocument
from ...models.readiness import Readiness
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    for_: GetReadinessFor | Unset = "everything",
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_for_: str | Unset = UNSET
    if not isinstance(for_, Unset):
        json_for_ = for_

    params["for"] = json_for_

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/readyz",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemDocument | Readiness | None:
    if response.status_code == 200:
        response_200 = Readiness.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = ProblemDocument.from_dict(response.json())

        return response_400

    if response.status_code == 422:
        response_422 = ProblemDocument.from_dict(response.json())

        return response_422

    if response.status_code == 500:
        response_500 = ProblemDocument.from_dict(response.json())

        return response_500

    if response.status_code == 503:
        response_503 = Readiness.from_dict(response.json())

        return response_503

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemDocument | Readiness]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    for_: GetReadinessFor | Unset = "everything",
) -> Response[ProblemDocument | Readiness]:
    """Readiness

     Whether the database answers and is migrated to what this version needs, or further.

    Decisions by name go on without the database, on what names last meant; `for=decisions` asks only
    for that.

    Args:
        for_ (GetReadinessFor | Unset):  Default: 'everything'.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemDocument | Readiness]
    """

    kwargs = _get_kwargs(
        for_=for_,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    for_: GetReadinessFor | Unset = "everything",
) -> ProblemDocument | Readiness | None:
    """Readiness

     Whether the database answers and is migrated to what this version needs, or further.

    Decisions by name go on without the database, on what names last meant; `for=decisions` asks only
    for that.

    Args:
        for_ (GetReadinessFor | Unset):  Default: 'everything'.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemDocument | Readiness
    """

    return sync_detailed(
        client=client,
        for_=for_,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    for_: GetReadinessFor | Unset = "everything",
) -> Response[ProblemDocument | Readiness]:
    """Readiness

     Whether the database answers and is migrated to what this version needs, or further.

    Decisions by name go on without the database, on what names last meant; `for=decisions` asks only
    for that.

    Args:
        for_ (GetReadinessFor | Unset):  Default: 'everything'.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemDocument | Readiness]
    """

    kwargs = _get_kwargs(
        for_=for_,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    for_: GetReadinessFor | Unset = "everything",
) -> ProblemDocument | Readiness | None:
    """Readiness

     Whether the database answers and is migrated to what this version needs, or further.

    Decisions by name go on without the database, on what names last meant; `for=decisions` asks only
    for that.

    Args:
        for_ (GetReadinessFor | Unset):  Default: 'everything'.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemDocument | Readiness
    """

    return (
        await asyncio_detailed(
            client=client,
            for_=for_,
        )
    ).parsed
