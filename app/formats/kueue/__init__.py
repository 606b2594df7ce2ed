"""Manifests of Kueue, in and out."""
