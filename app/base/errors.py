"""What can go wrong, as one tree; ``app.http.responses`` turns each into problem+json (RFC 9457).

    ArbiterError
    ├── BadRequest 400             the request can't be read: syntax, encoding, a cursor that isn't ours
    ├── Unauthorized 401           no token, or one that is unknown, expired, revoked or forged
    ├── Forbidden 403              a token without the scope that this needs
    ├── NotFound 404               no such configuration, revision, decision, route
    ├── RequestTimeout 408         the body did not arrive in time
    ├── Conflict 409               the request contradicts what is stored
    ├── PreconditionFailed 412     If-Match or If-None-Match no longer holds: somebody else was faster
    ├── TooLarge 413               the body is past the limit, as sent or after decompression
    ├── Misdirected 421            an open service is called by a name that is none of its own
    ├── UnsupportedMediaType 415   not JSON, or a content coding that we don't speak
    ├── BadInput 422               read, and wrong: shape, names, quantities, findings of severity error
    ├── PreconditionRequired 428   writing over an existing document needs If-Match
    ├── TooManyRequests 429        no solver, or no memory for the body, is free; carries Retry-After
    ├── NotInstalled 501           this service lacks an optional package
    ├── Unavailable 503            the database is away; carries Retry-After
    └── DeadlinePassed 504         solving was stopped at the request's deadline

The solver's InvalidInput (422) and the decoder's Malformed (400) belong to their own packages and are
translated beside these.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from app.solver.model.problems import Problem


class ArbiterError(Exception):
    """``detail`` is for people; ``problems`` name the fields at fault; ``extra`` joins the problem document."""

    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"

    def __init__(
        self,
        detail: str,
        *,
        problems: Iterable[Problem] = (),
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.problems = list(problems)
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})


class BadRequest(ArbiterError):
    status, title = 400, "Bad request"


class Unauthorized(ArbiterError):
    """``invalid``: a token was sent and is not good."""

    status, title = 401, "Unauthorized"

    def __init__(self, detail: str, *, invalid: bool = False) -> None:
        challenge = 'Bearer realm="arbiter"' + (', error="invalid_token"' if invalid else "")
        super().__init__(detail, headers={"WWW-Authenticate": challenge})


class Forbidden(ArbiterError):
    status, title = 403, "Forbidden"


class NotFound(ArbiterError):
    status, title = 404, "Not found"


class RequestTimeout(ArbiterError):
    status, title = 408, "Request timeout"


class Conflict(ArbiterError):
    status, title = 409, "Conflict"


class PreconditionFailed(ArbiterError):
    status, title = 412, "Precondition failed"


class TooLarge(ArbiterError):
    status, title = 413, "Content too large"


class Misdirected(ArbiterError):
    """Meant for another host than this is."""

    status, title = 421, "Misdirected request"


class UnsupportedMediaType(ArbiterError):
    status, title = 415, "Unsupported media type"


class BadInput(ArbiterError):
    """Understood as JSON, wrong as a request: ``problems`` say where and why."""

    status, title = 422, "Invalid input"

    def __init__(
        self, problems: Iterable[Problem], *, detail: str | None = None, extra: Mapping[str, Any] | None = None
    ) -> None:
        listed = list(problems)
        super().__init__(detail or counted(listed), problems=listed, extra=extra)


class PreconditionRequired(ArbiterError):
    status, title = 428, "Precondition required"


class NotInstalled(ArbiterError):
    """An extra that this needs is not there."""

    status, title = 501, "Not installed"


class Unavailable(ArbiterError):
    """What is needed is away for now; ``retry_after`` in seconds."""

    status, title = 503, "Service unavailable"

    def __init__(self, detail: str, *, retry_after: int = 5) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after)})


class TooManyRequests(ArbiterError):
    """Nothing is free and enough wait already; ``retry_after`` in seconds."""

    status, title = 429, "Too many requests"

    def __init__(self, detail: str, *, retry_after: int = 1) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after)})


class DeadlinePassed(ArbiterError):
    """Solving was stopped; ``seconds`` is how long it was allowed to take."""

    status, title = 504, "Deadline passed"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s; nothing was changed")


def counted(problems: list[Problem]) -> str:
    """A sentence about ``problems``: the only one, or how many there are."""
    if len(problems) == 1:
        return f"{problems[0].pointer or 'the document'}: {problems[0].detail}"
    return f"{len(problems)} fields are wrong"
