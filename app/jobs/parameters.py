"""Parameters of the operations that list the lines of a job."""

from typing import Annotated

from fastapi import Query

Which = Annotated[str | None, Query(max_length=512, description="The name of a variant. Absent: the first.")]
First = Annotated[int, Query(alias="from", ge=0, le=2**62, description="The first line wanted; the first of all is 0.")]
Most = Annotated[int | None, Query(ge=1, le=2**62, description="The most lines wanted. Absent: all.")]
