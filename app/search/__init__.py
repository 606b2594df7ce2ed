"""Search by any part of a name."""
