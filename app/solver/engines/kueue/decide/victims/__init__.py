"""Who must stop so that an ask fits."""
