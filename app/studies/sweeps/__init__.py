"""Sweeps: a grid of configurations, traces, seeds and settings, each point a simulation of its own."""
