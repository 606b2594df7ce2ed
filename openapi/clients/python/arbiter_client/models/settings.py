from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.kai_settings import KaiSettings
    from ..models.kueue_settings import KueueSettings
    from ..models.ytsaurus_settings import YtsaurusSettings
    from ..models.yuni_korn_settings import YuniKornSettings


T = TypeVar("T", bound="Settings")


@_attrs_define
class Settings:
    """
    Attributes:
        kueue (KueueSettings | None | Unset):
        yunikorn (None | Unset | YuniKornSettings):
        kai (KaiSettings | None | Unset):
        ytsaurus (None | Unset | YtsaurusSettings):
    """

    kueue: KueueSettings | None | Unset = UNSET
    yunikorn: None | Unset | YuniKornSettings = UNSET
    kai: KaiSettings | None | Unset = UNSET
    ytsaurus: None | Unset | YtsaurusSettings = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.kai_settings import KaiSettings  # noqa: PLC0415
        from ..models.kueue_settings import KueueSettings  # noqa: PLC0415
        from ..models.ytsaurus_settings import YtsaurusSettings  # noqa: PLC0415
        from ..models.yuni_korn_settings import YuniKornSettings  # noqa: PLC0415

        kueue: dict[str, Any] | None | Unset
        if isinstance(self.kueue, Unset):
            kueue = UNSET
        elif isinstance(self.kueue, KueueSettings):
            kueue = self.kueue.to_dict()
        else:
            kueue = self.kueue

        yunikorn: dict[str, Any] | None | Unset
        if isinstance(self.yunikorn, Unset):
            yunikorn = UNSET
        elif isinstance(self.yunikorn, YuniKornSettings):
            yunikorn = self.yunikorn.to_dict()
        else:
            yunikorn = self.yunikorn

        kai: dict[str, Any] | None | Unset
        if isinstance(self.kai, Unset):
            kai = UNSET
        elif isinstance(self.kai, KaiSettings):
            kai = self.kai.to_dict()
        else:
            kai = self.kai

        ytsaurus: dict[str, Any] | None | Unset
        if isinstance(self.ytsaurus, Unset):
            ytsaurus = UNSET
        elif isinstance(self.ytsaurus, YtsaurusSettings):
            ytsaurus = self.ytsaurus.to_dict()
        else:
            ytsaurus = self.ytsaurus

        field_dict: dict[str, Any] = {}

        field_dict.update({})
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
        from ..models.kai_settings import KaiSettings  # noqa: PLC0415
        from ..models.kueue_settings import KueueSettings  # noqa: PLC0415
        from ..models.ytsaurus_settings import YtsaurusSettings  # noqa: PLC0415
        from ..models.yuni_korn_settings import YuniKornSettings  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_kueue(data: object) -> KueueSettings | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                kueue_type_0 = KueueSettings.from_dict(data)

                return kueue_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(KueueSettings | None | Unset, data)

        kueue = _parse_kueue(d.pop("kueue", UNSET))

        def _parse_yunikorn(data: object) -> None | Unset | YuniKornSettings:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                yunikorn_type_0 = YuniKornSettings.from_dict(data)

                return yunikorn_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | YuniKornSettings, data)

        yunikorn = _parse_yunikorn(d.pop("yunikorn", UNSET))

        def _parse_kai(data: object) -> KaiSettings | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                kai_type_0 = KaiSettings.from_dict(data)

                return kai_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(KaiSettings | None | Unset, data)

        kai = _parse_kai(d.pop("kai", UNSET))

        def _parse_ytsaurus(data: object) -> None | Unset | YtsaurusSettings:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                ytsaurus_type_0 = YtsaurusSettings.from_dict(data)

                return ytsaurus_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | YtsaurusSettings, data)

        ytsaurus = _parse_ytsaurus(d.pop("ytsaurus", UNSET))

        settings = cls(
            kueue=kueue,
            yunikorn=yunikorn,
            kai=kai,
            ytsaurus=ytsaurus,
        )

        return settings
