"""One file a format: lines in, records out, every problem with the number of its line. Pure."""
