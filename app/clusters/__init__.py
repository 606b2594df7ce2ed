"""Clusters that are followed: what each follower reports, and which of them may write the configuration."""
