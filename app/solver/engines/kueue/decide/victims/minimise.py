"""Put back whom the preemptor does not need gone.

Source: Kueue ``fillBackWorkloads``: from the second-last removed to the first; the last one is never tried.
"""

from app.solver.engines.kueue.decide.overlay import Overlay, Preemptor, Target
from app.solver.engines.kueue.decide.recorder import SILENT, Recorder
from app.solver.stopping import safe_point


def spare(
    overlay: Overlay, preemptor: Preemptor, targets: list[Target], borrow: bool, record: Recorder = SILENT
) -> list[Target]:
    """The targets that must go, in Kueue's order: a spared one's place is taken by the last of the list.

    Called with every target removed from the overlay; leaves them all restored."""
    kept = list(targets)
    for i in range(len(kept) - 2, -1, -1):
        safe_point()
        workload = kept[i][0]
        overlay.restore(workload)
        if overlay.fits(preemptor, borrow=borrow):
            kept[i] = kept[-1]
            kept.pop()
            record.put_back(overlay, workload)
        else:
            overlay.remove(workload)
    for workload, _ in kept:
        overlay.restore(workload)
    return kept
