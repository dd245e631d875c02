"""mysql_lock_wait: see README.md."""
