from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.task_state import TaskState, check_task_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.expression import Expression
    from ..models.resources import Resources
    from ..models.task_flavors_type_0 import TaskFlavorsType0
    from ..models.task_node_selector_type_0 import TaskNodeSelectorType0
    from ..models.toleration import Toleration


T = TypeVar("T", bound="Task")


@_attrs_define
class Task:
    """A pod set, allocation, pod or job; `requests` are per unit of `count`.

    Attributes:
        name (str):
        count (int | Unset):  Default: 1.
        min_count (int | None | Unset):
        requests (Resources | Unset):
        usage (None | Resources | Unset):
        node (None | str | Unset):
        flavors (None | TaskFlavorsType0 | Unset):
        priority (int | None | Unset):
        created_at (datetime.datetime | None | Unset):
        started_at (datetime.datetime | None | Unset):
        preemptible (bool | None | Unset):
        originator (bool | Unset):  Default: False.
        required_node (None | str | Unset):
        state (TaskState | Unset):
        placeholder (bool | Unset):  Default: False.
        node_selector (None | TaskNodeSelectorType0 | Unset):
        tolerations (list[Toleration] | None | Unset):
        node_affinity (list[list[Expression]] | None | Unset):
    """

    name: str
    count: int | Unset = 1
    min_count: int | None | Unset = UNSET
    requests: Resources | Unset = UNSET
    usage: None | Resources | Unset = UNSET
    node: None | str | Unset = UNSET
    flavors: None | TaskFlavorsType0 | Unset = UNSET
    priority: int | None | Unset = UNSET
    created_at: datetime.datetime | None | Unset = UNSET
    started_at: datetime.datetime | None | Unset = UNSET
    preemptible: bool | None | Unset = UNSET
    originator: bool | Unset = False
    required_node: None | str | Unset = UNSET
    state: TaskState | Unset = UNSET
    placeholder: bool | Unset = False
    node_selector: None | TaskNodeSelectorType0 | Unset = UNSET
    tolerations: list[Toleration] | None | Unset = UNSET
    node_affinity: list[list[Expression]] | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.resources import Resources  # noqa: PLC0415
        from ..models.task_flavors_type_0 import TaskFlavorsType0  # noqa: PLC0415
        from ..models.task_node_selector_type_0 import TaskNodeSelectorType0  # noqa: PLC0415

        name = self.name

        count = self.count

        min_count: int | None | Unset
        if isinstance(self.min_count, Unset):
            min_count = UNSET
        else:
            min_count = self.min_count

        requests: dict[str, Any] | Unset = UNSET
        if not isinstance(self.requests, Unset):
            requests = self.requests.to_dict()

        usage: dict[str, Any] | None | Unset
        if isinstance(self.usage, Unset):
            usage = UNSET
        elif isinstance(self.usage, Resources):
            usage = self.usage.to_dict()
        else:
            usage = self.usage

        node: None | str | Unset
        if isinstance(self.node, Unset):
            node = UNSET
        else:
            node = self.node

        flavors: dict[str, Any] | None | Unset
        if isinstance(self.flavors, Unset):
            flavors = UNSET
        elif isinstance(self.flavors, TaskFlavorsType0):
            flavors = self.flavors.to_dict()
        else:
            flavors = self.flavors

        priority: int | None | Unset
        if isinstance(self.priority, Unset):
            priority = UNSET
        else:
            priority = self.priority

        created_at: None | str | Unset
        if isinstance(self.created_at, Unset):
            created_at = UNSET
        elif isinstance(self.created_at, datetime.datetime):
            created_at = self.created_at.isoformat()
        else:
            created_at = self.created_at

        started_at: None | str | Unset
        if isinstance(self.started_at, Unset):
            started_at = UNSET
        elif isinstance(self.started_at, datetime.datetime):
            started_at = self.started_at.isoformat()
        else:
            started_at = self.started_at

        preemptible: bool | None | Unset
        if isinstance(self.preemptible, Unset):
            preemptible = UNSET
        else:
            preemptible = self.preemptible

        originator = self.originator

        required_node: None | str | Unset
        if isinstance(self.required_node, Unset):
            required_node = UNSET
        else:
            required_node = self.required_node

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state

        placeholder = self.placeholder

        node_selector: dict[str, Any] | None | Unset
        if isinstance(self.node_selector, Unset):
            node_selector = UNSET
        elif isinstance(self.node_selector, TaskNodeSelectorType0):
            node_selector = self.node_selector.to_dict()
        else:
            node_selector = self.node_selector

        tolerations: list[dict[str, Any]] | None | Unset
        if isinstance(self.tolerations, Unset):
            tolerations = UNSET
        elif isinstance(self.tolerations, list):
            tolerations = []
            for tolerations_type_0_item_data in self.tolerations:
                tolerations_type_0_item = tolerations_type_0_item_data.to_dict()
                tolerations.append(tolerations_type_0_item)

        else:
            tolerations = self.tolerations

        node_affinity: list[list[dict[str, Any]]] | None | Unset
        if isinstance(self.node_affinity, Unset):
            node_affinity = UNSET
        elif isinstance(self.node_affinity, list):
            node_affinity = []
            for node_affinity_type_0_item_data in self.node_affinity:
                node_affinity_type_0_item = []
                for node_affinity_type_0_item_item_data in node_affinity_type_0_item_data:
                    node_affinity_type_0_item_item = node_affinity_type_0_item_item_data.to_dict()
                    node_affinity_type_0_item.append(node_affinity_type_0_item_item)

                node_affinity.append(node_affinity_type_0_item)

        else:
            node_affinity = self.node_affinity

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )
        if count is not UNSET:
            field_dict["count"] = count
        if min_count is not UNSET:
            field_dict["min_count"] = min_count
        if requests is not UNSET:
            field_dict["requests"] = requests
        if usage is not UNSET:
            field_dict["usage"] = usage
        if node is not UNSET:
            field_dict["node"] = node
        if flavors is not UNSET:
            field_dict["flavors"] = flavors
        if priority is not UNSET:
            field_dict["priority"] = priority
        if created_at is not UNSET:
            field_dict["created_at"] = created_at
        if started_at is not UNSET:
            field_dict["started_at"] = started_at
        if preemptible is not UNSET:
            field_dict["preemptible"] = preemptible
        if originator is not UNSET:
            field_dict["originator"] = originator
        if required_node is not UNSET:
            field_dict["required_node"] = required_node
        if state is not UNSET:
            field_dict["state"] = state
        if placeholder is not UNSET:
            field_dict["placeholder"] = placeholder
        if node_selector is not UNSET:
            field_dict["node_selector"] = node_selector
        if tolerations is not UNSET:
            field_dict["tolerations"] = tolerations
        if node_affinity is not UNSET:
            field_dict["node_affinity"] = node_affinity

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.expression import Expression  # noqa: PLC0415
        from ..models.resources import Resources  # noqa: PLC0415
        from ..models.task_flavors_type_0 import TaskFlavorsType0  # noqa: PLC0415
        from ..models.task_node_selector_type_0 import TaskNodeSelectorType0  # noqa: PLC0415
        from ..models.toleration import Toleration  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        count = d.pop("count", UNSET)

        def _parse_min_count(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        min_count = _parse_min_count(d.pop("min_count", UNSET))

        _requests = d.pop("requests", UNSET)
        requests: Resources | Unset
        if isinstance(_requests, Unset):
            requests = UNSET
        else:
            requests = Resources.from_dict(_requests)

        def _parse_usage(data: object) -> None | Resources | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                usage_type_0 = Resources.from_dict(data)

                return usage_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Resources | Unset, data)

        usage = _parse_usage(d.pop("usage", UNSET))

        def _parse_node(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        node = _parse_node(d.pop("node", UNSET))

        def _parse_flavors(data: object) -> None | TaskFlavorsType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                flavors_type_0 = TaskFlavorsType0.from_dict(data)

                return flavors_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TaskFlavorsType0 | Unset, data)

        flavors = _parse_flavors(d.pop("flavors", UNSET))

        def _parse_priority(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        priority = _parse_priority(d.pop("priority", UNSET))

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

        def _parse_started_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                started_at_type_0 = datetime.datetime.fromisoformat(data)

                return started_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        started_at = _parse_started_at(d.pop("started_at", UNSET))

        def _parse_preemptible(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        preemptible = _parse_preemptible(d.pop("preemptible", UNSET))

        originator = d.pop("originator", UNSET)

        def _parse_required_node(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        required_node = _parse_required_node(d.pop("required_node", UNSET))

        _state = d.pop("state", UNSET)
        state: TaskState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_task_state(_state)

        placeholder = d.pop("placeholder", UNSET)

        def _parse_node_selector(data: object) -> None | TaskNodeSelectorType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                node_selector_type_0 = TaskNodeSelectorType0.from_dict(data)

                return node_selector_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TaskNodeSelectorType0 | Unset, data)

        node_selector = _parse_node_selector(d.pop("node_selector", UNSET))

        def _parse_tolerations(data: object) -> list[Toleration] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                tolerations_type_0 = []
                _tolerations_type_0 = data
                for tolerations_type_0_item_data in _tolerations_type_0:
                    tolerations_type_0_item = Toleration.from_dict(tolerations_type_0_item_data)

                    tolerations_type_0.append(tolerations_type_0_item)

                return tolerations_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[Toleration] | None | Unset, data)

        tolerations = _parse_tolerations(d.pop("tolerations", UNSET))

        def _parse_node_affinity(data: object) -> list[list[Expression]] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                node_affinity_type_0 = []
                _node_affinity_type_0 = data
                for node_affinity_type_0_item_data in _node_affinity_type_0:
                    node_affinity_type_0_item = []
                    _node_affinity_type_0_item = node_affinity_type_0_item_data
                    for node_affinity_type_0_item_item_data in _node_affinity_type_0_item:
                        node_affinity_type_0_item_item = Expression.from_dict(node_affinity_type_0_item_item_data)

                        node_affinity_type_0_item.append(node_affinity_type_0_item_item)

                    node_affinity_type_0.append(node_affinity_type_0_item)

                return node_affinity_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[list[Expression]] | None | Unset, data)

        node_affinity = _parse_node_affinity(d.pop("node_affinity", UNSET))

        task = cls(
            name=name,
            count=count,
            min_count=min_count,
            requests=requests,
            usage=usage,
            node=node,
            flavors=flavors,
            priority=priority,
            created_at=created_at,
            started_at=started_at,
            preemptible=preemptible,
            originator=originator,
            required_node=required_node,
            state=state,
            placeholder=placeholder,
            node_selector=node_selector,
            tolerations=tolerations,
            node_affinity=node_affinity,
        )

        return task
