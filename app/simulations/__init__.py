"""Decisions over time: traces of jobs that run through the engines on a virtual clock."""
