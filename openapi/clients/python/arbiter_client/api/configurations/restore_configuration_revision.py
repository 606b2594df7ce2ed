from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.configuration_written import ConfigurationWritten
from ...models.problem_document import ProblemDocument
from ...types import UNSET, Response, Unset


def _get_kwargs(
    name: str,
    number: int,
    *,
    dry_run: bool | Unset = False,
    comment: str | Unset = UNSET,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
    x_comment: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    if not isinstance(x_comment, Unset):
        headers["x-comment"] = x_comment

    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params["comment"] = comment

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/configurations/{name}/revisions/{number}:restore".format(
            name=quote(str(name), safe=""),
            number=quote(str(number), safe=""),
        ),
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ConfigurationWritten | ProblemDocument | None:
    if response.status_code == 200:
        response_200 = ConfigurationWritten.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = ConfigurationWritten.from_dict(response.json())

        return response_201

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

    if response.status_code == 412:
        response_412 = ProblemDocument.from_dict(response.json())

        return response_412

    if response.status_code == 422:
        response_422 = ProblemDocument.from_dict(response.json())

        return response_422

    if response.status_code == 428:
        response_428 = ProblemDocument.from_dict(response.json())

        return response_428

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
) -> Response[ConfigurationWritten | ProblemDocument]:
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
    dry_run: bool | Unset = False,
    comment: str | Unset = UNSET,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
    x_comment: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Response[ConfigurationWritten | ProblemDocument]:
    """Bring a revision back

     A new revision with the document of an earlier one; of a deleted configuration too, which is then
    back.

    It is checked by today's rules. Over an existing configuration say with If-Match which version you
    mean.

    Args:
        name (str):
        number (int):
        dry_run (bool | Unset):  Default: False.
        comment (str | Unset):
        if_match (str | Unset):
        if_none_match (str | Unset):
        x_comment (str | Unset):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ConfigurationWritten | ProblemDocument]
    """

    kwargs = _get_kwargs(
        name=name,
        number=number,
        dry_run=dry_run,
        comment=comment,
        if_match=if_match,
        if_none_match=if_none_match,
        x_comment=x_comment,
        idempotency_key=idempotency_key,
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
    dry_run: bool | Unset = False,
    comment: str | Unset = UNSET,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
    x_comment: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> ConfigurationWritten | ProblemDocument | None:
    """Bring a revision back

     A new revision with the document of an earlier one; of a deleted configuration too, which is then
    back.

    It is checked by today's rules. Over an existing configuration say with If-Match which version you
    mean.

    Args:
        name (str):
        number (int):
        dry_run (bool | Unset):  Default: False.
        comment (str | Unset):
        if_match (str | Unset):
        if_none_match (str | Unset):
        x_comment (str | Unset):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ConfigurationWritten | ProblemDocument
    """

    return sync_detailed(
        name=name,
        number=number,
        client=client,
        dry_run=dry_run,
        comment=comment,
        if_match=if_match,
        if_none_match=if_none_match,
        x_comment=x_comment,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    name: str,
    number: int,
    *,
    client: AuthenticatedClient,
    dry_run: bool | Unset = False,
    comment: str | Unset = UNSET,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
    x_comment: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Response[ConfigurationWritten | ProblemDocument]:
    """Bring a revision back

     A new revision with the document of an earlier one; of a deleted configuration too, which is then
    back.

    It is checked by today's rules. Over an existing configuration say with If-Match which version you
    mean.

    Args:
        name (str):
        number (int):
        dry_run (bool | Unset):  Default: False.
        comment (str | Unset):
        if_match (str | Unset):
        if_none_match (str | Unset):
        x_comment (str | Unset):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ConfigurationWritten | ProblemDocument]
    """

    kwargs = _get_kwargs(
        name=name,
        number=number,
        dry_run=dry_run,
        comment=comment,
        if_match=if_match,
        if_none_match=if_none_match,
        x_comment=x_comment,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    name: str,
    number: int,
    *,
    client: AuthenticatedClient,
    dry_run: bool | Unset = False,
    comment: str | Unset = UNSET,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
    x_comment: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> ConfigurationWritten | ProblemDocument | None:
    """Bring a revision back

     A new revision with the document of an earlier one; of a deleted configuration too, which is then
    back.

    It is checked by today's rules. Over an existing configuration say with If-Match which version you
    mean.

    Args:
        name (str):
        number (int):
        dry_run (bool | Unset):  Default: False.
        comment (str | Unset):
        if_match (str | Unset):
        if_none_match (str | Unset):
        x_comment (str | Unset):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ConfigurationWritten | ProblemDocument
    """

    return (
        await asyncio_detailed(
            name=name,
            number=number,
            client=client,
            dry_run=dry_run,
            comment=comment,
            if_match=if_match,
            if_none_match=if_none_match,
            x_comment=x_comment,
            idempotency_key=idempotency_key,
        )
    ).parsed
