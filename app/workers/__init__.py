"""Solver processes: bytes in, bytes out, so that large or slow requests never hold the service up."""
