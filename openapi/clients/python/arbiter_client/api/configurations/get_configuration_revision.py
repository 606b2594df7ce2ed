from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem_document import ProblemDocument
from ...models.stored_configuration import StoredConfiguration
from ...types import UNSET, Response, Unset


def _get_kwargs(
    name: str,
    number: int,
    *,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/configurations/{name}/revisions/{number}".format(
            name=quote(str(name), safe=""),
            number=quote(str(number), safe=""),
        ),
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | ProblemDocument | StoredConfiguration | None:
    if response.status_code == 200:
        response_200 = StoredConfiguration.from_dict(response.json())

        return response_200

    if response.status_code == 304:
        response_304 = cast(Any, None)
        return response_304

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

    if response.status_code == 422:
        response_422 = ProblemDocument.from_dict(response.json())

        return response_422

    if response.status_code == 500:
        response_500 = ProblemDocument.from_dict(response.json())

        return response_500

    if response.status_code == 503:
        response_503 = ProblemDocument.from_dict(response.json())

        return response_503

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Any | ProblemDocument | StoredConfiguration]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    name: str,
    number: int,
    *,
    client: AuthenticatedClient,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Response[Any | ProblemDocument | StoredConfiguration]:
    """Get Revision

     One revision, with its document; it never changes.

    Args:
        name (str):
        number (int):
        if_match (str | Unset):
        if_none_match (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ProblemDocument | StoredConfiguration]
    """

    kwargs = _get_kwargs(
        name=name,
        number=number,
        if_match=if_match,
        if_none_match=if_none_match,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    name: str,
    number: int,
    *,
    client: AuthenticatedClient,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Any | ProblemDocument | StoredConfiguration | None:
    """Get Revision

     One revision, with its document; it never changes.

    Args:
        name (str):
        number (int):
        if_match (str | Unset):
        if_none_match (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ProblemDocument | StoredConfiguration
    """

    return sync_detailed(
        name=name,
        number=number,
        client=client,
        if_match=if_match,
        if_none_match=if_none_match,
    ).parsed


async def asyncio_detailed(
    name: str,
    number: int,
    *,
    client: AuthenticatedClient,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Response[Any | ProblemDocument | StoredConfiguration]:
    """Get Revision

     One revision, with its document; it never changes.

    Args:
        name (str):
        number (int):
        if_match (str | Unset):
        if_none_match (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ProblemDocument | StoredConfiguration]
    """

    kwargs = _get_kwargs(
        name=name,
        number=number,
        if_match=if_match,
        if_none_match=if_none_match,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    name: str,
    number: int,
    *,
    client: AuthenticatedClient,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Any | ProblemDocument | StoredConfiguration | None:
    """Get Revision

     One revision, with its document; it never changes.

    Args:
        name (str):
        number (int):
        if_match (str | Unset):
        if_none_match (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ProblemDocument | StoredConfiguration
    """

    return (
        await asyncio_detailed(
            name=name,
            number=number,
            client=client,
            if_match=if_match,
            if_none_match=if_none_match,
        )
    ).parsed
