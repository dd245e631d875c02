"""Recorded incidents."""
