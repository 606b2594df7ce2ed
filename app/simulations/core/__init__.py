"""The simulation itself: pure, on top of the solver; neither database nor HTTP."""
