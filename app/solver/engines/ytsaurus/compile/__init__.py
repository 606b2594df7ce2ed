"""What is read: configurations and states as arrays, and deltas followed."""
