"""The console: pages for people, which show what the public API answers and nothing else."""
