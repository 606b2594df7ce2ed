"""Heads: which revision every name and label means now, in memory, following the database."""
