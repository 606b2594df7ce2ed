"""What it says: answers, explanations, shares, settings, findings."""
