"""States that stay: kept compiled, changed by deltas, named by decisions."""
