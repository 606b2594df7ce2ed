"""The search for victims: scenarios, and what judges them."""
