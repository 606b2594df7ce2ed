import datetime
from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.decision_page import DecisionPage
from ...models.engine_name import EngineName
from ...models.outcome import Outcome
from ...models.problem_document import ProblemDocument
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 50,
    engine: EngineName | Unset = UNSET,
    outcome: Outcome | Unset = UNSET,
    configuration: str | Unset = UNSET,
    ask: str | Unset = UNSET,
    workload: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["limit"] = limit

    json_engine: str | Unset = UNSET
    if not isinstance(engine, Unset):
        json_engine = engine

    params["engine"] = json_engine

    json_outcome: str | Unset = UNSET
    if not isinstance(outcome, Unset):
        json_outcome = outcome

    params["outcome"] = json_outcome

    params["configuration"] = configuration

    params["ask"] = ask

    params["workload"] = workload

    json_since: str | Unset = UNSET
    if not isinstance(since, Unset):
        json_since = since.isoformat()
    params["since"] = json_since

    json_until: str | Unset = UNSET
    if not isinstance(until, Unset):
        json_until = until.isoformat()
    params["until"] = json_until

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/decisions",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> DecisionPage | ProblemDocument | None:
    if response.status_code == 200:
        response_200 = DecisionPage.from_dict(response.json())

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

    if response.status_code == 503:
        response_503 = ProblemDocument.from_dict(response.json())

        return response_503

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[DecisionPage | ProblemDocument]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 50,
    engine: EngineName | Unset = UNSET,
    outcome: Outcome | Unset = UNSET,
    configuration: str | Unset = UNSET,
    ask: str | Unset = UNSET,
    workload: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> Response[DecisionPage | ProblemDocument]:
    """The decision log

     Answered requests, newest first, without request and answer.

    Args:
        cursor (str | Unset):
        limit (int | Unset):  Default: 50.
        engine (EngineName | Unset):
        outcome (Outcome | Unset):
        configuration (str | Unset):
        ask (str | Unset):
        workload (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DecisionPage | ProblemDocument]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        limit=limit,
        engine=engine,
        outcome=outcome,
        configuration=configuration,
        ask=ask,
        workload=workload,
        since=since,
        until=until,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 50,
    engine: EngineName | Unset = UNSET,
    outcome: Outcome | Unset = UNSET,
    configuration: str | Unset = UNSET,
    ask: str | Unset = UNSET,
    workload: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> DecisionPage | ProblemDocument | None:
    """The decision log

     Answered requests, newest first, without request and answer.

    Args:
        cursor (str | Unset):
        limit (int | Unset):  Default: 50.
        engine (EngineName | Unset):
        outcome (Outcome | Unset):
        configuration (str | Unset):
        ask (str | Unset):
        workload (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DecisionPage | ProblemDocument
    """

    return sync_detailed(
        client=client,
        cursor=cursor,
        limit=limit,
        engine=engine,
        outcome=outcome,
        configuration=configuration,
        ask=ask,
        workload=workload,
        since=since,
        until=until,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 50,
    engine: EngineName | Unset = UNSET,
    outcome: Outcome | Unset = UNSET,
    configuration: str | Unset = UNSET,
    ask: str | Unset = UNSET,
    workload: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> Response[DecisionPage | ProblemDocument]:
    """The decision log

     Answered requests, newest first, without request and answer.

    Args:
        cursor (str | Unset):
        limit (int | Unset):  Default: 50.
        engine (EngineName | Unset):
        outcome (Outcome | Unset):
        configuration (str | Unset):
        ask (str | Unset):
        workload (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DecisionPage | ProblemDocument]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        limit=limit,
        engine=engine,
        outcome=outcome,
        configuration=configuration,
        ask=ask,
        workload=workload,
        since=since,
        until=until,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    limit: int | Unset = 50,
    engine: EngineName | Unset = UNSET,
    outcome: Outcome | Unset = UNSET,
    configuration: str | Unset = UNSET,
    ask: str | Unset = UNSET,
    workload: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> DecisionPage | ProblemDocument | None:
    """The decision log

     Answered requests, newest first, without request and answer.

    Args:
        cursor (str | Unset):
        limit (int | Unset):  Default: 50.
        engine (EngineName | Unset):
        outcome (Outcome | Unset):
        configuration (str | Unset):
        ask (str | Unset):
        workload (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DecisionPage | ProblemDocument
    """

    return (
        await asyncio_detailed(
            client=client,
            cursor=cursor,
            limit=limit,
            engine=engine,
            outcome=outcome,
            configuration=configuration,
            ask=ask,
            workload=workload,
            since=since,
            until=until,
        )
    ).parsed
