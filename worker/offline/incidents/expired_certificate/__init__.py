"""expired_certificate: see README.md."""
