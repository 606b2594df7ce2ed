from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="KaiQueue")


@_attrs_define
class KaiQueue:
    """`queue.kai`.

    Attributes:
        reclaim_min_runtime (float | None | str | Unset):
        preempt_min_runtime (float | None | str | Unset):
    """

    reclaim_min_runtime: float | None | str | Unset = UNSET
    preempt_min_runtime: float | None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        reclaim_min_runtime: float | None | str | Unset
        if isinstance(self.reclaim_min_runtime, Unset):
            reclaim_min_runtime = UNSET
        else:
            reclaim_min_runtime = self.reclaim_min_runtime

        preempt_min_runtime: float | None | str | Unset
        if isinstance(self.preempt_min_runtime, Unset):
            preempt_min_runtime = UNSET
        else:
            preempt_min_runtime = self.preempt_min_runtime

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if reclaim_min_runtime is not UNSET:
            field_dict["reclaim_min_runtime"] = reclaim_min_runtime
        if preempt_min_runtime is not UNSET:
            field_dict["preempt_min_runtime"] = preempt_min_runtime

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_reclaim_min_runtime(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        reclaim_min_runtime = _parse_reclaim_min_runtime(d.pop("reclaim_min_runtime", UNSET))

        def _parse_preempt_min_runtime(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        preempt_min_runtime = _parse_preempt_min_runtime(d.pop("preempt_min_runtime", UNSET))

        kai_queue = cls(
            reclaim_min_runtime=reclaim_min_runtime,
            preempt_min_runtime=preempt_min_runtime,
        )

        return kai_queue
