"""Following a cluster: lists and watches its objects, and keeps a configuration and a snapshot equal to them.

A client of Arbiter's public interface and of the API server, in a process of its own.
"""
