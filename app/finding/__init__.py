"""Finding: everything that has a name, by any part of it."""
