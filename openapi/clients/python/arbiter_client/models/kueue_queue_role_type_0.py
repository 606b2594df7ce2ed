from typing import Literal

KueueQueueRoleType0 = Literal["cluster_queue", "cohort"]

KUEUE_QUEUE_ROLE_TYPE_0_VALUES: set[KueueQueueRoleType0] = {
    "cluster_queue",
    "cohort",
}


def check_kueue_queue_role_type_0(value: str) -> KueueQueueRoleType0:
    if value in KUEUE_QUEUE_ROLE_TYPE_0_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {KUEUE_QUEUE_ROLE_TYPE_0_VALUES!r}")
