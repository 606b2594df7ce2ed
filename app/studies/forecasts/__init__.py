"""When will it start: what waits, played on until each ask has started."""
