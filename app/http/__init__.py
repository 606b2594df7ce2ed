"""HTTP: what every endpoint shares, and nothing about scheduling."""
