"""Recorded decisions, replayed through the HTTP layer."""
