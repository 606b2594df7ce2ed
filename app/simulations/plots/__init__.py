"""Pictures of simulations as SVG, drawn by matplotlib (extra ``arbiter-preemption[plot]``) in a process of its own."""
