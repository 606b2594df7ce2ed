from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.comparison_stats import ComparisonStats
    from ..models.difference import Difference
    from ..models.variant_answer import VariantAnswer


T = TypeVar("T", bound="Comparison")


@_attrs_define
class Comparison:
    """One answer a variant in the order of the request, and where they differ.

    Attributes:
        variants (list[VariantAnswer]):
        differences (list[Difference]):
        stats (ComparisonStats):
    """

    variants: list[VariantAnswer]
    differences: list[Difference]
    stats: ComparisonStats
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        variants = []
        for variants_item_data in self.variants:
            variants_item = variants_item_data.to_dict()
            variants.append(variants_item)

        differences = []
        for differences_item_data in self.differences:
            differences_item = differences_item_data.to_dict()
            differences.append(differences_item)

        stats = self.stats.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "variants": variants,
                "differences": differences,
                "stats": stats,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.comparison_stats import ComparisonStats  # noqa: PLC0415
        from ..models.difference import Difference  # noqa: PLC0415
        from ..models.variant_answer import VariantAnswer  # noqa: PLC0415

        d = dict(src_dict)
        variants = []
        _variants = d.pop("variants")
        for variants_item_data in _variants:
            variants_item = VariantAnswer.from_dict(variants_item_data)

            variants.append(variants_item)

        differences = []
        _differences = d.pop("differences")
        for differences_item_data in _differences:
            differences_item = Difference.from_dict(differences_item_data)

            differences.append(differences_item)

        stats = ComparisonStats.from_dict(d.pop("stats"))

        comparison = cls(
            variants=variants,
            differences=differences,
            stats=stats,
        )

        comparison.additional_properties = d
        return comparison

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
