"""Where a pod may go and goes."""
