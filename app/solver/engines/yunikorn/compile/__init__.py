"""What is read: configuration, state and settings, compiled."""
