"""Settings: the only reader of the environment. docs/reference.md lists them for operators."""

import os
import sys
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AliasChoices, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.base.identifiers import Proxies

MIB = 1 << 20


def _named(name: str) -> AliasChoices:
    """Read from ``name``, or from ``ARBITER_name`` where the short one is taken."""
    return AliasChoices(f"ARBITER_{name}", name)


def _default_data_dir() -> Path:
    """Where this user's data lives; the system's folder for root, whose home others must not enter."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return Path("/var/lib/arbiter")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "arbiter"
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "arbiter"


def own_address() -> str:
    """Where commands find the service unless told: here, at the port of ``ARBITER_PORT`` or ``PORT``."""
    port = os.environ.get("ARBITER_PORT") or os.environ.get("PORT") or ""
    return f"http://127.0.0.1:{port if port.isdecimal() and port != '0' else 8080}"


_OF_COMMANDS = ("ARBITER_URL", "ARBITER_TOKEN", "ARBITER_CLUSTER")


def misspelt() -> list[str]:
    """What is wrong with variables that begin as this program's do and are none of them: a sentence each."""
    fields = {f"ARBITER_{name}".upper() for name in Settings.model_fields}
    known = sorted({*fields, *_OF_COMMANDS})
    faults: list[str] = []
    for name in sorted(os.environ):
        if name.upper().startswith("ARBITER_") and name.upper() not in known:
            near = get_close_matches(name.upper(), known, 1, 0.0)
            faults.append(f"{name}: there is no such setting; the nearest is {near[0]}")
    return faults


def traces_wanted() -> tuple[bool, str | None]:
    """Whether OpenTelemetry's variables ask for traces, and why there are none where they ask for what there is not.

    https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
    """

    def given(*names: str) -> str:
        values = (os.environ.get(f"OTEL_{name}", "").strip() for name in names)
        return next((value for value in values if value), "")

    exporter = given("TRACES_EXPORTER").lower()
    endpoint = given("EXPORTER_OTLP_TRACES_ENDPOINT", "EXPORTER_OTLP_ENDPOINT")
    protocol = given("EXPORTER_OTLP_TRACES_PROTOCOL", "EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
    if given("SDK_DISABLED").lower() == "true" or exporter == "none" or not (exporter or endpoint):
        return False, None
    if exporter not in ("", "otlp"):
        return False, f"OTEL_TRACES_EXPORTER={exporter}: only otlp is there"
    if protocol != "http/protobuf":
        return False, f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol}: only http/protobuf is there"
    return True, None


class Settings(BaseSettings):
    """What one process needs to know. Sizes in bytes, times in seconds, unless the name says otherwise."""

    model_config = SettingsConfigDict(env_prefix="ARBITER_", extra="ignore", frozen=True, populate_by_name=True)

    host: Annotated[str, Field(validation_alias=_named("HOST"))] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, validation_alias=_named("PORT"))] = 8080
    data_dir: Path = Field(default_factory=_default_data_dir, validation_alias=_named("DATA_DIR"))
    database_url: Annotated[str | None, Field(validation_alias=_named("DATABASE_URL"))] = None

    max_body_bytes: Annotated[int, Field(ge=1024)] = 64 * MIB
    bodies_memory_bytes: Annotated[int, Field(ge=1)] = 512 * MIB
    max_connections: Annotated[int, Field(ge=1)] = 1000
    head_timeout: Annotated[float, Field(gt=0)] = 10.0
    body_timeout: Annotated[float, Field(gt=0)] = 30.0
    idle_timeout: Annotated[float, Field(gt=0)] = 75.0
    answer_timeout: Annotated[float, Field(gt=0)] = 30.0
    answers_memory_bytes: Annotated[int, Field(ge=1)] = 512 * MIB

    database_pool_size: Annotated[int, Field(ge=1)] = 10
    database_connect_timeout: Annotated[int, Field(ge=1)] = 3
    database_pool_timeout: Annotated[float, Field(gt=0)] = 3.0
    database_timeout: Annotated[float, Field(gt=0, le=3600)] = 3.0

    authentication: Literal["open", "required"] = "open"
    allowed_hosts: str | None = None
    trusted_proxies: Annotated[
        str | None, Field(validation_alias=AliasChoices("ARBITER_TRUSTED_PROXIES", "FORWARDED_ALLOW_IPS"))
    ] = None
    oidc_issuer: str | None = None
    oidc_audience: str | None = None
    oidc_jwks_url: str | None = None
    oidc_scope_claim: str = "scope"
    oidc_scope_prefix: str = ""

    oidc_client_id: str | None = None
    oidc_client_secret: str | None = None

    console: Literal["on", "off"] = "on"
    examples: Literal["on", "off"] = "on"
    console_key: Annotated[str | None, Field(min_length=32)] = None
    console_session_seconds: Annotated[int, Field(ge=60)] = 43_200
    console_listeners: Annotated[int, Field(ge=0)] = 100

    workers: Annotated[int, Field(ge=0, le=64, validation_alias=_named("WORKERS"))] = 1
    small_body_bytes: Annotated[int, Field(ge=0)] = 64 << 10
    waiting_requests: Annotated[int, Field(ge=1)] = 64
    request_timeout: Annotated[float, Field(gt=0)] = 60.0
    snapshot_memory_bytes: Annotated[int, Field(ge=MIB)] = 2048 * MIB
    snapshot_idle_seconds: Annotated[float, Field(gt=0)] = 3600.0

    decision_log: Literal["async", "sync"] = "async"
    decision_log_queue_entries: Annotated[int, Field(ge=1)] = 1000
    decision_log_queue_bytes: Annotated[int, Field(ge=1)] = 128 * MIB
    decision_log_retention_days: Annotated[float, Field(ge=0)] = 30
    decision_log_retention_entries: Annotated[int, Field(ge=0)] = 100_000
    decision_log_retention_bytes: Annotated[int, Field(ge=0)] = 10_240 * MIB

    configuration_cache_bytes: Annotated[int, Field(ge=1)] = 64 * MIB
    configuration_poll_seconds: Annotated[float, Field(gt=0, le=60)] = 0.5
    idempotency_seconds: Annotated[float, Field(gt=0)] = 86_400.0
    idempotency_entries: Annotated[int, Field(ge=1)] = 10_000
    idempotency_bytes: Annotated[int, Field(ge=1)] = 64 * MIB

    shadow_retention_days: Annotated[float, Field(ge=0)] = 30
    shadow_retention_entries: Annotated[int, Field(ge=0)] = 10_000
    shadow_retention_bytes: Annotated[int, Field(ge=0)] = 1024 * MIB

    trace_jobs: Annotated[int, Field(ge=1)] = 1_000_000
    trace_bytes: Annotated[int, Field(ge=1)] = 512 * MIB

    simulation_worker: Literal["beside", "elsewhere"] = "beside"
    simulations_alive: Annotated[int, Field(ge=1)] = 100
    simulation_variants: Annotated[int, Field(ge=1)] = 20
    simulation_seconds: Annotated[float, Field(gt=0)] = 3600.0
    simulation_days: Annotated[float, Field(gt=0)] = 3660.0
    simulation_bytes: Annotated[int, Field(ge=1)] = 1024 * MIB
    simulation_retention_days: Annotated[float, Field(gt=0)] = 30.0
    simulation_retention_entries: Annotated[int, Field(ge=1)] = 1000

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "console", "json"] = "auto"

    @field_validator("database_url", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return value or None

    @field_validator("trusted_proxies", mode="after")
    @classmethod
    def _are_proxies(cls, value: str | None) -> str | None:
        Proxies.named(value or "")
        return value

    @model_validator(mode="after")
    def _provider_is_complete(self) -> Self:
        if self.oidc_issuer is not None and self.oidc_audience is None:
            raise ValueError("ARBITER_OIDC_ISSUER needs ARBITER_OIDC_AUDIENCE: else tokens for anybody would do")
        if self.oidc_issuer is not None and self.authentication == "open":
            raise ValueError("ARBITER_OIDC_ISSUER needs ARBITER_AUTHENTICATION=required: an open service asks nobody")
        return self

    @property
    def is_exposed(self) -> bool:
        """Whether others than this machine can reach the address that the service listens on."""
        if self.host == "localhost":
            return False
        try:
            return not ip_address(self.host).is_loopback
        except ValueError:
            return True

    @property
    def hosts(self) -> frozenset[str]:
        """Names and addresses by which an open service may be called, beside those of this machine's loopback: as
        configured, and the one that it listens on. ``*``: by any, whose risk its page names."""
        listed = {name.strip().lower() for name in (self.allowed_hosts or "").split(",") if name.strip()}
        return frozenset(listed | ({self.host.lower()} - {"", "0.0.0.0", "::"}))

    @property
    def proxies(self) -> Proxies:
        """Who is believed when they say whom they ask for."""
        return Proxies.named(self.trusted_proxies or "")

    @property
    def heads_stale_seconds(self) -> float:
        """After how long without a look at the database what names mean counts as stale."""
        return max(5.0, 4 * self.configuration_poll_seconds)

    @field_validator("data_dir", mode="after")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()
