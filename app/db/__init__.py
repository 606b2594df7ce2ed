"""The database: how it is reached, and a PostgreSQL of our own where none is given."""
