"""Libraries of others that the console serves: fetched, pinned, and held to their checksums."""
