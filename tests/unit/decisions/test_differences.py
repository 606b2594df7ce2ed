import pytest

from app.decisions.service import differences


@pytest.mark.parametrize(
    ("one", "other", "pointers"),
    [
        (b'{"a":1}', b'{"a":1}', []),
        (b'{"a":1}', b'{"a":2}', ["/a"]),
        (b'{"a":1}', b'{"a":1.0}', ["/a"]),
        (b'{"a":true}', b'{"a":1}', ["/a"]),
        (b'{"a":[1,{"b":2}]}', b'{"a":[1,{"b":3}]}', ["/a/1/b"]),
        (b'{"a":[1]}', b'{"a":[1,2,3]}', ["/a/1", "/a/2"]),
        (b'{"a":1,"x/y":1}', b'{"b":1}', ["/a", "/x~1y", "/b"]),
        (b'{"a":{}}', b'{"a":[]}', ["/a"]),
    ],
)
def test_every_place_is_named(one: bytes, other: bytes, pointers: list[str]) -> None:
    assert differences(one, other) == pointers


def test_a_flood_is_cut() -> None:
    assert len(differences(b"[%s]" % b",".join([b"1"] * 100), b"[%s]" % b",".join([b"2"] * 100))) == 50
