"""The catalogue of rules: what an explanation's ids mean."""
