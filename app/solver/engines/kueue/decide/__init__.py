"""How it decides."""
