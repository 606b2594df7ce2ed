"""Pictures of simulations as SVG, drawn by matplotlib (extra ``arbiter[plot]``) in a process of its own."""
