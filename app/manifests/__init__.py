"""Manifests of the real systems over HTTP: import in a worker, export."""
