"""Addresses: whose they are, and whom a proxy asks for."""

import pytest

from app.base.identifiers import Proxies, network_of


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.0.0.1", "10.0.0.1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("::1", "::1"), ("127.0.0.1", "127.0.0.1"),
        ("2001:db8::1", "2001:db8::"), ("2001:db8::2", "2001:db8::"), ("2001:db8::a:b:c:d", "2001:db8::"),
        ("2001:DB8:0:0:a:b:c:d", "2001:db8::"), ("2001:db8:0:1::1", "2001:db8:0:1::"),
        ("2001:db8::1:a:b:c:d", "2001:db8:0:1::"),
        ("fe80::1%eth0", "fe80::"), ("testclient", "testclient"), ("/run/arbiter.sock", "/run/arbiter.sock"), ("", ""),
    ],
)  # fmt: skip
def test_of_ipv6_whoever_has_an_address_has_its_network(address: str, network: str) -> None:
    assert network_of(address) == network


@pytest.mark.parametrize(
    ("listed", "peer", "forwarded", "client"),
    [
        ("10.0.0.1", "10.0.0.1", "192.0.2.7", "192.0.2.7"),
        ("10.0.0.1", "10.0.0.1", "6.6.6.6, 192.0.2.7", "192.0.2.7"),  # what stands before is the client's own word
        ("10.0.0.1", "10.0.0.2", "192.0.2.7", "10.0.0.2"),
        ("", "127.0.0.1", "192.0.2.7", "127.0.0.1"),
        ("10.0.0.0/8", "10.0.0.1", "192.0.2.7, 10.1.1.1 ,10.2.2.2", "192.0.2.7"),
        ("10.0.0.0/8, 192.0.2.7", "10.0.0.1", "192.0.2.7, 10.1.1.1", "192.0.2.7"),  # all are proxies: the first
        ("10.0.0.1", "::ffff:10.0.0.1", "::ffff:192.0.2.7", "192.0.2.7"),
        ("fd00::/8", "fd00::1", "[2001:db8::1]:443", "2001:db8::1"),
        ("fd00::/8", "fd00::1", "2001:DB8:0:0::1", "2001:db8::1"),
        ("10.0.0.1", "10.0.0.1", "192.0.2.7:4711", "192.0.2.7"),
        ("*", "203.0.113.9", "6.6.6.6, 192.0.2.7", "192.0.2.7"),  # anybody is a proxy, but nobody behind him
        ("*, 10.0.0.0/8", "203.0.113.9", "192.0.2.7, 10.0.0.4", "192.0.2.7"),
        ("10.0.0.1", "10.0.0.1", "unknown", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.1", "192.0.2.7, unknown", "10.0.0.1"),
        ("10.0.0.0/8", "10.0.0.1", "unknown, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", "10.0.0.1", "", "10.0.0.1"), ("10.0.0.1", "10.0.0.1", ", ,", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.1", "1" * 30_000, "10.0.0.1"), ("10.0.0.1", "10.0.0.1", "[" * 200, "10.0.0.1"),
        ("10.0.0.1", "10.0.0.1", "\xff\xfe", "10.0.0.1"), ("10.0.0.1", "10.0.0.1", "256.1.1.1", "10.0.0.1"),
        ("10.0.0.0/8", "10.0.0.1", ",".join(["192.0.2.7"] + ["10.0.0.2"] * 5000), "10.0.0.2"),  # twenty hops at most
        ("10.0.0.1", "/run/arbiter.sock", "192.0.2.7", "/run/arbiter.sock"),
    ],
)  # fmt: skip
def test_the_client_is_the_last_address_that_is_no_proxys(listed: str, peer: str, forwarded: str, client: str) -> None:
    assert Proxies.named(listed).client(peer, forwarded) == client


@pytest.mark.parametrize("listed", ["proxy.example", "10.0.0.0/33", "10.0.0.1 10.0.0.2", "10.0.0.1,x"])
def test_what_is_no_address_names_no_proxy(listed: str) -> None:
    with pytest.raises(ValueError, match="is neither an address nor a network"):
        Proxies.named(listed)
