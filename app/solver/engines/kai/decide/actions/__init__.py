"""The four actions of a cycle, one file each."""
