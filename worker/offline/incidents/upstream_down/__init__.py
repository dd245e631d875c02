"""upstream_down: see README.md."""
