"""Traces: jobs and changes over time, read from the formats that others write, stored under a name."""
