"""Manifests of the KAI Scheduler, in and out."""
