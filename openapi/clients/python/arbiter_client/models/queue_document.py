from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.kai_queue import KaiQueue
    from ..models.kueue_queue import KueueQueue
    from ..models.queue_document_quota_type_0 import QueueDocumentQuotaType0
    from ..models.resource_group import ResourceGroup
    from ..models.ytsaurus_queue import YtsaurusQueue
    from ..models.yuni_korn_queue import YuniKornQueue


T = TypeVar("T", bound="QueueDocument")


@_attrs_define
class QueueDocument:
    """A queue to be stored. `name` may be left out: it is the path's.

    Attributes:
        name (str | Unset):
        parent (None | str | Unset):
        quota (None | QueueDocumentQuotaType0 | Unset):
        resource_groups (list[ResourceGroup] | None | Unset):
        weight (float | Unset):  Default: 1.0.
        priority (int | Unset):  Default: 0.
        created_at (datetime.datetime | None | Unset):
        kueue (KueueQueue | None | Unset):
        yunikorn (None | Unset | YuniKornQueue):
        kai (KaiQueue | None | Unset):
        ytsaurus (None | Unset | YtsaurusQueue):
    """

    name: str | Unset = UNSET
    parent: None | str | Unset = UNSET
    quota: None | QueueDocumentQuotaType0 | Unset = UNSET
    resource_groups: list[ResourceGroup] | None | Unset = UNSET
    weight: float | Unset = 1.0
    priority: int | Unset = 0
    created_at: datetime.datetime | None | Unset = UNSET
    kueue: KueueQueue | None | Unset = UNSET
    yunikorn: None | Unset | YuniKornQueue = UNSET
    kai: KaiQueue | None | Unset = UNSET
    ytsaurus: None | Unset | YtsaurusQueue = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.kai_queue import KaiQueue  # noqa: PLC0415
        from ..models.kueue_queue import KueueQueue  # noqa: PLC0415
        from ..models.queue_document_quota_type_0 import QueueDocumentQuotaType0  # noqa: PLC0415
        from ..models.ytsaurus_queue import YtsaurusQueue  # noqa: PLC0415
        from ..models.yuni_korn_queue import YuniKornQueue  # noqa: PLC0415

        name = self.name

        parent: None | str | Unset
        if isinstance(self.parent, Unset):
            parent = UNSET
        else:
            parent = self.parent

        quota: dict[str, Any] | None | Unset
        if isinstance(self.quota, Unset):
            quota = UNSET
        elif isinstance(self.quota, QueueDocumentQuotaType0):
            quota = self.quota.to_dict()
        else:
            quota = self.quota

        resource_groups: list[dict[str, Any]] | None | Unset
        if isinstance(self.resource_groups, Unset):
            resource_groups = UNSET
        elif isinstance(self.resource_groups, list):
            resource_groups = []
            for resource_groups_type_0_item_data in self.resource_groups:
                resource_groups_type_0_item = resource_groups_type_0_item_data.to_dict()
                resource_groups.append(resource_groups_type_0_item)

        else:
            resource_groups = self.resource_groups

        weight = self.weight

        priority = self.priority

        created_at: None | str | Unset
        if isinstance(self.created_at, Unset):
            created_at = UNSET
        elif isinstance(self.created_at, datetime.datetime):
            created_at = self.created_at.isoformat()
        else:
            created_at = self.created_at

        kueue: dict[str, Any] | None | Unset
        if isinstance(self.kueue, Unset):
            kueue = UNSET
        elif isinstance(self.kueue, KueueQueue):
            kueue = self.kueue.to_dict()
        else:
            kueue = self.kueue

        yunikorn: dict[str, Any] | None | Unset
        if isinstance(self.yunikorn, Unset):
            yunikorn = UNSET
        elif isinstance(self.yunikorn, YuniKornQueue):
            yunikorn = self.yunikorn.to_dict()
        else:
            yunikorn = self.yunikorn

        kai: dict[str, Any] | None | Unset
        if isinstance(self.kai, Unset):
            kai = UNSET
        elif isinstance(self.kai, KaiQueue):
            kai = self.kai.to_dict()
        else:
            kai = self.kai

        ytsaurus: dict[str, Any] | None | Unset
        if isinstance(self.ytsaurus, Unset):
            ytsaurus = UNSET
        elif isinstance(self.ytsaurus, YtsaurusQueue):
            ytsaurus = self.ytsaurus.to_dict()
        else:
            ytsaurus = self.ytsaurus

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if name is not UNSET:
            field_dict["name"] = name
        if parent is not UNSET:
            field_dict["parent"] = parent
        if quota is not UNSET:
            field_dict["quota"] = quota
        if resource_groups is not UNSET:
            field_dict["resource_groups"] = resource_groups
        if weight is not UNSET:
            field_dict["weight"] = weight
        if priority is not UNSET:
            field_dict["priority"] = priority
        if created_at is not UNSET:
            field_dict["created_at"] = created_at
        if kueue is not UNSET:
            field_dict["kueue"] = kueue
        if yunikorn is not UNSET:
            field_dict["yunikorn"] = yunikorn
        if kai is not UNSET:
            field_dict["kai"] = kai
        if ytsaurus is not UNSET:
            field_dict["ytsaurus"] = ytsaurus

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.kai_queue import KaiQueue  # noqa: PLC0415
        from ..models.kueue_queue import KueueQueue  # noqa: PLC0415
        from ..models.queue_document_quota_type_0 import QueueDocumentQuotaType0  # noqa: PLC0415
        from ..models.resource_group import ResourceGroup  # noqa: PLC0415
        from ..models.ytsaurus_queue import YtsaurusQueue  # noqa: PLC0415
        from ..models.yuni_korn_queue import YuniKornQueue  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name", UNSET)

        def _parse_parent(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        parent = _parse_parent(d.pop("parent", UNSET))

        def _parse_quota(data: object) -> None | QueueDocumentQuotaType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                quota_type_0 = QueueDocumentQuotaType0.from_dict(data)

                return quota_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | QueueDocumentQuotaType0 | Unset, data)

        quota = _parse_quota(d.pop("quota", UNSET))

        def _parse_resource_groups(data: object) -> list[ResourceGroup] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                resource_groups_type_0 = []
                _resource_groups_type_0 = data
                for resource_groups_type_0_item_data in _resource_groups_type_0:
                    resource_groups_type_0_item = ResourceGroup.from_dict(resource_groups_type_0_item_data)

                    resource_groups_type_0.append(resource_groups_type_0_item)

                return resource_groups_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[ResourceGroup] | None | Unset, data)

        resource_groups = _parse_resource_groups(d.pop("resource_groups", UNSET))

        weight = d.pop("weight", UNSET)

        priority = d.pop("priority", UNSET)

        def _parse_created_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                created_at_type_0 = datetime.datetime.fromisoformat(data)

                return created_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        created_at = _parse_created_at(d.pop("created_at", UNSET))

        def _parse_kueue(data: object) -> KueueQueue | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                kueue_type_0 = KueueQueue.from_dict(data)

                return kueue_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(KueueQueue | None | Unset, data)

        kueue = _parse_kueue(d.pop("kueue", UNSET))

        def _parse_yunikorn(data: object) -> None | Unset | YuniKornQueue:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                yunikorn_type_0 = YuniKornQueue.from_dict(data)

                return yunikorn_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | YuniKornQueue, data)

        yunikorn = _parse_yunikorn(d.pop("yunikorn", UNSET))

        def _parse_kai(data: object) -> KaiQueue | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                kai_type_0 = KaiQueue.from_dict(data)

                return kai_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(KaiQueue | None | Unset, data)

        kai = _parse_kai(d.pop("kai", UNSET))

        def _parse_ytsaurus(data: object) -> None | Unset | YtsaurusQueue:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                ytsaurus_type_0 = YtsaurusQueue.from_dict(data)

                return ytsaurus_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | YtsaurusQueue, data)

        ytsaurus = _parse_ytsaurus(d.pop("ytsaurus", UNSET))

        queue_document = cls(
            name=name,
            parent=parent,
            quota=quota,
            resource_groups=resource_groups,
            weight=weight,
            priority=priority,
            created_at=created_at,
            kueue=kueue,
            yunikorn=yunikorn,
            kai=kai,
            ytsaurus=ytsaurus,
        )

        return queue_document
