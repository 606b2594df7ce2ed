"""Where bytes become answers: decode, find what is named, solve, encode. Needs no process, socket or database."""
