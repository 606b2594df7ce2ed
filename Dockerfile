# The service with pictures, followers, traces and YSON, and no database of its own (the extra `embedded`): give it DATABASE_URL. docker-compose.yml shows
# the pair. The base is pinned by digest: a build of today and one of next year begin with the same bytes. Raise tag and digest together.
FROM python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS base

FROM base AS build
ENV UV_PROJECT_ENVIRONMENT=/srv/arbiter/.venv UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1 UV_PYTHON_DOWNLOADS=never
RUN pip install --no-cache-dir uv==0.13.9
WORKDIR /srv/arbiter
COPY pyproject.toml uv.lock README.md LICENSE ./
RUN uv sync --locked --no-dev --extra kubernetes --extra otel --extra plot --extra yson --no-install-project --no-build
COPY app ./app
COPY migrations ./migrations
COPY examples ./examples
RUN uv sync --locked --no-dev --extra kubernetes --extra otel --extra plot --extra yson

FROM base
RUN groupadd --gid 10001 arbiter \
    && useradd --uid 10001 --gid 10001 --home-dir /srv/arbiter --no-create-home --shell /usr/sbin/nologin arbiter
COPY --from=build /srv/arbiter /srv/arbiter
WORKDIR /srv/arbiter
ENV PATH=/srv/arbiter/.venv/bin:$PATH HOST=0.0.0.0 PORT=8080 ARBITER_AUTHENTICATION=required ARBITER_LOG_FORMAT=json MPLCONFIGDIR=/tmp
# By number: Kubernetes can't tell from a name that it is not root.
USER 10001:10001
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/healthz', timeout=2)"]
CMD ["arbiter", "serve"]
