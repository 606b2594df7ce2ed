"""The formats by name."""

from typing import Literal, get_args

Format = Literal["kueue", "yunikorn", "kai", "ytsaurus", "kubernetes"]
ExportFormat = Literal["kueue", "yunikorn", "kai", "ytsaurus"]

FORMATS: tuple[Format, ...] = get_args(Format)
EXPORTS: tuple[ExportFormat, ...] = get_args(ExportFormat)
