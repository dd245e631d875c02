"""postgres_deadlock: see README.md."""
