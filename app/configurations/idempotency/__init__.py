"""Idempotency-Key: a write that is sent twice happens once, and is answered the same."""
