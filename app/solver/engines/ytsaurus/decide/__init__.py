"""How it decides: shares and priorities first, then heartbeats."""
