from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.kueue_queue_queueing_strategy import KueueQueueQueueingStrategy, check_kueue_queue_queueing_strategy
from ..models.kueue_queue_role_type_0 import KueueQueueRoleType0, check_kueue_queue_role_type_0
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.flavor_fungibility import FlavorFungibility
    from ..models.preemption import Preemption


T = TypeVar("T", bound="KueueQueue")


@_attrs_define
class KueueQueue:
    """`queue.kueue`.

    Attributes:
        preemption (None | Preemption | Unset):
        flavor_fungibility (FlavorFungibility | None | Unset):
        queueing_strategy (KueueQueueQueueingStrategy | Unset):  Default: 'BestEffortFIFO'.
        role (KueueQueueRoleType0 | None | Unset):
    """

    preemption: None | Preemption | Unset = UNSET
    flavor_fungibility: FlavorFungibility | None | Unset = UNSET
    queueing_strategy: KueueQueueQueueingStrategy | Unset = "BestEffortFIFO"
    role: KueueQueueRoleType0 | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.flavor_fungibility import FlavorFungibility  # noqa: PLC0415
        from ..models.preemption import Preemption  # noqa: PLC0415

        preemption: dict[str, Any] | None | Unset
        if isinstance(self.preemption, Unset):
            preemption = UNSET
        elif isinstance(self.preemption, Preemption):
            preemption = self.preemption.to_dict()
        else:
            preemption = self.preemption

        flavor_fungibility: dict[str, Any] | None | Unset
        if isinstance(self.flavor_fungibility, Unset):
            flavor_fungibility = UNSET
        elif isinstance(self.flavor_fungibility, FlavorFungibility):
            flavor_fungibility = self.flavor_fungibility.to_dict()
        else:
            flavor_fungibility = self.flavor_fungibility

        queueing_strategy: str | Unset = UNSET
        if not isinstance(self.queueing_strategy, Unset):
            queueing_strategy = self.queueing_strategy

        role: None | str | Unset
        if isinstance(self.role, Unset):
            role = UNSET
        elif isinstance(self.role, str):
            role = self.role
        else:
            role = self.role

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if preemption is not UNSET:
            field_dict["preemption"] = preemption
        if flavor_fungibility is not UNSET:
            field_dict["flavor_fungibility"] = flavor_fungibility
        if queueing_strategy is not UNSET:
            field_dict["queueing_strategy"] = queueing_strategy
        if role is not UNSET:
            field_dict["role"] = role

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.flavor_fungibility import FlavorFungibility  # noqa: PLC0415
        from ..models.preemption import Preemption  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_preemption(data: object) -> None | Preemption | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                preemption_type_0 = Preemption.from_dict(data)

                return preemption_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Preemption | Unset, data)

        preemption = _parse_preemption(d.pop("preemption", UNSET))

        def _parse_flavor_fungibility(data: object) -> FlavorFungibility | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                flavor_fungibility_type_0 = FlavorFungibility.from_dict(data)

                return flavor_fungibility_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(FlavorFungibility | None | Unset, data)

        flavor_fungibility = _parse_flavor_fungibility(d.pop("flavor_fungibility", UNSET))

        _queueing_strategy = d.pop("queueing_strategy", UNSET)
        queueing_strategy: KueueQueueQueueingStrategy | Unset
        if isinstance(_queueing_strategy, Unset):
            queueing_strategy = UNSET
        else:
            queueing_strategy = check_kueue_queue_queueing_strategy(_queueing_strategy)

        def _parse_role(data: object) -> KueueQueueRoleType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                role_type_0 = check_kueue_queue_role_type_0(data)

                return role_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(KueueQueueRoleType0 | None | Unset, data)

        role = _parse_role(d.pop("role", UNSET))

        kueue_queue = cls(
            preemption=preemption,
            flavor_fungibility=flavor_fungibility,
            queueing_strategy=queueing_strategy,
            role=role,
        )

        return kueue_queue
