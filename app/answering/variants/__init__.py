"""Variants of a request: fields set by path, and a situation told in the words of another engine."""
