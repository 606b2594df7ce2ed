"""The decision log again, under other configurations."""
