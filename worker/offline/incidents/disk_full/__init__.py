"""disk_full: see README.md."""
