"""Who may be preempted, and who is."""
