"""Configurations: stored documents (settings, flavors, queue tree) with immutable revisions."""
