"""The engines: one package a system; none imports another."""
