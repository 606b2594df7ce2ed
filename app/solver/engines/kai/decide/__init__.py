"""How it decides: a cycle of actions on one overlay."""
