"""One queue of a configuration at a time; each write is a new revision of the whole."""
