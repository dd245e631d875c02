"""poison_message: see README.md."""
