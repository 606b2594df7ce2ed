"""What is read: configurations and states in flat tables, settings resolved, deltas followed."""
