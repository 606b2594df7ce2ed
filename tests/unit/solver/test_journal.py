from hypothesis import given
from hypothesis import strategies as st

from app.solver.compiled import Journal

WRITES = st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.integers(-5, 5)), max_size=30)


@given(WRITES, WRITES)
def test_rollback_restores_exactly_what_was_there_at_the_checkpoint(
    before: list[tuple[bool, int, int]], after: list[tuple[bool, int, int]]
) -> None:
    overlay, table = Journal(), [0] * 5

    def write(writes: list[tuple[bool, int, int]]) -> None:
        for relative, at, value in writes:
            (overlay.add if relative else overlay.put)(table, at, value)

    write(before)
    mark, kept = overlay.checkpoint(), list(table)
    write(after)
    overlay.rollback(mark)
    assert table == kept
    overlay.rollback(0)
    assert table == [0] * 5
