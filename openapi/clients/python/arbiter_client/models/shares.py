from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.configuration_used import ConfigurationUsed
    from ..models.remark import Remark
    from ..models.shares_fair_share_type_0 import SharesFairShareType0
    from ..models.shares_queues import SharesQueues
    from ..models.shares_total_type_0 import SharesTotalType0
    from ..models.shares_workloads_type_0 import SharesWorkloadsType0


T = TypeVar("T", bound="Shares")


@_attrs_define
class Shares:
    """`POST /v1/shares`: by name of queue and id of workload, as the engine counts.

    YTsaurus adds what the nodes have in `total`, and the `fair_share` of all queues together.

    Attributes:
        engine (str):
        configuration (ConfigurationUsed):
        queues (SharesQueues):
        workloads (None | SharesWorkloadsType0 | Unset):
        total (None | SharesTotalType0 | Unset):
        fair_share (None | SharesFairShareType0 | Unset):
        warnings (list[Remark] | None | Unset):
    """

    engine: str
    configuration: ConfigurationUsed
    queues: SharesQueues
    workloads: None | SharesWorkloadsType0 | Unset = UNSET
    total: None | SharesTotalType0 | Unset = UNSET
    fair_share: None | SharesFairShareType0 | Unset = UNSET
    warnings: list[Remark] | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.shares_fair_share_type_0 import SharesFairShareType0  # noqa: PLC0415
        from ..models.shares_total_type_0 import SharesTotalType0  # noqa: PLC0415
        from ..models.shares_workloads_type_0 import SharesWorkloadsType0  # noqa: PLC0415

        engine = self.engine

        configuration = self.configuration.to_dict()

        queues = self.queues.to_dict()

        workloads: dict[str, Any] | None | Unset
        if isinstance(self.workloads, Unset):
            workloads = UNSET
        elif isinstance(self.workloads, SharesWorkloadsType0):
            workloads = self.workloads.to_dict()
        else:
            workloads = self.workloads

        total: dict[str, Any] | None | Unset
        if isinstance(self.total, Unset):
            total = UNSET
        elif isinstance(self.total, SharesTotalType0):
            total = self.total.to_dict()
        else:
            total = self.total

        fair_share: dict[str, Any] | None | Unset
        if isinstance(self.fair_share, Unset):
            fair_share = UNSET
        elif isinstance(self.fair_share, SharesFairShareType0):
            fair_share = self.fair_share.to_dict()
        else:
            fair_share = self.fair_share

        warnings: list[dict[str, Any]] | None | Unset
        if isinstance(self.warnings, Unset):
            warnings = UNSET
        elif isinstance(self.warnings, list):
            warnings = []
            for warnings_type_0_item_data in self.warnings:
                warnings_type_0_item = warnings_type_0_item_data.to_dict()
                warnings.append(warnings_type_0_item)

        else:
            warnings = self.warnings

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "engine": engine,
                "configuration": configuration,
                "queues": queues,
            }
        )
        if workloads is not UNSET:
            field_dict["workloads"] = workloads
        if total is not UNSET:
            field_dict["total"] = total
        if fair_share is not UNSET:
            field_dict["fair_share"] = fair_share
        if warnings is not UNSET:
            field_dict["warnings"] = warnings

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.configuration_used import ConfigurationUsed  # noqa: PLC0415
        from ..models.remark import Remark  # noqa: PLC0415
        from ..models.shares_fair_share_type_0 import SharesFairShareType0  # noqa: PLC0415
        from ..models.shares_queues import SharesQueues  # noqa: PLC0415
        from ..models.shares_total_type_0 import SharesTotalType0  # noqa: PLC0415
        from ..models.shares_workloads_type_0 import SharesWorkloadsType0  # noqa: PLC0415

        d = dict(src_dict)
        engine = d.pop("engine")

        configuration = ConfigurationUsed.from_dict(d.pop("configuration"))

        queues = SharesQueues.from_dict(d.pop("queues"))

        def _parse_workloads(data: object) -> None | SharesWorkloadsType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                workloads_type_0 = SharesWorkloadsType0.from_dict(data)

                return workloads_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SharesWorkloadsType0 | Unset, data)

        workloads = _parse_workloads(d.pop("workloads", UNSET))

        def _parse_total(data: object) -> None | SharesTotalType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                total_type_0 = SharesTotalType0.from_dict(data)

                return total_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SharesTotalType0 | Unset, data)

        total = _parse_total(d.pop("total", UNSET))

        def _parse_fair_share(data: object) -> None | SharesFairShareType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                fair_share_type_0 = SharesFairShareType0.from_dict(data)

                return fair_share_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SharesFairShareType0 | Unset, data)

        fair_share = _parse_fair_share(d.pop("fair_share", UNSET))

        def _parse_warnings(data: object) -> list[Remark] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                warnings_type_0 = []
                _warnings_type_0 = data
                for warnings_type_0_item_data in _warnings_type_0:
                    warnings_type_0_item = Remark.from_dict(warnings_type_0_item_data)

                    warnings_type_0.append(warnings_type_0_item)

                return warnings_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[Remark] | None | Unset, data)

        warnings = _parse_warnings(d.pop("warnings", UNSET))

        shares = cls(
            engine=engine,
            configuration=configuration,
            queues=queues,
            workloads=workloads,
            total=total,
            fair_share=fair_share,
            warnings=warnings,
        )

        shares.additional_properties = d
        return shares

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
