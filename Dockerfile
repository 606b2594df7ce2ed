# The service with pictures and followers, and no database of its own (the extra `embedded`): give it DATABASE_URL. docker-compose.yml shows the pair.
FROM python:3.13-slim AS build
ENV UV_PROJECT_ENVIRONMENT=/srv/arbiter/.venv UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1
RUN pip install --no-cache-dir uv==0.13.9
WORKDIR /srv/arbiter
COPY pyproject.toml uv.lock README.md LICENSE ./
RUN uv sync --locked --no-dev --extra kubernetes --extra plot --no-install-project
COPY app ./app
RUN uv sync --locked --no-dev --extra kubernetes --extra plot

FROM python:3.13-slim
RUN useradd --system --home-dir /srv/arbiter --no-create-home arbiter
COPY --from=build /srv/arbiter /srv/arbiter
WORKDIR /srv/arbiter
ENV PATH=/srv/arbiter/.venv/bin:$PATH HOST=0.0.0.0 PORT=8080 ARBITER_AUTHENTICATION=required ARBITER_LOG_FORMAT=json
USER arbiter
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/healthz', timeout=2)"]
CMD ["arbiter", "serve"]
