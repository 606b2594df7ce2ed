"""Steps that a request may spend."""

from app.solver.engines.kai.decide.budget import Budget


def test_what_is_paid_for_with_the_last_step_is_the_last() -> None:
    budget = Budget(3)
    assert [(budget.spend(), budget.spent) for _ in range(3)] == [(True, False), (True, False), (False, True)]
    assert (Budget(3).spend(2), Budget(3).spend(3), Budget(0).spent) == (True, False, True)
