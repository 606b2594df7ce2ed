"""Comparisons: one situation under several engines, settings or configurations, and where the answers part."""
