"""Bodies as they travel: media types, codings, limits, bombs."""

import gzip
import json
import zlib
from collections.abc import Iterator

import pytest
import zstandard
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.service.main import create_app
from tests.api.requests import decision

BODY = json.dumps(decision()).encode()
LIMIT = 1 << 20


@pytest.fixture
def small() -> Iterator[TestClient]:
    """A service that takes bodies of one MiB."""
    app = create_app(Settings(database_url=None, max_body_bytes=LIMIT, workers=0))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def post(client: TestClient, body: bytes, **headers: str) -> tuple[int, dict[str, object]]:
    sent = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    response = client.post("/v1/decisions", content=body, headers=sent)
    return response.status_code, response.json()


def compressed(body: bytes, coding: str) -> bytes:
    return gzip.compress(body) if coding == "gzip" else zstandard.compress(body)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_compressed_bodies_are_read(homeless: TestClient, coding: str) -> None:
    assert post(homeless, compressed(BODY, coding), Content_Encoding=coding)[0] == 200


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_members_and_frames_follow_one_another(homeless: TestClient, coding: str) -> None:
    pieces = b"".join(compressed(BODY[at : at + 100], coding) for at in range(0, len(BODY), 100))
    assert post(homeless, pieces, Content_Encoding=coding)[0] == 200


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_large_compressed_body_is_read(homeless: TestClient, coding: str) -> None:
    padded = BODY + b" " * (8 << 20)
    assert post(homeless, compressed(padded, coding), Content_Encoding=coding)[0] == 200


def test_a_body_in_pieces_is_read(homeless: TestClient) -> None:
    def pieces() -> Iterator[bytes]:
        for at in range(0, len(BODY), 50):
            yield BODY[at : at + 50]

    headers = {"Content-Type": "application/json"}
    assert homeless.post("/v1/decisions", content=pieces(), headers=headers).status_code == 200


def test_a_body_past_the_limit_is_refused(small: TestClient) -> None:
    assert post(small, BODY + b" " * (LIMIT - len(BODY)))[0] == 200
    status, problem = post(small, BODY + b" " * (LIMIT - len(BODY) + 1))
    assert (status, problem["title"]) == (413, "Content too large")
    refused = small.post("/v1/backtests", content=b" " * (LIMIT + 1), headers={"Content-Type": "application/json"})
    assert refused.status_code == 413
    assert refused.json()["detail"] == problem["detail"] + (
        "; a recording of any length: arbiter follow ENGINE --replay FILE --backtest FILE"
    )


def test_a_body_in_pieces_past_the_limit_is_refused(small: TestClient) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(17):
            yield b" " * (LIMIT // 16)

    headers = {"Content-Type": "application/json"}
    assert small.post("/v1/decisions", content=pieces(), headers=headers).status_code == 413


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@pytest.mark.parametrize("size", [LIMIT + 1, 200 * LIMIT])
def test_a_bomb_is_refused(small: TestClient, coding: str, size: int) -> None:
    bomb = compressed(b" " * size, coding)
    assert len(bomb) < LIMIT
    assert post(small, bomb, Content_Encoding=coding)[0] == 413


def test_a_swarm_of_empty_members_is_refused(small: TestClient) -> None:
    assert post(small, gzip.compress(b"") * 40_000, Content_Encoding="gzip")[0] == 400
    assert post(small, zstandard.compress(b"") * 40_000, Content_Encoding="zstd")[0] == 400


def test_a_zstd_window_past_what_http_allows_is_refused(homeless: TestClient) -> None:
    wide = zstandard.ZstdCompressionParameters(window_log=27)
    stream = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    body = stream.compress(BODY) + stream.flush()
    assert post(homeless, body, Content_Encoding="zstd")[0] == 400


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_broken_codings_are_refused(homeless: TestClient, coding: str) -> None:
    whole = compressed(BODY, coding)
    for broken in (whole[:-9], b"", b"junk", whole + b"junk", BODY):
        status, problem = post(homeless, broken, Content_Encoding=coding)
        assert (status, problem["status"]) == (400, 400)


@pytest.mark.parametrize("coding", ["br", "deflate", "gzip, gzip"])
def test_other_codings_are_refused(homeless: TestClient, coding: str) -> None:
    response = homeless.post(
        "/v1/decisions",
        content=zlib.compress(BODY),
        headers={"Content-Type": "application/json", "Content-Encoding": coding},
    )
    assert response.status_code == 415
    assert response.headers["Accept-Encoding"] == "gzip, zstd"


def test_identity_is_no_coding(homeless: TestClient) -> None:
    assert post(homeless, BODY, Content_Encoding="identity")[0] == 200


@pytest.mark.parametrize(
    "media", ["application/json; charset=utf-8", "application/vnd.arbiter+json", "Application/JSON"]
)
def test_json_by_other_names_is_read(homeless: TestClient, media: str) -> None:
    assert post(homeless, BODY, Content_Type=media)[0] == 200


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "application/yaml"])
def test_other_media_types_are_refused(homeless: TestClient, media: str) -> None:
    status, problem = post(homeless, BODY, Content_Type=media)
    assert (status, problem["title"]) == (415, "Unsupported media type")


def test_a_body_without_media_type_is_refused(homeless: TestClient) -> None:
    answer = TestClient.request(homeless, "POST", "/v1/decisions", content=BODY)
    assert (answer.status_code, answer.json()["title"]) == (415, "Unsupported media type")


@pytest.mark.parametrize(
    ("accepted", "coding"), [("gzip", "gzip"), ("zstd, gzip", "zstd"), ("gzip;q=0", None), ("br", None)]
)
def test_answers_are_compressed_for_those_who_ask(homeless: TestClient, accepted: str, coding: str | None) -> None:
    with homeless.stream("GET", "/openapi.json", headers={"Accept-Encoding": accepted}) as response:
        raw = b"".join(response.iter_raw())
    assert response.headers.get("Content-Encoding") == coding
    assert response.headers["Content-Length"] == str(len(raw))
    plain = {"gzip": gzip.decompress, "zstd": zstandard.decompress, None: bytes}[coding](raw)
    assert json.loads(plain)["openapi"].startswith("3.1")
    if coding:
        assert response.headers["Vary"] == "Accept-Encoding"


def test_small_answers_are_not_compressed(homeless: TestClient) -> None:
    assert "Content-Encoding" not in homeless.get("/healthz", headers={"Accept-Encoding": "gzip"}).headers
