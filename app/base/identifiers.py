"""Names that people give, addresses that they come from, and ids that sort by time: UUID version 7, strictly increasing
within a process."""

import os
import threading
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Self
from uuid import UUID

from app.solver.model.base import micros

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
"""What people may call a configuration, a snapshot, a cluster or a trace."""
_REMEMBERED = 4096
"""Addresses whose network need not be worked out again."""
_HOST_BITS = 64
_LONGEST_ADDRESS = 80
_MOST_HOPS = 20


def _plain(text: str) -> IPv4Address | IPv6Address | None:
    """The address that ``text`` is, one of IPv4 in IPv6's clothes as what it is; None: it is none."""
    if len(text) > _LONGEST_ADDRESS:
        return None
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


@lru_cache(_REMEMBERED)
def network_of(address: str) -> str:
    """Whose ``address`` it is: of IPv6 the network, since whoever has an address has all that share it. What is no
    address stays as it is."""
    plain = _plain(address)
    if plain is None:
        return address
    if isinstance(plain, IPv4Address) or plain.is_loopback:
        return str(plain)
    return str(IPv6Address(int(plain) >> _HOST_BITS << _HOST_BITS))


@dataclass(frozen=True, slots=True)
class Proxies:
    """Who is believed when they say whom they ask for. ``anybody``: whoever connects is a proxy."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    anybody: bool = False

    @classmethod
    def named(cls, listed: str) -> Self:
        """Addresses and networks with commas between, or ``*``. Raises ValueError with what is neither."""
        names = [name.strip() for name in listed.split(",") if name.strip()]
        networks: list[IPv4Network | IPv6Network] = []
        for name in names:
            if name == "*":
                continue
            try:
                networks.append(ip_network(name, strict=False))
            except ValueError:
                raise ValueError(f"{name[:100]!r} is neither an address nor a network") from None
        return cls(tuple(networks), "*" in names)

    def __contains__(self, address: str) -> bool:
        plain = _plain(address)
        return plain is not None and any(plain in network for network in self.networks)

    def believe(self, peer: str) -> bool:
        """Whether ``peer``, which connects, may say whom it asks for."""
        return self.anybody or peer in self

    def client(self, peer: str, forwarded: str) -> str:
        """Whom ``peer`` asks for, by ``X-Forwarded-For``: each proxy adds whom it was asked by at the end, so the last
        address that is no proxy's own is the client, and what stands before it is anybody's word. Behind what is no
        address nothing is known: then it is who said so."""
        client, is_proxy = peer, self.believe(peer)
        for hop in reversed(forwarded.rsplit(",", _MOST_HOPS)[-_MOST_HOPS:]):
            address = _plain(_without_port(hop.strip())) if is_proxy else None
            if address is None:
                break
            client, is_proxy = str(address), str(address) in self
        return client


def _without_port(hop: str) -> str:
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


_VERSION = 0x7 << 76
_VARIANT = 0x2 << 62
_RANDOM_BITS = 62


def _stamp(time: datetime) -> int:
    """60 bits: 48 of milliseconds since 1970, 12 of the fraction of a millisecond."""
    milliseconds, fraction = divmod(max(micros(time), 0), 1000)
    return milliseconds << 12 | fraction * 4096 // 1000


def _uuid(stamp: int, random: int) -> UUID:
    return UUID(int=stamp >> 12 << 80 | _VERSION | (stamp & 0xFFF) << 64 | _VARIANT | random)


def earliest(time: datetime) -> UUID:
    """The smallest id of the instant ``time``: ids of that instant and later are not below it."""
    return _uuid(_stamp(time), 0)


class Identifiers:
    """Makes ids; two of the same instant still come in the order in which they were made."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def new(self, time: datetime) -> UUID:
        """The id of something that happened ``time``."""
        with self._lock:
            self._last = stamp = max(_stamp(time), self._last + 1)
        return _uuid(stamp, int.from_bytes(os.urandom(8), "big") >> (64 - _RANDOM_BITS))
