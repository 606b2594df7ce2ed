"""Where pods go: topologies of nodes, and the placement of pod sets in them."""
