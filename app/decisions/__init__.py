"""Decisions: the questions a scheduler asks, the log of the answers, and their replay."""
