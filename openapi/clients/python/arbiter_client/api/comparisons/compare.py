from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.comparison import Comparison
from ...models.comparison_request import ComparisonRequest
from ...models.problem_document import ProblemDocument
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: ComparisonRequest,
    request_timeout: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(request_timeout, Unset):
        headers["Request-Timeout"] = request_timeout

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/comparisons",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Comparison | ProblemDocument | None:
    if response.status_code == 200:
        response_200 = Comparison.from_dict(response.json())

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

    if response.status_code == 413:
        response_413 = ProblemDocument.from_dict(response.json())

        return response_413

    if response.status_code == 415:
        response_415 = ProblemDocument.from_dict(response.json())

        return response_415

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
) -> Response[Comparison | ProblemDocument]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: ComparisonRequest,
    request_timeout: str | Unset = UNSET,
) -> Response[Comparison | ProblemDocument]:
    """The same asks under several rule books

     One answer for each variant of engine, settings or configuration, and where they differ.

    Args:
        request_timeout (str | Unset):
        body (ComparisonRequest): A decision request and the variants of it to answer.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Comparison | ProblemDocument]
    """

    kwargs = _get_kwargs(
        body=body,
        request_timeout=request_timeout,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    body: ComparisonRequest,
    request_timeout: str | Unset = UNSET,
) -> Comparison | ProblemDocument | None:
    """The same asks under several rule books

     One answer for each variant of engine, settings or configuration, and where they differ.

    Args:
        request_timeout (str | Unset):
        body (ComparisonRequest): A decision request and the variants of it to answer.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Comparison | ProblemDocument
    """

    return sync_detailed(
        client=client,
        body=body,
        request_timeout=request_timeout,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: ComparisonRequest,
    request_timeout: str | Unset = UNSET,
) -> Response[Comparison | ProblemDocument]:
    """The same asks under several rule books

     One answer for each variant of engine, settings or configuration, and where they differ.

    Args:
        request_timeout (str | Unset):
        body (ComparisonRequest): A decision request and the variants of it to answer.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Comparison | ProblemDocument]
    """

    kwargs = _get_kwargs(
        body=body,
        request_timeout=request_timeout,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: ComparisonRequest,
    request_timeout: str | Unset = UNSET,
) -> Comparison | ProblemDocument | None:
    """The same asks under several rule books

     One answer for each variant of engine, settings or configuration, and where they differ.

    Args:
        request_timeout (str | Unset):
        body (ComparisonRequest): A decision request and the variants of it to answer.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Comparison | ProblemDocument
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            request_timeout=request_timeout,
        )
    ).parsed
