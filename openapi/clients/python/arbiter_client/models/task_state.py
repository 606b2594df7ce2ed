from typing import Literal

TaskState = Literal["preempted", "released", "releasing", "running"]

TASK_STATE_VALUES: set[TaskState] = {
    "preempted",
    "released",
    "releasing",
    "running",
}


def check_task_state(value: str) -> TaskState:
    if value in TASK_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TASK_STATE_VALUES!r}")
