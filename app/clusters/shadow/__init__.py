"""Shadow: real preemptions beside what Arbiter says for the moment before them."""
