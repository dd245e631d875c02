"""memory_kill: see README.md."""
