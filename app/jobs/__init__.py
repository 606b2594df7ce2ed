"""Jobs: long work that the database keeps, done by a process of its own, whichever replica has time for it."""
