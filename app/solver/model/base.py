"""Shared wire types: the struct base, quantities, times and durations as they arrive.

A ``Quantity`` and a ``Duration`` stay as sent until a compile step parses them (``quantity.py``,
``duration.py``); a ``Time`` is decoded by msgspec, which refuses one without an offset.
"""

from datetime import datetime
from typing import Annotated

import msgspec

Quantity = Annotated[
    int | float | str,
    msgspec.Meta(title="Quantity", description="A Kubernetes quantity: `1500m`, `4Gi`, or a number of units"),
]
Resources = dict[str, Quantity]
Time = Annotated[datetime, msgspec.Meta(tz=True)]
Duration = Annotated[
    int | float | str, msgspec.Meta(title="Duration", description="Seconds, or a Go duration: `30s`, `1h30m`")
]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
Total = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""How many of what is counted over time or over a cluster: exact in JSON everywhere."""
Priority = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]


class Wire(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Base of every struct that crosses the wire: immutable, unknown fields refused."""
