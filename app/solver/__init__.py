"""The pure solver: no I/O, no clock, no randomness, no logging; it imports nothing else of ``app``."""
