from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.pool_state import PoolState


T = TypeVar("T", bound="QueueState")


@_attrs_define
class QueueState:
    """
    Attributes:
        ytsaurus (None | PoolState | Unset):
    """

    ytsaurus: None | PoolState | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.pool_state import PoolState  # noqa: PLC0415

        ytsaurus: dict[str, Any] | None | Unset
        if isinstance(self.ytsaurus, Unset):
            ytsaurus = UNSET
        elif isinstance(self.ytsaurus, PoolState):
            ytsaurus = self.ytsaurus.to_dict()
        else:
            ytsaurus = self.ytsaurus

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if ytsaurus is not UNSET:
            field_dict["ytsaurus"] = ytsaurus

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.pool_state import PoolState  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_ytsaurus(data: object) -> None | PoolState | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                ytsaurus_type_0 = PoolState.from_dict(data)

                return ytsaurus_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PoolState | Unset, data)

        ytsaurus = _parse_ytsaurus(d.pop("ytsaurus", UNSET))

        queue_state = cls(
            ytsaurus=ytsaurus,
        )

        return queue_state
