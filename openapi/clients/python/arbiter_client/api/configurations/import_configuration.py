from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.import_configuration_format import ImportConfigurationFormat
from ...models.import_configuration_json_body import ImportConfigurationJsonBody
from ...models.imported_manifest import ImportedManifest
from ...models.problem_document import ProblemDocument
from ...types import UNSET, Response


def _get_kwargs(
    *,
    body: str | ImportConfigurationJsonBody | Unset = UNSET,
    format_: ImportConfigurationFormat,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    json_format_: str = format_
    params["format"] = json_format_

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/configurations:import",
        "params": params,
    }

    if isinstance(body, str):
        _kwargs["content"] = body.payload
        headers["Content-Type"] = "application/yaml"
    if isinstance(body, ImportConfigurationJsonBody):
        _kwargs["json"] = body.to_dict()

        headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ImportedManifest | ProblemDocument | None:
    if response.status_code == 200:
        response_200 = ImportedManifest.from_dict(response.json())

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

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ImportedManifest | ProblemDocument]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: str | ImportConfigurationJsonBody | Unset = UNSET,
    format_: ImportConfigurationFormat,
) -> Response[ImportedManifest | ProblemDocument]:
    """Read a manifest of a real system

     Configuration, running workloads and asks of a manifest, in Arbiter's words; nothing is stored.

    YAML or JSON, one document or several, as administrators write them or `kubectl get -o json` prints
    them. What can't
    be carried over is a finding.

    Args:
        format_ (ImportConfigurationFormat):
        body (str):
        body (ImportConfigurationJsonBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ImportedManifest | ProblemDocument]
    """

    kwargs = _get_kwargs(
        body=body,
        format_=format_,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    body: str | ImportConfigurationJsonBody | Unset = UNSET,
    format_: ImportConfigurationFormat,
) -> ImportedManifest | ProblemDocument | None:
    """Read a manifest of a real system

     Configuration, running workloads and asks of a manifest, in Arbiter's words; nothing is stored.

    YAML or JSON, one document or several, as administrators write them or `kubectl get -o json` prints
    them. What can't
    be carried over is a finding.

    Args:
        format_ (ImportConfigurationFormat):
        body (str):
        body (ImportConfigurationJsonBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ImportedManifest | ProblemDocument
    """

    return sync_detailed(
        client=client,
        body=body,
        format_=format_,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: str | ImportConfigurationJsonBody | Unset = UNSET,
    format_: ImportConfigurationFormat,
) -> Response[ImportedManifest | ProblemDocument]:
    """Read a manifest of a real system

     Configuration, running workloads and asks of a manifest, in Arbiter's words; nothing is stored.

    YAML or JSON, one document or several, as administrators write them or `kubectl get -o json` prints
    them. What can't
    be carried over is a finding.

    Args:
        format_ (ImportConfigurationFormat):
        body (str):
        body (ImportConfigurationJsonBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ImportedManifest | ProblemDocument]
    """

    kwargs = _get_kwargs(
        body=body,
        format_=format_,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: str | ImportConfigurationJsonBody | Unset = UNSET,
    format_: ImportConfigurationFormat,
) -> ImportedManifest | ProblemDocument | None:
    """Read a manifest of a real system

     Configuration, running workloads and asks of a manifest, in Arbiter's words; nothing is stored.

    YAML or JSON, one document or several, as administrators write them or `kubectl get -o json` prints
    them. What can't
    be carried over is a finding.

    Args:
        format_ (ImportConfigurationFormat):
        body (str):
        body (ImportConfigurationJsonBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ImportedManifest | ProblemDocument
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            format_=format_,
        )
    ).parsed
