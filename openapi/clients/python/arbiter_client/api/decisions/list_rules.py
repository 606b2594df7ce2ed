from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.catalogue import Catalogue
from ...models.engine_name import EngineName
from ...models.problem_document import ProblemDocument
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    engine: EngineName | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_engine: str | Unset = UNSET
    if not isinstance(engine, Unset):
        json_engine = engine

    params["engine"] = json_engine

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/rules",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Catalogue | ProblemDocument | None:
    if response.status_code == 200:
        response_200 = Catalogue.from_dict(response.json())

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

    if response.status_code == 422:
        response_422 = ProblemDocument.from_dict(response.json())

        return response_422

    if response.status_code == 500:
        response_500 = ProblemDocument.from_dict(response.json())

        return response_500

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Catalogue | ProblemDocument]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    engine: EngineName | Unset = UNSET,
) -> Response[Catalogue | ProblemDocument]:
    """What the rules in explanations mean

     Every rule id that explanations name: one sentence, and where the real system says so.

    Args:
        engine (EngineName | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Catalogue | ProblemDocument]
    """

    kwargs = _get_kwargs(
        engine=engine,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    engine: EngineName | Unset = UNSET,
) -> Catalogue | ProblemDocument | None:
    """What the rules in explanations mean

     Every rule id that explanations name: one sentence, and where the real system says so.

    Args:
        engine (EngineName | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Catalogue | ProblemDocument
    """

    return sync_detailed(
        client=client,
        engine=engine,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    engine: EngineName | Unset = UNSET,
) -> Response[Catalogue | ProblemDocument]:
    """What the rules in explanations mean

     Every rule id that explanations name: one sentence, and where the real system says so.

    Args:
        engine (EngineName | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Catalogue | ProblemDocument]
    """

    kwargs = _get_kwargs(
        engine=engine,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    engine: EngineName | Unset = UNSET,
) -> Catalogue | ProblemDocument | None:
    """What the rules in explanations mean

     Every rule id that explanations name: one sentence, and where the real system says so.

    Args:
        engine (EngineName | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Catalogue | ProblemDocument
    """

    return (
        await asyncio_detailed(
            client=client,
            engine=engine,
        )
    ).parsed
