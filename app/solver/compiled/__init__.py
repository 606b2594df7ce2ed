"""A Configuration and a State as integers: the tree, the resource index, nodes. Built once, then read only."""
