"""What is read: a Configuration and a State compiled, and how deltas are followed."""
