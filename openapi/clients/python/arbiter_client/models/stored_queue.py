from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.queue import Queue


T = TypeVar("T", bound="StoredQueue")


@_attrs_define
class StoredQueue:
    """One queue, and the revision that it was read from.

    Attributes:
        name (str):
        revision (int):
        digest (str):
        created_at (str):
        author (str):
        queue (Queue): A node of the queue tree: ClusterQueue, cohort, leaf, pool.
        comment (None | str | Unset):
        restored_from (int | None | Unset):
    """

    name: str
    revision: int
    digest: str
    created_at: str
    author: str
    queue: Queue
    comment: None | str | Unset = UNSET
    restored_from: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        revision = self.revision

        digest = self.digest

        created_at = self.created_at

        author = self.author

        queue = self.queue.to_dict()

        comment: None | str | Unset
        if isinstance(self.comment, Unset):
            comment = UNSET
        else:
            comment = self.comment

        restored_from: int | None | Unset
        if isinstance(self.restored_from, Unset):
            restored_from = UNSET
        else:
            restored_from = self.restored_from

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "revision": revision,
                "digest": digest,
                "created_at": created_at,
                "author": author,
                "queue": queue,
            }
        )
        if comment is not UNSET:
            field_dict["comment"] = comment
        if restored_from is not UNSET:
            field_dict["restored_from"] = restored_from

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.queue import Queue  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        revision = d.pop("revision")

        digest = d.pop("digest")

        created_at = d.pop("created_at")

        author = d.pop("author")

        queue = Queue.from_dict(d.pop("queue"))

        def _parse_comment(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        comment = _parse_comment(d.pop("comment", UNSET))

        def _parse_restored_from(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        restored_from = _parse_restored_from(d.pop("restored_from", UNSET))

        stored_queue = cls(
            name=name,
            revision=revision,
            digest=digest,
            created_at=created_at,
            author=author,
            queue=queue,
            comment=comment,
            restored_from=restored_from,
        )

        stored_queue.additional_properties = d
        return stored_queue

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
