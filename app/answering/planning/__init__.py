"""Work that does not run yet, decided on a cluster as if it were submitted: the body of a plan to its answer, pure."""
