"""What the wire says, as frozen structs. One file an idea; engine blocks live in the engine's own file."""
