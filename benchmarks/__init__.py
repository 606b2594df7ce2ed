"""What is measured, against what, and the budgets: ``python -m benchmarks``."""
