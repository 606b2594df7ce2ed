"""The systems whose rules Arbiter speaks: the one list of their names, and the folder of each."""

from typing import Final

ENGINES: Final[dict[str, str]] = {
    "kueue": "app.solver.engines.kueue",
    "yunikorn": "app.solver.engines.yunikorn",
    "kai": "app.solver.engines.kai",
    "ytsaurus": "app.solver.engines.ytsaurus",
    "kube-scheduler": "app.solver.engines.kube_scheduler",
}
"""By name, the module that has its ``FACTS`` and, itself or as ``engine`` below it, its ``ENGINE``."""
FIRST: Final = next(iter(ENGINES))
"""The one that documents begin with where nobody names one."""
