"""redis_maxmemory: see README.md."""
