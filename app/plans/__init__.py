"""Plans: what would become of work that is not submitted yet."""
