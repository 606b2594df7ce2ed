"""Arbiter: an HTTP service that decides which running work must stop so that waiting work can run."""
